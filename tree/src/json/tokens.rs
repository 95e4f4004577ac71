//! Splits JSON text, which comes in pieces, into punctuation and strings. serde_json decodes the strings.

use super::error::JsonError;

/// What a text consists of.
pub(super) enum Token {
    /// A byte outside of strings that is not a space.
    Sign(u8),
    Text(String),
}

/// The place in a text, and the string in which the last piece ended.
#[derive(Default)]
pub(super) struct Tokens {
    at: usize,
    /// The string that has begun, with its quotes; empty outside of strings.
    string: Vec<u8>,
    /// Where the last string began.
    start: usize,
    /// Whether the last byte of the string escapes the next.
    is_escaped: bool,
}

impl Tokens {
    /// The next token that ends in `piece`, which loses what was read. The place is then behind a string, and before a
    /// sign.
    pub(super) fn next(&mut self, piece: &mut &[u8]) -> Result<Option<Token>, JsonError> {
        if self.string.is_empty() {
            let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            self.skip(piece, piece.iter().take_while(is_space).count());
            match piece.first() {
                None => return Ok(None),
                Some(b'"') => {
                    self.string.push(b'"');
                    self.start = self.at;
                    self.skip(piece, 1);
                }
                Some(sign) => return Ok(Some(Token::Sign(*sign))),
            }
        }
        let is_end = |byte: &u8| {
            let is_end = *byte == b'"' && !self.is_escaped;
            self.is_escaped = *byte == b'\\' && !self.is_escaped;
            is_end
        };
        let end = piece.iter().position(is_end);
        let len = end.map_or(piece.len(), |end| end + 1);
        self.string.extend_from_slice(&piece[..len]);
        self.skip(piece, len);
        if end.is_none() {
            return Ok(None);
        }
        let text = serde_json::from_slice(&self.string).map_err(|_| self.wrong_string())?;
        self.string.clear();
        Ok(Some(Token::Text(text)))
    }

    /// Goes behind the sign that was read.
    pub(super) fn pass_sign(&mut self, piece: &mut &[u8]) {
        self.skip(piece, 1);
    }

    /// Checks that no string is open at the end of the text.
    pub(super) fn end(&self) -> Result<(), JsonError> {
        match self.string.is_empty() {
            true => Ok(()),
            false => Err(self.wrong_string()),
        }
    }

    pub(super) fn error(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.at,
            expected,
        }
    }

    /// An error at the beginning of the string that was read last.
    pub(super) fn error_at_string(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.start,
            expected,
        }
    }

    fn wrong_string(&self) -> JsonError {
        self.error_at_string("a string")
    }

    fn skip(&mut self, piece: &mut &[u8], len: usize) {
        *piece = &piece[len..];
        self.at += len;
    }
}
