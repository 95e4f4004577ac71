//! What a client says to a measured server, and what the server must answer.
//!
//! Invariant: all answers of a dialogue have the same lines, whichever server gives them, so that no server sends fewer
//! bytes than another. A server may add lines that it cannot leave out (`EXTRA`).

use std::sync::LazyLock;

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialogue {
    /// Sixty-four bytes that are sent back.
    Echo,
    /// A request for a greeting, over HTTP/1.1; the connection is kept alive.
    Hello,
}

/// The body of the answer to [`Dialogue::Hello`].
pub const GREETING: &str = "hello, world\n";

/// The content type of that body.
pub const GREETING_TYPE: &str = "text/plain";

const PAYLOAD: [u8; 64] = *b"An echo gives back what was said, to the last of sixty-four.####";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
const STATUS: &[u8] = b"HTTP/1.1 200 OK\r\n";
const BODY: &[u8] = b"\r\n\r\nhello, world\n";
/// Lines that nginx adds to every answer.
const EXTRA: [&str; 2] = ["server: nginx", "connection: keep-alive"];
/// A date, whose value does not matter, so that the answer has the right length.
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

impl Dialogue {
    /// The name by which a measured program knows the server of this dialogue.
    #[must_use]
    pub fn server(self) -> &'static str {
        match self {
            Self::Echo => "serve-echo",
            Self::Hello => "serve-hello",
        }
    }

    /// The bytes of a request.
    #[must_use]
    pub fn request(self) -> &'static [u8] {
        match self {
            Self::Echo => &PAYLOAD,
            Self::Hello => REQUEST,
        }
    }

    /// Whether this is a whole answer, if it is one.
    #[must_use]
    pub fn has_ended(self, answer: &[u8]) -> bool {
        match self {
            Self::Echo => answer.len() >= PAYLOAD.len(),
            Self::Hello => answer.ends_with(BODY),
        }
    }

    /// Whether this may be the answer, judged by its beginning and its end.
    #[must_use]
    pub fn accepts(self, answer: &[u8]) -> bool {
        match self {
            Self::Echo => answer == PAYLOAD,
            Self::Hello => answer.starts_with(STATUS) && answer.ends_with(BODY),
        }
    }

    /// Whether every line of this answer is right, in any order.
    #[must_use]
    pub fn accepts_each_line(self, answer: &[u8]) -> bool {
        if self == Self::Echo {
            return self.accepts(answer);
        }
        let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
        let has = |line: &str| text.lines().any(|other| other == line);
        let length = format!("content-length: {}", GREETING.len());
        let has_date = text.lines().any(|line| line.starts_with("date: "));
        let right = has(&length) && has("content-type: text/plain") && has_date;
        let extra = EXTRA.iter().filter(|line| has(line));
        let extra: usize = extra.map(|line| line.len() + "\r\n".len()).sum();
        self.accepts(answer) && right && answer.len() == plain_answer().len() + extra
    }
}

/// A ready-made answer to [`Dialogue::Hello`], with a fixed old date.
#[must_use]
pub fn plain_answer() -> &'static [u8] {
    static ANSWER: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let length = GREETING.len();
        let head =
            format!("content-type: {GREETING_TYPE}\r\ncontent-length: {length}\r\ndate: {DATE}");
        [STATUS, head.as_bytes(), BODY].concat()
    });
    &ANSWER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_change_places_and_nothing_else() {
        let plain = String::from_utf8(plain_answer().to_vec()).unwrap();
        let accepts = |text: &str| Dialogue::Hello.accepts_each_line(text.as_bytes());
        assert!(accepts(&plain));
        let (kind, length) = ("content-type: text/plain\r\n", "content-length: 13\r\n");
        let swapped = plain.replace(
            &format!("{kind}{length}"),
            &format!("Content-Length: 13\r\n{kind}"),
        );
        assert!(swapped != plain && accepts(&swapped));
        assert!(accepts(&plain.replace(
            length,
            &format!("{length}Server: nginx\r\nConnection: keep-alive\r\n")
        )));
        for wrong in [
            plain.replace("200 OK", "404 No"),
            plain.replace("world", "wOrld"),
            plain.replace("date: ", "dato: "),
            plain.replace("text/plain", "text/other"),
            plain.replace(length, &format!("{length}server: x\r\n")),
        ] {
            assert!(!accepts(&wrong), "{wrong}");
        }
    }

    #[test]
    fn an_echo_is_exact() {
        let request = Dialogue::Echo.request();
        assert!(Dialogue::Echo.has_ended(request) && !Dialogue::Echo.has_ended(&request[1..]));
        assert!(Dialogue::Echo.accepts(request));
        assert!(!Dialogue::Echo.accepts(&request[1..]));
    }
}
