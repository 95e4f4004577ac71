//! The address of a board: what stands in its links; and the name of its tree.

use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Trees of boards have this before their address, so that others may stand beside them.
const PREFIX: &str = "board/";

/// The most characters of an address.
const MAX: usize = 40;

/// How many characters an address has that no title suggests.
const SHORT: usize = 10;

/// The address of a board: 1 to 40 small letters, digits and hyphens, as `garden-talk`.
///
/// ```
/// use weald_board::model::BoardName;
///
/// assert_eq!(BoardName::of_title("Garden & Talk!").unwrap().as_str(), "garden-talk");
/// assert!("../etc".parse::<BoardName>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardName(String);

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address has 1 to {MAX} small letters, digits and hyphens, and no hyphen at its ends")]
pub struct NotAName;

impl BoardName {
    /// The address that a title suggests, without the marks at its letters; `None` if no letter or digit of ASCII
    /// remains.
    pub fn of_title(title: &str) -> Option<Self> {
        let mut name = String::new();
        // Some letters are several ones only when they are large, as `ß` is.
        for letter in title.to_uppercase().nfkd() {
            match letter.to_ascii_lowercase() {
                letter if letter.is_ascii_alphanumeric() => name.push(letter),
                letter if is_combining_mark(letter) => {}
                _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
                _ => {}
            }
        }
        name.truncate(MAX);
        name.trim_end_matches('-').parse().ok()
    }

    /// One that nobody can guess, and that no title suggests.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        Self(format!("{:032x}", u128::from_le_bytes(bytes)))
    }

    /// A short one for a board whose title suggests none. The same bytes make the same one.
    pub(crate) fn of_bytes(bytes: [u8; 16]) -> Self {
        let mut name = format!("{:032x}", u128::from_le_bytes(bytes));
        name.truncate(SHORT);
        Self(name)
    }

    /// As it stands in a link.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the tree that has this address, if that tree has no address of its own.
    pub(crate) fn tree(&self) -> String {
        format!("{PREFIX}{}", self.0)
    }

    /// What the names of all boards' trees begin with.
    pub(crate) const fn prefix() -> &'static str {
        PREFIX
    }

    /// The address of a tree that has no other one, if it is that of a board.
    pub(crate) fn of_tree(tree: &str) -> Option<Self> {
        tree.strip_prefix(PREFIX)?.parse().ok()
    }
}

impl FromStr for BoardName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=MAX).contains(&text.len())
            && text.bytes().all(is_allowed)
            && !text.starts_with('-')
            && !text.ends_with('-');
        is_name.then(|| Self(text.to_owned())).ok_or(NotAName)
    }
}

impl fmt::Display for BoardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_suggests_an_address() {
        let of = |title| BoardName::of_title(title).map(|name| name.0);
        assert_eq!(of("  Tea,  and Milk "), Some("tea-and-milk".to_owned()));
        assert_eq!(
            of("Über uns: Cafés, Straßen"),
            Some("uber-uns-cafes-strassen".to_owned())
        );
        assert_eq!(of("Ａ１ ﬁg"), Some("a1-fig".to_owned()));
        assert_eq!(of("日本語の お茶 2"), Some("2".to_owned()));
        assert_eq!(of("日本語のお茶"), None);
        assert_eq!(of("…"), None);
        assert_eq!(of(&"a-".repeat(40)).map(|name| name.len()), Some(39));
    }

    #[test]
    fn a_name_is_that_of_its_tree_and_back() {
        let name: BoardName = "tea".parse().unwrap();
        assert_eq!(BoardName::of_tree(&name.tree()), Some(name));
        assert_eq!(BoardName::of_tree("board/"), None);
        assert_eq!(BoardName::of_tree("audit"), None);
    }
}
