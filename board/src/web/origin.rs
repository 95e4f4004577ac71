//! The address under which browsers know the board, if that is not the one at which it is served.

use std::net::IpAddr;
use std::str::FromStr;

/// A scheme with a host and perhaps a port, such as `https://board.example.org`.
///
/// ```
/// use weald_board::Origin;
///
/// let origin: Origin = "https://Board.example.org/".parse()?;
/// assert_eq!(origin.as_str(), "https://board.example.org");
/// assert!(origin.is_secure());
/// assert!("board.example.org".parse::<Origin>().is_err());
/// # Ok::<(), weald_board::NotAnOrigin>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// A text is no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an origin; one is written https://board.example.org, without a path")]
pub struct NotAnOrigin(String);

impl Origin {
    /// As browsers write it in the header `Origin`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether browsers reach it through TLS.
    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let lower = text.trim().trim_end_matches('/').to_ascii_lowercase();
        let (scheme, authority) = lower.split_once("://").unwrap_or_default();
        let is_part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        let is_origin = matches!(scheme, "http" | "https")
            && authority.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
            && authority.chars().all(is_part);
        // A browser leaves the usual port out.
        let usual = if scheme == "https" { ":443" } else { ":80" };
        match is_origin {
            true => Ok(Self(lower.trim_end_matches(usual).to_owned())),
            false => Err(NotAnOrigin(text.to_owned())),
        }
    }
}

/// Whether a `Host` is a number, or the name that every machine has for itself. Another name may be one of any page of
/// the web, made to lead to this machine (DNS rebinding).
pub(crate) fn is_of_this_machine(host: &str) -> bool {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|it| it.is_ascii_digit()) => bare,
        _ => host,
    };
    let bare = bare.trim_start_matches('[').trim_end_matches(']');
    let bare = bare.to_ascii_lowercase();
    bare == "localhost" || bare.ends_with(".localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_few_names() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "tea.localhost:1",
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "",
            "127.0.0.1.evil.example:1",
        ] {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        let of = |text: &str| text.parse::<Origin>().map(|origin| origin.0);
        assert_eq!(of("http://a:8080").unwrap(), "http://a:8080");
        assert_eq!(of("https://a:443/").unwrap(), "https://a");
        assert_eq!(of("http://[::1]:80").unwrap(), "http://[::1]");
        for text in [
            "",
            "a",
            "ftp://a",
            "https://",
            "https://a/b",
            "https://a b",
            "https://x@a",
            "null",
        ] {
            assert_eq!(of(text), Err(NotAnOrigin(text.to_owned())));
        }
    }
}
