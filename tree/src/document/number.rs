//! Which characters are a number in JSON (RFC 8259, section 6).

/// Whether this is a number, as a whole.
pub(super) fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, text) = digits(text);
    if whole.is_empty() || (whole.len() > 1 && whole[0] == b'0') {
        return false;
    }
    let text = match text.strip_prefix(b".") {
        None => text,
        Some(text) => match digits(text) {
            ([], _) => return false,
            (_, text) => text,
        },
    };
    match text {
        [] => true,
        [b'e' | b'E', text @ ..] => {
            let text = match text {
                [b'+' | b'-', text @ ..] => text,
                text => text,
            };
            !text.is_empty() && digits(text).1.is_empty()
        }
        _ => false,
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn only_numbers_are_numbers() {
        for number in [
            "0",
            "-0",
            "10",
            "1.50",
            "1e5",
            "-2.5E+10",
            "123456789012345678901234567890",
            "1e-999",
        ] {
            assert!(is_number(number.as_bytes()), "{number}");
        }
        for other in [
            "", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "1 ", "NaN", "1.e5", "--1",
        ] {
            assert!(!is_number(other.as_bytes()), "{other}");
        }
    }
}
