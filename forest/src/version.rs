//! What identifies versions and commits.
//!
//! - A forest counts all its commits, whatever trees they touch; a version is identified by the number of the commit
//!   that created it. So one number names one moment of all trees, and no two commits that anybody has seen share one:
//!   not when a tree is deleted and created again, nor after the forest is opened again, because each opening leaves
//!   out the 2²⁰ numbers that the one before may have shown and lost.
//! - A commit also has an id of 128 bits, which its author may choose: see [`Commit::id`](crate::Commit::id).

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// How many bytes an author can attach to a commit.
pub const MAX_BYTES: usize = 1024;

/// A moment of the forest: its trees as they were when a commit was the newest.
///
/// It is printed as `1795455258574854548.17`. The incarnation is the time at which the forest is opened, and is higher
/// than that of each earlier opening. The number rises through all openings of a forest. Each opening skips 2²⁰
/// numbers, because the opening before may have shown some of them and lost them. So the number alone is enough to name
/// a version of one forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The opening of the forest.
    pub incarnation: u64,
    /// The number of the commit, from 1 on; no two commits of a forest share a number.
    pub number: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation, self.number)
    }
}

/// Why a text does not name a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no version; a version is two numbers with a dot between them, as it is printed")]
pub struct NotAVersion(String);

impl FromStr for Version {
    type Err = NotAVersion;

    /// Reads what [`Display`](fmt::Display) prints, and nothing else.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let parsed = text.split_once('.').and_then(|(incarnation, number)| {
            Some(Self {
                incarnation: incarnation.parse().ok()?,
                number: number.parse().ok()?,
            })
        });
        let is_printed = |version: &Self| version.to_string() == text;
        let refused = || NotAVersion(text.to_owned());
        parsed.filter(is_printed).ok_or_else(refused)
    }
}

/// Identifies a commit everywhere. A second commit with the same id is not made; its outcome is that of the
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u128);

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The receipt of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its id.
    pub id: CommitId,
    /// The version that it created in each tree that it touched.
    pub version: Version,
    /// Its time; never before that of an earlier commit.
    pub time: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_parsed_and_nothing_else() {
        let version = Version {
            incarnation: u64::MAX,
            number: 7,
        };
        assert_eq!(version.to_string().parse(), Ok(version));
        for text in [
            "", ".", "1", "1.", ".1", "+1.2", "01.2", "1.2.3", "1.-2", " 1.2",
        ] {
            assert_eq!(text.parse::<Version>(), Err(NotAVersion(text.to_owned())));
        }
    }
}
