//! A small browser: one request for each connection, with cookies, and the hidden fields of forms.

use std::collections::BTreeMap;
use std::io::ErrorKind::{TimedOut, WouldBlock};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use weald_board::{Config, serve};

/// Far longer than anything takes that does not hang.
const MINUTE: Duration = Duration::from_secs(60);

/// Serves boards in memory, without limits, to a test.
pub(crate) fn with_board(test: impl FnOnce(Browser)) {
    let config = Config {
        reads: None,
        writes: None,
        ..Config::default()
    };
    with_config(config, test);
}

/// Serves boards to a test, at any free port.
pub(crate) fn with_config(config: Config, test: impl FnOnce(Browser)) {
    let address = "127.0.0.1:0".parse().unwrap();
    weald::block_on(async {
        // The machine may be slow; what is not stopped by then hangs.
        let config = Config {
            address,
            drain: MINUTE,
            ..config
        };
        let board = serve(config).await.unwrap();
        let browser = Browser::new(board.address());
        weald::block_in_place(|| test(browser));
        let stopped = weald::timeout(2 * MINUTE, board.stop()).await;
        let drained = stopped.expect("the board stops").unwrap();
        assert!(drained.not_stopped.is_empty());
    });
}

/// A connection on which a test that would hang fails.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(MINUTE)).unwrap();
    stream.set_write_timeout(Some(MINUTE)).unwrap();
    stream
}

#[derive(Clone)]
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    pub(crate) cookies: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            cookies: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Answered {
        self.ask("GET", path, &[], "")
    }

    /// Sends a form.
    pub(crate) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answered {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask("POST", path, &[kind], &encoded(fields))
    }

    /// Gets a page, fills its form for messages and sends it.
    pub(crate) fn fill(&mut self, page: &str, fields: &[(&str, &str)]) -> Answered {
        let page = self.get(page);
        self.fill_from(&page, fields)
    }

    /// Fills the form for messages of a page and sends it.
    pub(crate) fn fill_from(&mut self, page: &Answered, fields: &[(&str, &str)]) -> Answered {
        let form = page
            .body
            .split("class=\"write\"")
            .nth(1)
            .unwrap_or_else(|| panic!("no form: {page:?}"));
        let form = form.split("</form>").next().unwrap();
        let action = attribute(form, "action");
        let hidden: Vec<_> = form
            .split("<input type=\"hidden\"")
            .skip(1)
            .map(|input| (attribute(input, "name"), attribute(input, "value")))
            .collect();
        let hidden = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<_> = hidden.chain(fields.iter().copied()).collect();
        self.post(&action, &fields)
    }

    #[allow(clippy::too_many_arguments, reason = "a request has these parts")]
    pub(crate) fn json(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut all = vec![("Content-Type", "application/json")];
        all.extend(headers);
        self.ask(method, path, &all, body)
    }

    #[allow(clippy::too_many_arguments, reason = "a request has these parts")]
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if headers.iter().all(|(name, _)| *name != "Host") {
            text += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !self.cookies.is_empty() {
            let cookies: Vec<_> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            text += &format!("Cookie: {}\r\n", cookies.join("; "));
        }
        text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = connect(self.address);
        // A server that has refused the head may have closed its side already.
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        let is_late = matches!(read, Err(error) if matches!(error.kind(), WouldBlock | TimedOut));
        assert!(!is_late, "{method} {path} got no whole answer in a minute");
        let answered = Answered::parse(&bytes);
        for cookie in answered.all("set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answered
    }
}

impl Answered {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {text}"));
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let headers: Vec<(String, String)> = headers;
        let is_chunked = headers
            .iter()
            .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = match is_chunked {
            true => String::from_utf8(whole(body.as_bytes())).unwrap(),
            false => body.to_owned(),
        };
        Self {
            status,
            headers,
            body,
        }
    }

    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let found = self.headers.iter().filter(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let mut all = self.headers.iter();
        all.find(|(it, _)| it == name)
            .map_or("", |(_, value)| value)
    }

    /// Where a redirection leads.
    pub(crate) fn place(&self) -> String {
        assert_eq!(self.status, 303, "{self:?}");
        self.header("location").to_owned()
    }

    pub(crate) fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The bytes of a body that came in chunks.
fn whole(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend(&rest[end + 2..][..length]);
        rest = &rest[end + 2 + length + 2..];
    }
}

fn attribute(text: &str, name: &str) -> String {
    let rest = text
        .split(&format!("{name}=\""))
        .nth(1)
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split('"').next().unwrap().to_owned()
}

pub(crate) fn encoded(fields: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let value: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
        text += &format!("{name}={value}&");
    }
    text
}

/// Creates a board and a topic in it; returns the path of the topic.
pub(crate) fn topic(browser: &mut Browser, text: &str) -> String {
    if browser.get("/b/tea").status == 404 {
        assert_eq!(
            browser
                .fill("/new", &[("title", "Tea"), ("text", "About tea")])
                .place(),
            "/b/tea"
        );
    }
    browser
        .fill(
            "/b/tea/write",
            &[("title", "A topic"), ("text", text), ("author", "Ada")],
        )
        .place()
}
