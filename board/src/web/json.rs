//! JSON, written by hand: most requests are for a page of a board, whose values are few and of three kinds. The result
//! is what `serde_json` writes; a test compares the two.

use std::ops::Range;

use weald::forest::Version;

use crate::text::moment::{PAIRS, Rfc3339};

/// An object or an array that is being written.
pub(crate) struct Json(Vec<u8>);

impl Json {
    /// Nothing yet, with room for this many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Text that is written as it is: names, brackets and commas.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// A time, with quotation marks.
    #[inline]
    pub(crate) fn time(&mut self, time: &Rfc3339) -> &mut Self {
        let mut quoted = [b'"'; 22];
        quoted[1..21].copy_from_slice(time.as_bytes());
        self.0.extend_from_slice(&quoted);
        self
    }

    /// A text, with quotation marks.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.utf8(text.as_bytes())
    }

    /// The same, of bytes that are UTF-8.
    pub(crate) fn utf8(&mut self, text: &[u8]) -> &mut Self {
        self.0.reserve(text.len() + 2);
        self.0.push(b'"');
        let mut rest = text;
        while let Some(at) = first_to_escape(rest) {
            self.0.extend_from_slice(&rest[..at]);
            self.escape(rest[at]);
            rest = &rest[at + 1..];
        }
        self.0.extend_from_slice(rest);
        self.0.push(b'"');
        self
    }

    /// A text as bytes, or `null`.
    pub(crate) fn utf8_or_null(&mut self, text: Option<&[u8]>) -> &mut Self {
        match text {
            Some(text) => self.utf8(text),
            None => self.raw("null"),
        }
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        // Most numbers are counts of answers.
        if let Ok(digit @ 0..10) = u8::try_from(number) {
            self.0.push(b'0' + digit);
            return self;
        }
        let (digits, of_number) = digits(number);
        self.0.extend_from_slice(&digits[of_number]);
        self
    }

    /// The two numbers of a version, as it is printed, without quotation marks.
    pub(crate) fn version(&mut self, version: Version) -> &mut Self {
        self.number(version.incarnation).raw(".");
        self.number(version.number)
    }

    /// Each value in turn, with commas between them.
    pub(crate) fn list<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.raw("[");
        for (at, value) in all.into_iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            write(self, value);
        }
        self.raw("]")
    }

    #[cold]
    fn escape(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x8 => b'b',
            0xc => b'f',
            _ => {
                let low = DIGITS[usize::from(byte & 15)];
                let high = DIGITS[usize::from(byte >> 4)];
                self.0
                    .extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                return;
            }
        };
        self.0.extend_from_slice(&[b'\\', short]);
    }
}

/// The digits of a number, and where they are.
fn digits(number: u64) -> ([u8; 20], Range<usize>) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number;
    while rest >= 10 {
        first -= 2;
        let pair = usize::try_from(rest % 100).unwrap_or_default();
        digits[first..first + 2].copy_from_slice(&PAIRS[pair]);
        rest /= 100;
    }
    if rest > 0 || first == digits.len() {
        first -= 1;
        digits[first] = b'0' + u8::try_from(rest).unwrap_or_default();
    }
    let of_number = first..digits.len();
    (digits, of_number)
}

/// Where the first byte is that JSON does not have as it is: control characters, `"` and `\`.
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let (wide, _) = bytes.as_chunks::<WIDE>();
    let found = wide.iter().position(has_to_escape);
    let (from, rest) = match found {
        Some(at) => (WIDE * at, &bytes[WIDE * at..]),
        // The last bytes of a long text are looked at together with some before them, which need no escape.
        None if bytes.last_chunk().is_some_and(|last| !has_to_escape(last)) => return None,
        None => (WIDE * wide.len(), &bytes[WIDE * wide.len()..]),
    };
    let found = first_in_words(rest)?;
    Some(from + found)
}

/// How many bytes are compared at once: the compiler makes two registers of them.
const WIDE: usize = 32;

fn must_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn has_to_escape(chunk: &[u8; WIDE]) -> bool {
    chunk
        .iter()
        .fold(false, |found, byte| found | must_escape(*byte))
}

/// The same for few bytes. Eight are compared at once, as in
/// <https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord>.
fn first_in_words(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, chunk) in words.iter().enumerate() {
        let word = u64::from_ne_bytes(*chunk);
        let is_control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
        let is_mark =
            has_zero(word ^ (ONES * u64::from(b'"'))) | has_zero(word ^ (ONES * u64::from(b'\\')));
        // The bits above the first found byte may be wrong, so it is looked at again.
        if (is_control | is_mark) != 0
            && let Some(found) = chunk.iter().position(|byte| must_escape(*byte))
        {
            return Some(8 * at + found);
        }
    }
    let found = rest.iter().position(|byte| must_escape(*byte))?;
    Some(8 * words.len() + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        let mut json = Json::with_room(0);
        json.text(text);
        String::from_utf8(json.into_bytes()).unwrap()
    }

    #[test]
    fn texts_are_written_as_serde_writes_them() {
        for byte in 0..=0x7f_u8 {
            for before in [0, 1, 7, 8, 9, 24, 31, 32, 33, 50, 63, 64, 95] {
                let it = format!("{}{}ä and more", "x".repeat(before), char::from(byte));
                assert_eq!(text(&it), serde_json::to_string(&it).unwrap(), "{it:?}");
            }
        }
        for it in [
            "",
            "\"\\\"",
            "\u{2028}\u{7f}ÿ\u{10ffff}",
            "\0\n\0\n\0\n\0\n\0\n",
        ] {
            assert_eq!(text(it), serde_json::to_string(it).unwrap(), "{it:?}");
        }
    }

    #[test]
    fn a_version_is_written_as_it_is_printed() {
        let version = Version {
            incarnation: 1_795_455_258_574_854_548,
            number: 10,
        };
        let mut json = Json::with_room(0);
        json.version(version);
        assert_eq!(json.into_bytes(), version.to_string().into_bytes());
    }

    #[test]
    fn numbers_are_written_as_serde_writes_them() {
        for number in [0, 1, 9, 10, 99, 100, 12_345_678_901, u64::MAX] {
            let mut json = Json::with_room(0);
            json.number(number);
            assert_eq!(json.into_bytes(), number.to_string().into_bytes());
        }
    }
}
