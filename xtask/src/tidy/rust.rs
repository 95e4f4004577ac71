//! A Rust file with its comments and strings told from its code, without a full parser.
//!
//! - `code` has the bytes of the text, except that every byte of a comment, a string or a
//!   character literal is a space. Line ends stay, so offsets and line numbers agree.
//! - What macros make of the code is not seen.

use std::ops::Range;

/// The code of one Rust file.
pub(super) struct Rust {
    code: String,
}

/// One function with a body: its name and the lines from its `fn` to its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

impl Rust {
    pub(super) fn read(text: &str) -> Self {
        Self { code: blank(text) }
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// The line of the byte at `offset`, counted from 1.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// Every word of the code (names and keywords) with its offset.
    pub(super) fn words(&self) -> Vec<(usize, &str)> {
        let mut words = Vec::new();
        let mut start = None;
        for (offset, c) in self.code.char_indices().chain([(self.code.len(), ' ')]) {
            let is_word = c.is_alphanumeric() || c == '_';
            match (start, is_word) {
                (None, true) => start = Some(offset),
                (Some(first), false) => {
                    words.push((first, &self.code[first..offset]));
                    start = None;
                }
                _ => {}
            }
        }
        words
    }

    /// The inside of the brackets that open at `open`, or nothing if they never close.
    pub(super) fn inside(&self, open: usize) -> Option<Range<usize>> {
        let mut depth = 0usize;
        for (at, byte) in self.code.bytes().enumerate().skip(open) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(open + 1..at);
            }
        }
        None
    }

    /// The first byte at or after `offset` that is not white space.
    fn next_visible(&self, offset: usize) -> Option<(usize, u8)> {
        let rest = self.code.bytes().enumerate().skip(offset);
        rest.into_iter()
            .find(|(_, byte)| !byte.is_ascii_whitespace())
    }

    /// The lines, from attribute to closing brace, of each module that only tests see.
    pub(super) fn test_modules(&self) -> Vec<Range<usize>> {
        let starts = self.code.match_indices("#[cfg(");
        starts
            .filter_map(|(start, _)| self.test_module_at(start))
            .collect()
    }

    fn test_module_at(&self, start: usize) -> Option<Range<usize>> {
        let condition = self.inside(start + "#[cfg".len())?;
        let condition = self.code[condition].replace(char::is_whitespace, "");
        let mut names = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
        if !names.any(|name| name == "test") || condition.contains("not(test)") {
            return None;
        }
        let mut at = start;
        while let Some((attribute, b'#')) = self.next_visible(at) {
            at = self.inside(attribute + 1)?.end + 1;
        }
        let (item, _) = self.next_visible(at)?;
        let head = &self.code[item..item + self.code[item..].find(['{', ';', '='])?];
        let open = item + head.len();
        let is_module = head.split_whitespace().any(|word| word == "mod");
        if !is_module || self.code.as_bytes()[open] != b'{' {
            return None;
        }
        let end = self.inside(open)?.end;
        Some(self.line_of(start)..self.line_of(end) + 1)
    }

    /// Every function that has a body, those inside others included.
    pub(super) fn functions(&self) -> Vec<Function> {
        let words = self.words();
        let pairs = words.windows(2).filter(|pair| pair[0].1 == "fn");
        pairs
            .filter_map(|pair| self.function_at(pair[0].0, pair[1]))
            .collect()
    }

    fn function_at(&self, start: usize, name: (usize, &str)) -> Option<Function> {
        let between = &self.code[start + "fn".len()..name.0];
        if !between.chars().all(char::is_whitespace) {
            return None; // The type of a function pointer, or the name of a macro's variable.
        }
        let mut at = name.0;
        loop {
            at += self.code[at..].find(['(', '[', '{', ';'])?;
            match self.code.as_bytes()[at] {
                b'{' => break,
                b';' => return None,
                _ => at = self.inside(at)?.end + 1,
            }
        }
        let line = self.line_of(start);
        let lines = self.line_of(self.inside(at)?.end) + 1 - line;
        Some(Function {
            name: name.1.to_owned(),
            line,
            lines,
        })
    }
}

/// The text with every byte of comments and literals made a space, line ends kept.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    while out.len() < bytes.len() {
        let at = out.len();
        let end = literal_end(bytes, at);
        if end == at {
            out.push(bytes[at]);
        } else {
            out.extend(
                bytes[at..end]
                    .iter()
                    .map(|&b| if b == b'\n' { b } else { b' ' }),
            );
        }
    }
    String::from_utf8(out).expect("whole literals were replaced by spaces")
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins there.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment_length(rest),
        [b'"', ..] => quoted_length(rest, b'"'),
        [b'r', b'"' | b'#', ..] if !ends_a_name(bytes, at) => raw_string_length(rest),
        [b'\'', b'\\', ..] => quoted_length(rest, b'\''),
        [b'\'', first, ..] => character_length(rest, *first),
        _ => 0,
    };
    at + length
}

/// Whether the byte at `at` continues a name; `b` and `c` may stand before a raw string.
fn ends_a_name(bytes: &[u8], at: usize) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match bytes[..at] {
        [.., before, b'b' | b'c'] => is_name(before),
        [b'b' | b'c'] => false,
        [.., before] => is_name(before),
        [] => false,
    }
}

fn block_comment_length(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len().min(at + 1)
}

fn raw_string_length(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0; // A raw name such as `r#type`.
    }
    let closing = [b"\"", vec![b'#'; hashes].as_slice()].concat();
    let body = &rest[2 + hashes..];
    let end = body
        .windows(closing.len())
        .position(|window| window == closing);
    end.map_or(rest.len(), |end| 2 + hashes + end + closing.len())
}

/// The length of a character literal, or 0 if the quote begins a lifetime.
fn character_length(rest: &[u8], first: u8) -> usize {
    let width = match first {
        0..=0x7F => 1,
        0x80..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    if rest.get(1 + width) == Some(&b'\'') {
        width + 2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let code = Rust::read(text).code;
        assert_eq!(code.len(), text.len(), "offsets must agree");
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_blank() {
        assert_eq!(code("a // unsafe\nb /* x /* unsafe */ \" */ c"), "a b c");
    }

    #[test]
    fn strings_and_characters_are_blank_and_lifetimes_stay() {
        assert_eq!(
            code("f(\"un\\\"safe\", '\"', '\\'', b'x', 'é') <'a>"),
            "f( , , , b , ) <'a>"
        );
        assert_eq!(
            code("r#\"a \" unsafe\"# br\"x\" r#type var\"s\""),
            "b r#type var"
        );
    }

    #[test]
    fn functions_are_measured_from_the_keyword_to_the_closing_brace() {
        let text = "fn a() {}\nfn b<T>(x: [u8; { 1 }])\nwhere\n    T: Fn(),\n{\n    let y = 1;\n}\n\
                    trait C { fn c(); }\ntype D = fn(u8);\n";
        let functions = Rust::read(text).functions();
        let expected = |name: &str, line, lines| Function {
            name: name.to_owned(),
            line,
            lines,
        };
        assert_eq!(functions, [expected("a", 1, 1), expected("b", 2, 6)]);
    }

    #[test]
    fn only_modules_under_a_test_condition_are_test_modules() {
        let text = "#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn f() {}\n}\n\
                    #[cfg(not(test))]\nmod a {}\n#[cfg(all(test, not(loom)))]\npub(crate) mod b {}\n\
                    #[cfg(test)]\nmod c;\n#[cfg(test)]\nfn d() {}\n";
        assert_eq!(Rust::read(text).test_modules(), [1..6, 8..10]);
    }
}
