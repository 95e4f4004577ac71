//! Reads the punctuation and strings of a JSON text one by one. serde_json decodes the strings.

/// Why a text is not a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JSON text is not a tree: expected {expected} at byte {at}")]
pub struct JsonError {
    /// The byte at which the text stops being a tree.
    pub at: usize,
    /// What was expected at that byte.
    pub expected: &'static str,
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Skips space, and `sign` if it comes next; returns whether it did.
    pub(super) fn skip(&mut self, sign: u8) -> bool {
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(is_space).count();
        let is_next = self.text.as_bytes().get(self.at) == Some(&sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips `sign`, which must come next.
    pub(super) fn expect(&mut self, sign: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.skip(sign) {
            return Ok(());
        }
        Err(self.error(expected))
    }

    /// Reads a string, which must come next.
    pub(super) fn text(&mut self) -> Result<String, JsonError> {
        const EXPECTED: &str = "a string";
        self.expect(b'"', EXPECTED)?;
        let start = self.at - 1;
        let mut is_escaped = false;
        let rest = &self.text.as_bytes()[self.at..];
        let is_end = |byte: &u8| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        };
        let len = rest.iter().position(is_end);
        self.at = len.map_or(self.text.len(), |len| self.at + len + 1);
        serde_json::from_str(&self.text[start..self.at]).map_err(|_| JsonError {
            at: start,
            expected: EXPECTED,
        })
    }

    /// Checks that only space is left.
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        self.skip(b' ');
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(self.error("the end"))
    }

    pub(super) fn error(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.at,
            expected,
        }
    }
}
