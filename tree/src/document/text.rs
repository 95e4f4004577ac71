//! Strings of JSON as bytes. A string may have one half of a surrogate pair alone (`"\ud800"`), which is no character:
//! it is stored in three bytes, as UTF-8 would have it (WTF-8), and written as it was.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// What a string with its quotes says; `None`, if it is no string.
pub(super) fn decode(token: &[u8]) -> Option<Vec<u8>> {
    // Bytes are decoded from any bytes, and the decoder then lets control characters through, too.
    str::from_utf8(token).ok()?;
    if token.iter().any(|byte| *byte < 0x20) {
        return None;
    }
    let decoded: Decoded = serde_json::from_slice(token).ok()?;
    Some(decoded.0)
}

struct Decoded(Vec<u8>);

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Decoded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Decoded, E> {
                Ok(Decoded(bytes.to_vec()))
            }
        }

        // Only this lets halves of pairs through.
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Writes a string; `false`, if these are not the bytes of one.
#[must_use]
pub(super) fn encode(text: &mut String, mut value: &[u8]) -> bool {
    text.push('"');
    loop {
        let (valid, rest) = match str::from_utf8(value) {
            Ok(valid) => (valid, &[][..]),
            Err(error) => {
                let (valid, rest) = value.split_at(error.valid_up_to());
                (str::from_utf8(valid).unwrap_or_default(), rest)
            }
        };
        let quoted = serde_json::to_string(valid).expect("a string is always valid JSON");
        text.push_str(&quoted[1..quoted.len() - 1]);
        match rest {
            [] => break,
            [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, rest @ ..] => {
                let half = 0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
                text.push_str(&format!("\\u{half:04x}"));
                value = rest;
            }
            _ => return false,
        }
    }
    text.push('"');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_come_back() {
        for text in [
            r#""""#,
            r#""tea \"\\ ü""#,
            r#""\ud800""#,
            r#""a\udfffb""#,
            r#""\udc00\ud800""#,
        ] {
            let bytes = decode(text.as_bytes()).unwrap();
            let mut again = String::new();
            assert!(encode(&mut again, &bytes));
            assert_eq!(again, text);
        }
        // A whole pair is a character.
        assert_eq!(decode(br#""\ud83c\udf75""#).unwrap(), "🍵".as_bytes());
        for wrong in [
            &b"\"\xff\""[..],
            b"\"\\x\"",
            b"\"a",
            b"7",
            b"\"\xed\xa0\x80\"",
            b"\"a\nb\"",
            b"\"\0\"",
        ] {
            assert_eq!(decode(wrong), None, "{wrong:?}");
        }
        for wrong in [&b"\xff"[..], b"a\xed\xa0", b"\xed\x9f"] {
            assert!(!encode(&mut String::new(), wrong));
        }
    }
}
