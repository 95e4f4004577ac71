//! A draft: a message before it is checked, and what is wrong with it, field by field.

use std::borrow::Cow;

use super::post::Post;

/// The most characters of an author's name.
pub const MAX_AUTHOR: usize = 40;
/// The most characters of a title.
pub const MAX_TITLE: usize = 120;
/// The most bytes of a text.
pub const MAX_TEXT: usize = 10_000;
/// The author of a message whose author gave no name.
pub const ANONYMOUS: &str = "Anonymous";

/// What somebody wants to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The name of the author; empty for [`ANONYMOUS`].
    pub author: String,
    /// The title, which a reply does not have.
    pub title: String,
    /// The text, in Markdown.
    pub text: String,
}

/// Which kind of message a draft is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One that begins a topic, and has a title.
    Topic,
    /// One that answers another one, and has none.
    Reply,
}

/// A field of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The name of the author.
    Author,
    /// The title of a topic or of a board.
    Title,
    /// The text of a message, or what a board is about.
    Text,
    /// The passphrase of a name, or a moderator's.
    Passphrase,
    /// The passphrase that is to come after it.
    NewPassphrase,
    /// Why a moderator does something.
    Why,
    /// The box that says that somebody is sure.
    Sure,
}

impl Field {
    /// Its name in forms and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Title => "title",
            Self::Text => "text",
            Self::Passphrase => "passphrase",
            Self::NewPassphrase => "new",
            Self::Why => "why",
            Self::Sure => "sure",
        }
    }
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field.
    pub field: Field,
    /// What is wrong, as a sentence.
    pub sentence: String,
}

/// What is wrong with a draft: at least one problem.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|it| it.sentence.as_str()).collect::<Vec<_>>().join(" "))]
pub struct Invalid(pub Vec<FieldProblem>);

impl Invalid {
    /// What is wrong with a field, if anything is.
    pub fn of(&self, field: Field) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|it| it.field == field)
            .map(|it| it.sentence.as_str())
    }
}

impl Invalid {
    /// The same of the field for the new passphrase, where a form has two.
    pub(crate) fn of_new_passphrase(mut self) -> Self {
        for problem in &mut self.0 {
            problem.field = Field::NewPassphrase;
        }
        self
    }
}

impl Draft {
    /// The draft that says what a post says.
    pub fn of(post: &Post) -> Self {
        Self {
            author: post.author().to_owned(),
            title: post.title().to_owned(),
            text: post.text().to_owned(),
        }
    }

    /// The post that this draft is.
    ///
    /// # Errors
    /// [`Invalid`]: a field is missing or too long, or has characters that are not text.
    pub fn check(&self, kind: Kind) -> Result<Post, Invalid> {
        check([&self.author, &self.title, &self.text], kind)
    }
}

/// The post that an author's name, a title and a text are.
///
/// # Errors
/// As [`Draft::check`].
pub(crate) fn check([author, title, text]: [&str; 3], kind: Kind) -> Result<Post, Invalid> {
    let mut invalid = Invalid::default();
    let (author, title) = (as_line(author), as_line(title));
    let text = match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    };
    let text = text.trim_end().trim_start_matches('\n');
    invalid.expect_line(Field::Author, &author, MAX_AUTHOR);
    match kind {
        Kind::Topic => {
            invalid.expect_some(Field::Title, "A topic needs a title.", &title);
            invalid.expect_line(Field::Title, &title, MAX_TITLE);
        }
        Kind::Reply if !title.is_empty() => {
            invalid.note(Field::Title, "A reply has no title.".to_owned());
        }
        Kind::Reply => {}
    }
    invalid.expect_some(Field::Text, "There is no text yet.", text.trim());
    invalid.expect_text(text, MAX_TEXT);
    invalid.expect_no_mark(&author);
    let author = match is_blank(&author) {
        true => ANONYMOUS,
        false => &author,
    };
    match invalid.0.is_empty() {
        true => Ok(Post::new(author, &title, text)),
        false => Err(invalid),
    }
}

impl Invalid {
    pub(crate) fn note(&mut self, field: Field, sentence: String) {
        self.0.push(FieldProblem { field, sentence });
    }

    pub(crate) fn expect_some(&mut self, field: Field, sentence: &str, value: &str) {
        if is_blank(value) {
            self.note(field, sentence.to_owned());
        }
    }

    pub(crate) fn expect_line(&mut self, field: Field, value: &str, max: usize) {
        let what = match field {
            Field::Author => "The name",
            Field::Title => "The title",
            Field::Text => "The text",
            Field::Passphrase | Field::NewPassphrase => "The passphrase",
            Field::Why => "The reason",
            Field::Sure => "The box",
        };
        if is_plain(value) && value.len() <= max {
            return;
        }
        let length = value.chars().count();
        if length > max {
            self.note(
                field,
                format!("{what} has {length} characters, and may have {max}."),
            );
        } else if value.chars().any(is_no_text) {
            self.note(field, format!("{what} has a character that is not text."));
        }
    }

    /// A name with a mark would look as if it were protected.
    pub(crate) fn expect_no_mark(&mut self, name: &str) {
        let is_mark = |c| {
            matches!(
                c,
                '\u{2705}'
                    | '\u{2713}'
                    | '\u{2714}'
                    | '\u{1f5f8}'
                    | '\u{2611}'
                    | '\u{1f5f9}'
                    | '\u{221a}'
                    | '\u{237b}'
            )
        };
        if !name.is_ascii() && name.chars().any(is_mark) {
            let sentence = "A name has no check mark: the board puts one behind protected names.";
            self.note(Field::Author, sentence.to_owned());
        }
    }

    pub(crate) fn expect_text(&mut self, text: &str, max: usize) {
        let length = text.len();
        if length > max {
            self.note(
                Field::Text,
                format!("The text has {length} bytes, and may have {max}."),
            );
        } else if !text.lines().all(is_plain)
            && text
                .chars()
                .any(|c| c != '\n' && c != '\t' && is_no_text(c))
        {
            self.note(
                Field::Text,
                "The text has a character that is not text.".to_owned(),
            );
        }
    }
}

/// The words of a text, with one space between them.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The same, without a copy of what is one line already, as most names and titles are.
fn as_line(text: &str) -> Cow<'_, str> {
    let has_ends = text.starts_with(' ') || text.ends_with(' ');
    match is_plain(text) && !has_ends && !text.contains("  ") {
        true => Cow::Borrowed(text),
        false => Cow::Owned(one_line(text)),
    }
}

/// Whether a text is of the printable characters of ASCII. Many are, and the compiler looks at many bytes at once.
fn is_plain(text: &str) -> bool {
    let is_printable = |byte: u8| byte.wrapping_sub(b' ') <= b'~' - b' ';
    text.bytes()
        .fold(true, |all, byte| all & is_printable(byte))
}

/// Whether nothing of a text can be seen.
fn is_blank(text: &str) -> bool {
    let is_seen = |byte: u8| byte.is_ascii_graphic();
    !text.bytes().any(is_seen) && text.chars().all(|c| c.is_whitespace() || is_unseen(c))
}

/// Characters that show nothing, by which one name could look like another, or like none.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// Control characters, characters that turn the direction of the following text (so that one name can look like
/// another), and the two that XML forbids (so that one message would spoil the feed).
fn is_no_text(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(author: &str, title: &str, text: &str) -> Draft {
        let [author, title, text] = [author, title, text].map(str::to_owned);
        Draft {
            author,
            title,
            text,
        }
    }

    #[test]
    fn a_draft_is_tidied() {
        let post = draft(" Ada \n King ", " Tea ", "\n\n  one\r\ntwo \n");
        let post = post.check(Kind::Topic).unwrap();
        let parts = (post.author(), post.title(), post.text());
        assert_eq!(parts, ("Ada King", "Tea", "  one\ntwo"));
        let nameless = draft("", "", "x").check(Kind::Reply).unwrap();
        assert_eq!(nameless.author(), ANONYMOUS);
    }

    #[test]
    fn a_line_is_the_same_with_and_without_a_copy() {
        for line in [
            "",
            " ",
            "a",
            "a b",
            " a",
            "a ",
            "a  b",
            "a\tb",
            "a\nb",
            "\u{a0}a",
            "ä b",
            "a\u{2003}b",
            "~ !",
            "a\u{7f}",
        ] {
            assert_eq!(as_line(line), one_line(line), "{line:?}");
        }
        for byte in 0..=0x7f_u8 {
            let c = char::from(byte);
            assert_eq!(
                is_plain(&format!("x{c}")),
                c == ' ' || c.is_ascii_graphic(),
                "{c:?}"
            );
        }
    }

    #[test]
    fn every_problem_is_named_with_its_field() {
        let long = "ä".repeat(MAX_TEXT / 2 + 1);
        let invalid = draft(&"a".repeat(41), "", &long)
            .check(Kind::Topic)
            .unwrap_err();
        assert_eq!(
            invalid.of(Field::Author).unwrap(),
            "The name has 41 characters, and may have 40."
        );
        assert_eq!(invalid.of(Field::Title).unwrap(), "A topic needs a title.");
        assert_eq!(
            invalid.of(Field::Text).unwrap(),
            "The text has 10002 bytes, and may have 10000."
        );
        let invalid = draft("A\u{202e}da", "no", " \n ")
            .check(Kind::Reply)
            .unwrap_err();
        assert_eq!(invalid.0.len(), 3, "{invalid}");
    }

    #[test]
    fn what_cannot_be_seen_is_nothing() {
        let unseen = "\u{200b}\u{2800} \u{feff}";
        let invalid = draft("", unseen, unseen).check(Kind::Topic).unwrap_err();
        assert!(invalid.of(Field::Title).is_some() && invalid.of(Field::Text).is_some());
        let post = draft(unseen, "T", "one").check(Kind::Topic).unwrap();
        assert_eq!(post.author(), ANONYMOUS);
    }

    #[test]
    fn a_name_does_not_look_protected() {
        for name in ["Ada \u{2713}", "\u{2714}Ada", "Ada \u{2705}"] {
            let invalid = draft(name, "T", "one").check(Kind::Topic).unwrap_err();
            assert!(invalid.of(Field::Author).is_some(), "{name}");
        }
    }

    #[test]
    fn what_no_feed_may_have_is_no_text() {
        for c in ['\u{fffe}', '\u{ffff}', '\u{8}', '\u{85}'] {
            let c = &format!("x{c}y");
            let invalid = draft("", "", c).check(Kind::Reply).unwrap_err();
            assert!(invalid.of(Field::Text).is_some(), "{c:?}");
        }
    }
}
