//! Which requests are refused before the service sees them: those whose `Host` or framing is not what RFC 9112 asks
//! for. Another server on the way might read such a request differently, and could be made to pass on what it should
//! not.
//!
//! Hyper refuses requests that it cannot parse. These are left:
//! - no `Host`, more than one, or one that is no host and port (RFC 9112, 3.2);
//! - a target `*` of a request other than OPTIONS (3.2.4);
//! - transfer codings other than one `chunked` (6.1, 7).
//!
//! Also, hyper answers 400 to a version that it does not know, where 505 tells the client more (RFC 9110,
//! 15.6.6).

use std::net::Ipv6Addr;

use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Version,
    header::{HOST, TRANSFER_ENCODING},
};
use http_body::Body;

use crate::date;

/// The status of the refusal of `request`, if it is refused. The connection closes after it.
///
/// In a request that is not refused, `Host` is the host of an absolute target, if the target is one.
pub(crate) fn check<B: Body>(request: &mut Request<B>) -> Option<StatusCode> {
    if request.version() > Version::HTTP_11 {
        // Another protocol, which frames requests in its own way and has no need of `Host`.
        return None;
    }
    if !has_sound_host(request)
        || request.uri().path() == "*" && request.method() != Method::OPTIONS
    {
        return Some(StatusCode::BAD_REQUEST);
    }
    // A body of unknown length is one with transfer codings.
    let is_coded = !request.body().is_end_stream() && request.body().size_hint().exact().is_none();
    if is_coded && let Some(refused) = check_codings(request.headers()) {
        return Some(refused);
    }
    let is_absolute = request.uri().scheme().is_some();
    if is_absolute && let Some(authority) = request.uri().authority() {
        // RFC 9112, 3.2.2. The part of an authority before the `@` does not belong to the host.
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        match HeaderValue::from_str(host) {
            Ok(value) if is_host(host.as_bytes()) => request.headers_mut().insert(HOST, value),
            _ => return Some(StatusCode::BAD_REQUEST),
        };
    }
    None
}

/// The status of the answer to a request that does not arrive completely in time.
pub(crate) const TIMED_OUT: &str = "408 Request Timeout";
/// That of the answer of a service that cannot be cloned.
pub(crate) const FAILED: &str = "500 Internal Server Error";
/// That of the answer to a client for which there is no instance of the service.
pub(crate) const UNAVAILABLE: &str = "503 Service Unavailable";

/// An answer that hyper does not write: without a body, and the connection closes. It must have a date if there is one
/// (RFC 9110, 6.6.1).
pub(crate) fn answer(status: &str) -> Vec<u8> {
    let date = date::text().map(|date| format!("date: {date}\r\n"));
    let date = date.unwrap_or_default();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n{date}\r\n");
    head.into_bytes()
}

/// The start of hyper's refusal of a version, and what replaces it.
pub(crate) const UNKNOWN_VERSION: [&[u8]; 2] = [
    b"HTTP/1.1 400 Bad Request",
    b"HTTP/1.1 505 HTTP Version Not Supported",
];

/// Whether `bytes` begin with a request that hyper refuses only because of its version, which is well-formed.
pub(crate) fn has_unknown_version(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start().split(|byte| *byte == b'\n').next();
    let line = line.unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let version = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    match version.strip_prefix(b"HTTP/") {
        Some([major, b'.', minor]) => {
            let is_known = *major == b'1' && matches!(minor, b'0' | b'1');
            major.is_ascii_digit() && minor.is_ascii_digit() && !is_known
        }
        _ => false,
    }
}

fn has_sound_host<B>(request: &Request<B>) -> bool {
    // Most requests have few headers, and this one is among the first; to look it up would cost more than to pass over
    // all.
    let all = request.headers().iter();
    let mut hosts = all.filter(|(name, _)| *name == HOST).map(|(_, host)| host);
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => is_host(host.as_bytes()),
        (None, _) => request.version() < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

/// Whether `value` is `uri-host [ ":" port ]` of RFC 9110, and the host is not empty.
fn is_host(value: &[u8]) -> bool {
    // Most are a plain name. Every request passes here, so there is no branch for each byte.
    let is_plain = value.iter().fold(true, |is_plain, byte| {
        is_plain & IN_NAME[usize::from(*byte)]
    });
    if is_plain {
        return !value.is_empty();
    }
    let (host, port) = match value.first() {
        Some(b'[') => {
            let Some(end) = value.iter().position(|byte| *byte == b']') else {
                return false;
            };
            if !is_address(&value[1..end]) {
                return false;
            }
            match &value[end + 1..] {
                [] => return true,
                [b':', port @ ..] => return is_port(port),
                _ => return false,
            }
        }
        _ => match value.iter().position(|byte| *byte == b':') {
            Some(colon) => (&value[..colon], &value[colon + 1..]),
            None => (value, &[][..]),
        },
    };
    !host.is_empty() && is_name(host) && is_port(port)
}

/// The number of a port, or nothing.
fn is_port(port: &[u8]) -> bool {
    let value = port.iter().try_fold(0, |value: u32, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        Some(10 * value + digit).filter(|value| *value <= u32::from(u16::MAX))
    });
    value.is_some()
}

/// A `reg-name`; an IPv4 address is one too. The comma is allowed in one, but is more likely to be that of a list.
fn is_name(host: &[u8]) -> bool {
    let mut rest = host;
    while let Some(at) = rest.iter().position(|byte| !IN_NAME[usize::from(*byte)]) {
        match &rest[at..] {
            [b'%', first, second, others @ ..]
                if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() =>
            {
                rest = others;
            }
            _ => return false,
        }
    }
    true
}

/// The bytes that stand for themselves in a `reg-name`. It is a table, because every request passes
/// here.
static IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~!$&'()*+;=";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// What may be between the brackets of an IP literal: an IPv6 address, or one of a version to come.
fn is_address(address: &[u8]) -> bool {
    let Some(future) = address.strip_prefix(b"v") else {
        return str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    };
    let dot = future.iter().position(|byte| *byte == b'.');
    let (version, rest) = future.split_at(dot.unwrap_or(0));
    let is_sound = |byte: &u8| *byte == b':' || IN_NAME[usize::from(*byte)];
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && rest.len() > 1
        && rest.iter().all(is_sound)
}

/// Hyper has seen that the last coding is `chunked`.
fn check_codings(headers: &HeaderMap) -> Option<StatusCode> {
    let mut chunked = 0;
    let mut refused = None;
    for value in headers.get_all(TRANSFER_ENCODING) {
        for coding in value.as_bytes().split(|byte| *byte == b',') {
            match coding.trim_ascii() {
                coding if coding.eq_ignore_ascii_case(b"chunked") => chunked += 1,
                b"" => return Some(StatusCode::BAD_REQUEST),
                _ => refused = Some(StatusCode::NOT_IMPLEMENTED),
            }
        }
    }
    match chunked {
        1 => refused,
        _ => Some(StatusCode::BAD_REQUEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_what_is_none() {
        for sound in [
            "x",
            "example.com",
            "example.com:",
            "example.com:8080",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:8080",
            "a-b_c~d",
            "%41.example",
            "[fe80::1]:",
            "[v1.x]",
            "x:65535",
            "x:00080",
        ] {
            assert!(is_host(sound.as_bytes()), "{sound:?}");
        }
        for bad in [
            "",
            ":80",
            "a b",
            "user@host",
            "host/path",
            "host?query",
            "host#part",
            "a,b",
            "host:80x",
            "host:80:90",
            "[::1",
            "[]",
            "[::1]x",
            "[::1]:x",
            "x:65536",
            "x:99999999999",
            "[::1]:65536",
            "[zz]",
            "[1.2.3.4]",
            "[v.x]",
            "[v1.]",
            "[v1x]",
            "%4",
            "%zz",
            "a\\b",
            "<x>",
            "\u{e9}",
        ] {
            assert!(!is_host(bad.as_bytes()), "{bad:?}");
        }
    }

    #[test]
    fn unknown_versions_are_told_from_what_is_none() {
        for unknown in [
            "GET / HTTP/9.9\r\nhost: x\r\n\r\n",
            "\r\nGET / HTTP/2.0\r\n",
            "GET / HTTP/1.2\n",
            "GET / HTTP/0.9",
        ] {
            assert!(has_unknown_version(unknown.as_bytes()), "{unknown:?}");
        }
        for other in [
            "GET / HTTP/1.1\r\nbad header\r\n",
            "GET / HTTP/1.0\r\n",
            "GET /\r\n",
            "GET / HTTP/11\r\n",
            "GET / HTTP/1.1x\r\n",
            "GET / http/9.9\r\n",
            "GET / HTTP/a.b\r\n",
            "",
        ] {
            assert!(!has_unknown_version(other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn one_chunked_is_the_only_coding() {
        let check = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(TRANSFER_ENCODING, HeaderValue::from_static(value));
            }
            check_codings(&headers)
        };
        assert_eq!(check(&["chunked"]), None);
        assert_eq!(check(&["Chunked"]), None);
        assert_eq!(check(&["gzip, chunked"]), Some(StatusCode::NOT_IMPLEMENTED));
        for bad in [
            &["chunked, chunked"][..],
            &["chunked", "chunked"],
            &[", chunked"],
            &["gzip, chunked, chunked"],
        ] {
            assert_eq!(check(bad), Some(StatusCode::BAD_REQUEST), "{bad:?}");
        }
    }
}
