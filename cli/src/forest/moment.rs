//! A moment, as a command line names it.

use std::time::SystemTime;

use weald_forest::Version;

use super::failure::Failure;
use super::times;

/// When.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The newest that is durable.
    Now,
    Version(Version),
    /// The version of this number, or the last one before.
    Number(u64),
    Time(SystemTime),
    Tag(String),
}

impl Moment {
    /// The moment that a word names.
    pub(crate) fn read(word: Option<&str>) -> Result<Self, Failure> {
        let Some(word) = word else {
            return Ok(Self::Now);
        };
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(tag) = word.strip_prefix("tag:") {
            Ok(Self::Tag(tag.to_owned()))
        } else if let Some(number) = word.parse().ok().filter(|_| is_number) {
            Ok(Self::Number(number))
        } else if let Ok(version) = word.parse() {
            Ok(Self::Version(version))
        } else if let Some(time) = times::read(word) {
            Ok(Self::Time(time))
        } else {
            Err(Failure::Usage(format!(
                "`{word}` is no moment. Write a version (17, or as it is printed), a time (2026-05-30 or \
                 2026-05-30T12:00:00Z, in UTC) or a tag (tag:NAME)."
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_moment_or_none() {
        let read = |word| Moment::read(Some(word)).ok();
        let version = Version {
            incarnation: 3,
            number: 17,
        };
        assert_eq!(read("3.17"), Some(Moment::Version(version)));
        assert_eq!(read("17"), Some(Moment::Number(17)));
        assert_eq!(read("tag:17"), Some(Moment::Tag("17".into())));
        assert!(matches!(read("2026-05-30"), Some(Moment::Time(_))));
        for word in ["", "yesterday", "3.", "-1"] {
            assert_eq!(read(word), None, "{word}");
        }
    }
}
