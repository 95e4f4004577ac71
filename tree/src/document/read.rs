//! Reading a document piece by piece. The pieces may end anywhere, even within a character.
//!
//! A state machine looks at each byte once. What a token consists of is kept until its end is seen; serde_json decodes
//! the strings.

use super::kind::Kind;
use super::number::is_number;
use super::text;
use crate::builder::Builder;
use crate::id::Ids;
use crate::subtree::Subtree;
use crate::tree::Tree;

/// Why a text is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is not a JSON document: expected {expected} at byte {at}")]
pub struct DocumentError {
    /// The byte at which the text stops being a document, or at which the string or number there begins.
    pub at: usize,
    /// What was expected at that byte.
    pub expected: &'static str,
}

/// Reads a document piece by piece, and makes a tree of it. It holds the tree, and the string or number in which the
/// last piece ended.
///
/// ```
/// use weald::tree::DocumentReader;
///
/// let mut reader = DocumentReader::new();
/// for piece in [&b"{\"tea\": [1."[..], b"50, nul", b"l]}"] {
///     reader.push(piece)?;
/// }
/// let tree = reader.finish()?;
/// assert_eq!(tree.root().to_document()?, r#"{"tea":[1.50,null]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DocumentReader {
    ids: Ids,
    builder: Option<Builder>,
    /// The values that are open: objects or arrays.
    open: Vec<Kind>,
    /// The name of the member whose value comes next.
    key: Option<Vec<u8>>,
    expects: Expects,
    /// The string or the word that has begun, with its quote.
    token: Vec<u8>,
    /// Whether the token is a string, and its last byte escapes the next.
    is_escaped: bool,
    at: usize,
    error: Option<DocumentError>,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expects {
    Value,
    /// A value, or the end of an array that has just begun.
    FirstValue,
    Key,
    /// A name, or the end of an object that has just begun.
    FirstKey,
    Colon,
    /// A comma, or the end of what is open.
    More,
    /// Only space.
    Nothing,
}

impl Expects {
    fn text(self) -> &'static str {
        match self {
            Self::Value => "a value",
            Self::FirstValue => "a value or `]`",
            Self::Key => "a name in quotes",
            Self::FirstKey => "a name in quotes or `}`",
            Self::Colon => "`:`",
            Self::More => "`,` or the end of the object or array",
            Self::Nothing => "the end",
        }
    }
}

impl Tree {
    /// A new tree from a JSON document of any shape; the [module's](crate::document) page says how.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_document(r#"{"name": "Ada", "born": 1815}"#)?;
    /// let born = tree.root().child(1).unwrap();
    /// assert_eq!(born.get_str("key"), Some("born"));
    /// assert_eq!(born.get_str("value"), Some("1815"));
    /// assert_eq!(tree.root().to_document()?, r#"{"name":"Ada","born":1815}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn from_document(text: &str) -> Result<Self, DocumentError> {
        let mut reader = DocumentReader::new();
        reader.push(text.as_bytes())?;
        reader.finish()
    }

    /// Reads a document that is to be spliced into this tree; see [`DocumentReader::finish_subtree`].
    pub fn document_reader(&self) -> DocumentReader {
        DocumentReader::with_ids(self.ids())
    }
}

impl Default for DocumentReader {
    fn default() -> Self {
        Self::new()
    }
}

impl DocumentReader {
    /// A reader that makes a new tree.
    pub fn new() -> Self {
        Self::with_ids(&Ids::new())
    }

    fn with_ids(ids: &Ids) -> Self {
        Self {
            ids: ids.clone(),
            builder: None,
            open: Vec::new(),
            key: None,
            expects: Expects::Value,
            token: Vec::new(),
            is_escaped: false,
            at: 0,
            error: None,
        }
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// [`DocumentError`], as soon as no document begins so; then again for all that is pushed, and at the end.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), DocumentError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        for &byte in piece {
            if let Err(error) = self.read(byte) {
                self.error = Some(error.clone());
                return Err(error);
            }
            self.at += 1;
        }
        Ok(())
    }

    /// The tree, if the document is whole.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn finish(self) -> Result<Tree, DocumentError> {
        self.finish_subtree().map(Subtree::into_tree)
    }

    /// What was read, to be spliced into the tree of [`Tree::document_reader`].
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn finish_subtree(mut self) -> Result<Subtree, DocumentError> {
        // Only space may follow, and it ends a number.
        self.push(b" ")?;
        self.at -= 1;
        if self.expects != Expects::Nothing || !self.token.is_empty() {
            return Err(self.wrong());
        }
        let builder = self.builder.take();
        Ok(builder.ok_or_else(|| self.wrong())?.finish())
    }

    fn wrong(&self) -> DocumentError {
        DocumentError {
            at: self.at,
            expected: self.expects.text(),
        }
    }

    fn read(&mut self, byte: u8) -> Result<(), DocumentError> {
        match self.token.first() {
            Some(b'"') => self.read_string(byte),
            Some(_) if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.') => {
                self.token.push(byte);
                Ok(())
            }
            Some(_) => {
                self.end_word()?;
                self.read_sign(byte)
            }
            None => self.read_sign(byte),
        }
    }

    fn read_string(&mut self, byte: u8) -> Result<(), DocumentError> {
        self.token.push(byte);
        if byte != b'"' || self.is_escaped {
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return Ok(());
        }
        let token = std::mem::take(&mut self.token);
        let text = text::decode(&token).ok_or(DocumentError {
            at: self.at + 1 - token.len(),
            expected: "a string",
        })?;
        if matches!(self.expects, Expects::Key | Expects::FirstKey) {
            self.key = Some(text);
            self.expects = Expects::Colon;
        } else {
            self.add(Kind::String, Some(&text));
        }
        Ok(())
    }

    /// A word has ended: a number, or one of the three names.
    fn end_word(&mut self) -> Result<(), DocumentError> {
        let token = std::mem::take(&mut self.token);
        let wrong = DocumentError {
            at: self.at - token.len(),
            expected: self.expects.text(),
        };
        let text = str::from_utf8(&token).map_err(|_| wrong.clone())?;
        match text {
            "true" | "false" => self.add(Kind::Boolean, Some(&token)),
            "null" => self.add(Kind::Null, None),
            number if is_number(number.as_bytes()) => {
                self.add(Kind::Number, Some(number.as_bytes()))
            }
            _ => return Err(wrong),
        }
        Ok(())
    }

    fn read_sign(&mut self, byte: u8) -> Result<(), DocumentError> {
        let is_value = matches!(self.expects, Expects::Value | Expects::FirstValue);
        let is_key = matches!(self.expects, Expects::Key | Expects::FirstKey);
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' if is_value => self.begin(Kind::Object, Expects::FirstKey),
            b'[' if is_value => self.begin(Kind::Array, Expects::FirstValue),
            b'"' if is_value || is_key => self.token.push(byte),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' if is_value => self.token.push(byte),
            b':' if self.expects == Expects::Colon => self.expects = Expects::Value,
            b',' if self.expects == Expects::More => {
                self.expects = match self.open.last() {
                    Some(Kind::Object) => Expects::Key,
                    _ => Expects::Value,
                };
            }
            b'}' if self.may_end(Kind::Object, Expects::FirstKey) => self.end(),
            b']' if self.may_end(Kind::Array, Expects::FirstValue) => self.end(),
            _ => return Err(self.wrong()),
        }
        Ok(())
    }

    fn may_end(&self, kind: Kind, first: Expects) -> bool {
        let expects = self.expects;
        self.open.last() == Some(&kind) && (expects == first || expects == Expects::More)
    }

    /// A value without values in it.
    fn add(&mut self, kind: Kind, value: Option<&[u8]>) {
        let attributes = kind.attributes(self.key.take().as_deref(), value);
        match &mut self.builder {
            Some(builder) => _ = builder.leaf(attributes),
            None => self.builder = Some(Builder::with_ids(&self.ids, attributes)),
        }
        self.expect_more();
    }

    fn begin(&mut self, kind: Kind, expects: Expects) {
        let attributes = kind.attributes(self.key.take().as_deref(), None);
        match &mut self.builder {
            Some(builder) => _ = builder.open(attributes),
            None => self.builder = Some(Builder::with_ids(&self.ids, attributes)),
        }
        self.open.push(kind);
        self.expects = expects;
    }

    fn end(&mut self) {
        self.open.pop();
        if let (Some(builder), false) = (&mut self.builder, self.open.is_empty()) {
            builder.close();
        }
        self.expect_more();
    }

    fn expect_more(&mut self) {
        self.expects = match self.open.is_empty() {
            true => Expects::Nothing,
            false => Expects::More,
        };
    }
}

impl std::fmt::Debug for DocumentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DocumentReader {{ at: {} }}", self.at)
    }
}
