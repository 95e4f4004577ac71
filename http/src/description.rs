//! How reports name a connection: by the request that it serves, its client, and the type of the service. It also has
//! what a connection does when its service stands still.
//!
//! The name is made when something is reported, so that a request costs nothing for it.

use http::{Method, Uri};
use weald_kernel::Describe;

use crate::{activity::Activity, ended::Step};

impl Describe for Activity {
    fn name(&self) -> String {
        let service = self.service();
        let mut work = self.describe();
        let of_service = match std::mem::take(&mut work.step) {
            Step::Opening => "clone",
            Step::Ending => "destructor",
            Step::Serving => return format!("{work}, served by {service}"),
        };
        format!("the {of_service} of {service} for a connection, {work}")
    }

    /// The client gets the answers to its earlier requests.
    fn takes_long(&self) {
        self.send_now();
    }
}

/// The method and the target of the request that `bytes` begin with, if they are complete and can be parsed.
pub(crate) fn request_line(bytes: &[u8]) -> Option<(Method, Uri)> {
    let bytes = bytes.trim_ascii_start();
    let line = &bytes[..bytes.iter().position(|byte| *byte == b'\n')?];
    let mut parts = line.split(|byte| *byte == b' ');
    let method = Method::from_bytes(parts.next()?).ok()?;
    let target = Uri::try_from(parts.next()?).ok()?;
    Some((method, target))
}

#[cfg(test)]
mod tests {
    use super::request_line;

    #[test]
    fn a_request_line_is_known_when_it_is_complete() {
        let line = |text: &str| {
            request_line(text.as_bytes())
                .map(|(method, target)| (method.to_string(), target.to_string()))
        };
        let known = |method: &str, target: &str| Some((method.to_owned(), target.to_owned()));
        assert_eq!(line("GET /a?b HTTP/1.1\r\nho"), known("GET", "/a?b"));
        assert_eq!(line("\r\n\r\nPUT * HTTP/1.1\n"), known("PUT", "*"));
        for unknown in [
            "",
            "\r\n",
            "GET /a HTTP/1.1",
            "GET\r\n",
            "G\0T / HTTP/1.1\r\n",
        ] {
            assert_eq!(line(unknown), None, "{unknown:?}");
        }
    }
}
