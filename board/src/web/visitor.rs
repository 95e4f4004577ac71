//! The sender of a request: a browser with cookies, or a program with a key.
//!
//! - A browser keeps a secret in a cookie, which it gets with its first page. Messages that were written with the
//!   secret can be changed with it.
//! - The token in each form is made of the secret, which another site cannot read.
//! - A program brings a key of its own choice (`Authorization: Bearer`); cookies are not looked at then.

use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderValue, header};

use crate::model::{MAX_AUTHOR, Requester};

use super::pairs::Pairs;

const SECRET: &str = "board_secret";
const AUTHOR: &str = "board_author";
/// A year, in seconds.
const AGE: u64 = 31_536_000;

/// A browser that visits the board. Its cookies are read only when they are needed, which is never for a program.
#[derive(Debug)]
pub(crate) struct Visitor {
    cookies: Option<HeaderValue>,
    known: OnceLock<Known>,
}

#[derive(Debug)]
struct Known {
    secret: String,
    /// Whether the browser does not have the secret yet.
    is_new: bool,
    author: String,
    requester: Requester,
}

impl Visitor {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self {
            cookies: headers.get(header::COOKIE).cloned(),
            known: OnceLock::new(),
        }
    }

    fn known(&self) -> &Known {
        self.known.get_or_init(|| Known::of(self.cookies.as_ref()))
    }

    /// The name that the visitor wrote last.
    pub(crate) fn author(&self) -> &str {
        &self.known().author
    }

    pub(crate) fn requester(&self) -> Requester {
        self.known().requester
    }

    /// The token that this visitor's forms carry, and nobody else's.
    pub(crate) fn form_token(&self) -> String {
        hex(&crate::model::hash(
            "form",
            &[self.known().secret.as_bytes()],
        ))
    }

    /// A word that stands for the visitor in the tag of a page, and tells nothing about the secret.
    pub(crate) fn mark(&self) -> String {
        let Known { secret, author, .. } = self.known();
        let parts = [secret.as_bytes(), author.as_bytes()];
        hex(&crate::model::hash("mark", &parts)[..4])
    }

    /// The cookie that gives a new visitor the secret.
    pub(crate) fn cookie(&self, is_secure: bool) -> Option<String> {
        let Known { secret, is_new, .. } = self.known();
        is_new.then(|| cookie(SECRET, secret, is_secure))
    }
}

impl Known {
    fn of(cookies: Option<&HeaderValue>) -> Self {
        let cookies = cookies.and_then(|value| value.to_str().ok());
        let cookies = Pairs::of_cookies(cookies.unwrap_or_default());
        let is_secret =
            |text: &&str| text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
        let known = cookies.get(SECRET).filter(is_secret);
        let author = format!("a={}", cookies.text(AUTHOR));
        let author = Pairs::of_form(author.as_bytes())
            .text("a")
            .chars()
            .take(MAX_AUTHOR)
            .collect();
        let is_new = known.is_none();
        let secret = known.map_or_else(random, str::to_owned);
        Self {
            requester: Requester::of_secret(&secret),
            secret,
            is_new,
            author,
        }
    }
}

/// The cookie that remembers the name of an author.
pub(crate) fn author_cookie(author: &str, is_secure: bool) -> String {
    let value: String = form_urlencoded::byte_serialize(author.as_bytes()).collect();
    cookie(AUTHOR, &value, is_secure)
}

fn cookie(name: &str, value: &str, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={AGE}; HttpOnly; SameSite=Lax{secure}")
}

/// A program as a requester, by the key that it brings.
pub(crate) fn program(headers: &HeaderMap) -> Requester {
    let value = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let key = value
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim());
    // A key that can be guessed does not count.
    let key = key.filter(|key| key.len() >= 16);
    key.map_or_else(Requester::default, Requester::of_secret)
}

/// A text of 32 digits that nobody can guess.
pub(crate) fn random() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    hex(&bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}

/// The bytes of a text that [`hex`] wrote.
pub(crate) fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(cookies: &str) -> Visitor {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookies.parse().unwrap());
        Visitor::of(&headers)
    }

    #[test]
    fn a_visitor_comes_back_with_the_secret() {
        let first = visitor("");
        let cookie = first.cookie(false).unwrap();
        let (pair, rest) = cookie.split_once(';').unwrap();
        assert!(
            rest.contains("HttpOnly") && rest.contains("SameSite=Lax") && !rest.contains("Secure")
        );
        let author = author_cookie("Ada & Co; ä", true);
        let again = visitor(&format!(
            "other=1; {pair}; {}",
            author.split(';').next().unwrap()
        ));
        assert_eq!(again.cookie(false), None);
        assert_eq!(again.form_token(), first.form_token());
        assert_eq!(again.requester().owner, first.requester().owner);
        assert_eq!(again.author(), "Ada & Co; ä");
        assert_ne!(
            visitor("board_secret=short").form_token(),
            first.form_token()
        );
    }

    #[test]
    fn a_short_key_is_none() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            program(&headers).owner
        };
        assert_eq!(
            with("Bearer 0123456789abcdef"),
            Requester::of_secret("0123456789abcdef").owner
        );
        assert_eq!(with("Bearer 0123456789"), None);
        assert_eq!(with("Basic 0123456789abcdef"), None);
    }
}
