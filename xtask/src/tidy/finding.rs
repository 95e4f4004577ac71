//! What a check returns: a place, and a sentence that says what to do there.

use std::fmt;

/// One broken rule, at one place, with a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    sentence: String,
}

impl Finding {
    pub(super) fn new(path: &str, line: usize, sentence: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            sentence: sentence.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{} {}", self.path, self.line, self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_place_and_sentence() {
        let finding = Finding::new("a/b.rs", 7, "Say why.");
        assert_eq!(finding.to_string(), "a/b.rs:7 Say why.");
    }
}
