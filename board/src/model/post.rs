//! The post of a message: the name of its author, its title and its text, as one value.
//!
//! - The three are one erasable attribute, so that one erasure removes everything that a person has written, from every
//!   version. No part of it is in an index, in the bytes of a commit, or in any other attribute.
//! - The bytes are `author\ntitle\ntext`, which anybody who looks into the tree can read.

use weald::forest::ErasableBytes;

/// What a message says. A clone shares its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    bytes: ErasableBytes,
    /// Where the title and the text begin.
    title: usize,
    text: usize,
}

impl Post {
    /// A post of its parts. Author and title have no line break.
    pub(crate) fn new(author: &str, title: &str, text: &str) -> Self {
        debug_assert!(!author.contains('\n') && !title.contains('\n'), "one line");
        let bytes = [author, "\n", title, "\n", text].concat().into_bytes();
        Self {
            bytes: bytes.into(),
            title: author.len() + 1,
            text: author.len() + title.len() + 2,
        }
    }

    /// The post that a tree has. A value that is not a post (this program writes none) is read as a text without an
    /// author.
    pub(crate) fn of_bytes(bytes: ErasableBytes) -> Self {
        let mut breaks = bytes.iter().enumerate();
        let mut next = || {
            breaks
                .find(|(_, byte)| **byte == b'\n')
                .map(|(at, _)| at + 1)
        };
        let (title, text) = match (next(), next()) {
            (Some(title), Some(text)) if std::str::from_utf8(&bytes).is_ok() => (title, text),
            _ => {
                let text = String::from_utf8_lossy(&bytes);
                return Self::new("", "", &text);
            }
        };
        Self { bytes, title, text }
    }

    /// The name that its author gave.
    pub fn author(&self) -> &str {
        self.part(0, self.title - 1)
    }

    /// The title; empty for a reply.
    pub fn title(&self) -> &str {
        self.part(self.title, self.text - 1)
    }

    /// The text, as it was written: Markdown.
    pub fn text(&self) -> &str {
        self.part(self.text, self.bytes.len())
    }

    /// As a tree has it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name of its author, the title and the text as bytes: they are UTF-8, which was looked at when the post was
    /// read.
    pub fn parts(&self) -> [&[u8]; 3] {
        let part = |from, to| self.bytes.get(from..to).unwrap_or_default();
        let author = part(0, self.title - 1);
        let title = part(self.title, self.text - 1);
        [author, title, part(self.text, self.bytes.len())]
    }

    fn part(&self, from: usize, to: usize) -> &str {
        // The whole is UTF-8, and the ends are beside line breaks.
        std::str::from_utf8(&self.bytes[from..to]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_its_three_parts() {
        let post = Post::new("Ada", "Tée", "one\ntwo\n");
        let again = Post::of_bytes(post.bytes().into());
        assert_eq!(again, post);
        let parts = (again.author(), again.title(), again.text());
        assert_eq!(parts, ("Ada", "Tée", "one\ntwo\n"));
        let bytes = [parts.0, parts.1, parts.2].map(str::as_bytes);
        assert_eq!(again.parts(), bytes);
    }

    #[test]
    fn what_is_no_post_is_a_text() {
        for bytes in [&b""[..], b"a", b"a\nb", b"a\n\xff\nc"] {
            let post = Post::of_bytes(bytes.into());
            assert_eq!((post.author(), post.title()), ("", ""));
            assert_eq!(post.text(), String::from_utf8_lossy(bytes));
        }
    }
}
