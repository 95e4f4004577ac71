//! Which characters XML allows, and how a text is written with references and read again.

/// Whether a document may have this character.
pub(super) fn is_allowed(sign: char) -> bool {
    matches!(sign, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

pub(super) fn is_space(sign: char) -> bool {
    matches!(sign, ' ' | '\t' | '\n' | '\r')
}

pub(super) fn is_name(text: &str) -> bool {
    let mut signs = text.chars();
    signs.next().is_some_and(begins_name) && signs.all(continues_name)
}

fn begins_name(sign: char) -> bool {
    matches!(
        sign,
        ':' | '_' | 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
            | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
            | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
            | '\u{10000}'..='\u{effff}'
    )
}

pub(super) fn continues_name(sign: char) -> bool {
    begins_name(sign)
        || matches!(sign, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// A text as it is in the file, with the ends of lines that XML makes of them; `None`, if it has what no document has.
pub(super) fn plain(text: &str) -> Option<String> {
    text.chars()
        .all(is_allowed)
        .then(|| text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The same with references resolved. In the value of an attribute each space that is no reference is `' '`.
pub(super) fn resolved(text: &str, is_value: bool) -> Option<String> {
    let text = plain(text)?;
    let literal = |part: &str| match is_value {
        true => part.replace(['\t', '\n'], " "),
        false => part.to_owned(),
    };
    let mut parts = text.split('&');
    let mut all = literal(parts.next()?);
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        all.push(referred(name)?);
        all.push_str(&literal(rest));
    }
    Some(all)
}

fn referred(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => {
            let number = name.strip_prefix('#')?;
            let (digits, radix) = match number.strip_prefix('x') {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            // A sign before the digits would be read, too.
            let is_number = digits.chars().all(|digit| digit.is_digit(radix));
            let sign = u32::from_str_radix(digits, radix)
                .ok()
                .filter(|_| is_number);
            sign.and_then(char::from_u32)
                .filter(|sign| is_allowed(*sign))?
        }
    })
}

/// Writes a text so that [`resolved`] gives it back; `false`, if no document has it.
#[must_use]
pub(super) fn write(piece: &mut String, text: &str, is_value: bool) -> bool {
    for sign in text.chars() {
        match sign {
            '<' => piece.push_str("&lt;"),
            '>' => piece.push_str("&gt;"),
            '&' => piece.push_str("&amp;"),
            '"' if is_value => piece.push_str("&quot;"),
            '\r' => piece.push_str("&#13;"),
            '\t' if is_value => piece.push_str("&#9;"),
            '\n' if is_value => piece.push_str("&#10;"),
            _ => piece.push(sign),
        }
    }
    text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_written_is_read_again() {
        for text in ["", "a<b>&\"'c", "\t \r\n\r\n", "ü🍵\u{fffd}", "]]>"] {
            for is_value in [false, true] {
                let mut written = String::new();
                assert!(write(&mut written, text, is_value));
                assert_eq!(resolved(&written, is_value).as_deref(), Some(text));
            }
        }
        assert!(!write(&mut String::new(), "\0", false));
    }

    #[test]
    fn references_are_resolved_and_ends_of_lines_are_one() {
        let text = "&lt;&#x1F375;&#10;&amp;lt;\r\na\rb";
        assert_eq!(resolved(text, false).as_deref(), Some("<🍵\n&lt;\na\nb"));
        assert_eq!(resolved("a\r\nb\tc&#9;", true).as_deref(), Some("a b c\t"));
        for wrong in [
            "&", "&lt", "&nbsp;", "&#0;", "&#xd800;", "&#+9;", "&#;", "\u{1}", "\u{ffff}",
        ] {
            assert_eq!(resolved(wrong, false), None, "{wrong:?}");
        }
    }

    #[test]
    fn names_begin_with_a_letter() {
        for name in ["a", "x:y-1.b", "_", "über"] {
            assert!(is_name(name), "{name}");
        }
        for wrong in ["", "1", "-a", "a b", "#a", "a=", "·"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
