//! The cases of Http11Probe (github.com/MDA2AV/Http11Probe), a public test of servers: what is refused, and that no
//! byte of one request is ever taken for another.
//!
//! All cases of its commit 95bc6a9 are there that are a server's to answer. Those left out ask for a service: one that
//! reads cookies (`COOK-ECHO`, `COOK-MULTI-HEADER`, `COOK-PARSED-…`) or keeps dates and tags of what it serves
//! (`CAP-…`).
//!
//! Each line of `probe.txt` is `name | recommended | ours | bytes | why`. Recommended are the statuses that the probe
//! accepts, `close` if it accepts a connection that closes without an answer, and `once` if it accepts one that closes
//! after a single answer, because only a second one would show that the server was deceived. Ours is the status of each
//! answer, or `close`, then `+` if the connection serves another request afterwards. Where ours is not recommended, the
//! line says why. In the bytes, `\r`, `\n`, `\t`, `\0`, `\\` and `\xNN` are escapes, `{x*9}` is nine times `x`, and
//! `{end}` ends what the client sends; without it a request for `/end` follows, so that the connection ends in any
//! case.

use std::net::Shutdown;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;

use super::{Client, run, start};

const CASES: &str = include_str!("probe.txt");
const END: &[u8] = b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Reads the body, and answers with none.
async fn answer(
    request: Request<RequestBody>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let mut response = Response::new(Full::default());
    if request.uri().path() == "/end" {
        let headers = response.headers_mut();
        headers.insert(header::SERVER, header::HeaderValue::from_static("end"));
    }
    if request.into_body().collect().await.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        let close = header::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response)
}

struct Case {
    name: &'static str,
    recommended: Vec<&'static str>,
    ours: &'static str,
    bytes: Vec<u8>,
    ends: bool,
    why: &'static str,
}

impl Case {
    fn parse(line: &'static str) -> Case {
        let parts: Vec<&str> = line.splitn(5, " |").collect();
        let [name, recommended, ours, bytes, why] = parts[..] else {
            panic!("{line:?} has not five parts");
        };
        let [recommended, ours, bytes] =
            [recommended, ours, bytes].map(|part| part.strip_prefix(' ').unwrap_or(part));
        let sent = bytes.strip_suffix("{end}");
        Case {
            name,
            recommended: recommended.split(' ').collect(),
            ours,
            bytes: unescape(sent.unwrap_or(bytes)),
            ends: sent.is_some(),
            why: why.trim(),
        }
    }

    /// Whether the probe accepts each of our answers.
    fn is_recommended(&self) -> bool {
        let is_accepted = |ours: &str| {
            let statuses = ours.trim_end_matches('+');
            self.recommended
                .iter()
                .any(|recommended| match *recommended {
                    "2xx" => statuses.starts_with('2'),
                    "once" => ours.len() == 3,
                    exact => statuses.starts_with(exact),
                })
        };
        self.ours.split(" or ").all(is_accepted)
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        let byte = match first {
            '{' => {
                let (inner, after) = rest.split_once('}').unwrap();
                let (repeated, count) = inner.rsplit_once('*').unwrap();
                bytes.extend(unescape(repeated).repeat(count.parse().unwrap()));
                rest = after;
                continue;
            }
            '\\' => {
                let kind = rest.chars().next().unwrap();
                rest = &rest[1..];
                match kind {
                    'r' => b'\r',
                    'n' => b'\n',
                    't' => b'\t',
                    '0' => 0,
                    'x' => {
                        let (digits, after) = rest.split_at(2);
                        rest = after;
                        u8::from_str_radix(digits, 16).unwrap()
                    }
                    other => u8::try_from(other).unwrap(),
                }
            }
            other => u8::try_from(other).unwrap(),
        };
        bytes.push(byte);
    }
    bytes
}

/// What the server does: the statuses of all its final answers, and whether the last request was served.
fn outcome(answers: &str) -> String {
    let statuses = answers
        .match_indices("HTTP/1.")
        .map(|(at, _)| &answers[at + 9..at + 12]);
    let mut statuses: Vec<&str> = statuses.filter(|status| !status.starts_with('1')).collect();
    let goes_on = answers.contains("server: end");
    if goes_on {
        statuses.pop();
    }
    let shown = match statuses.is_empty() {
        true => "close".to_owned(),
        false => statuses.join(" "),
    };
    match goes_on {
        true => shown + "+",
        false => shown,
    }
}

#[test]
fn every_case_of_the_probe_is_answered_as_the_table_says() {
    run(2, async {
        let server = start(tower::service_fn(answer), |server| server);
        let mut wrong = Vec::new();
        for case in CASES.lines().map(Case::parse) {
            let client = Client::connect(server.address).await;
            // The server may have closed before all is sent.
            let _refused = client.stream.write_all(&case.bytes).await;
            match case.ends {
                true => _ = client.stream.shutdown(Shutdown::Write),
                false => _ = client.stream.write_all(END).await,
            }
            let answers = client.rest().await;
            let found = outcome(&answers);
            if !case.ours.split(" or ").any(|ours| ours == found) {
                wrong.push(format!("{}: {found} instead of {}", case.name, case.ours));
            }
            if !case.is_recommended() && case.why.is_empty() {
                let (name, recommended) = (case.name, &case.recommended);
                wrong.push(format!("{name}: {found}, not {recommended:?}, unexplained"));
            }
            // A refusal says that the connection closes.
            if found.starts_with(['4', '5']) && !answers.contains("connection: close") {
                wrong.push(format!("{}: a refusal without a close", case.name));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(server.end().await.not_stopped.is_empty());
    });
}
