//! Reading a document piece by piece. The pieces may end anywhere, even within a character.
//!
//! A document is a sequence of texts and of marks, which begin with `<`. A text or a mark is kept until its end is
//! seen, and read then.

use super::characters::{is_space, plain, resolved};
use super::part::XmlPart;
use super::tag::{Start, Tag};
use crate::builder::Builder;
use crate::id::Ids;
use crate::subtree::Subtree;
use crate::tree::Tree;

/// Why a text is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is not an XML document: expected {expected} at byte {at}")]
pub struct XmlError {
    /// The byte at which the part begins that is wrong.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// Reads a document piece by piece, and makes a tree of it. It holds the tree, and the text or tag in which the last
/// piece ended.
///
/// ```
/// use weald::tree::XmlReader;
///
/// let mut reader = XmlReader::new();
/// for piece in [&b"<tea co"[..], b"lor='green'>hot &am", b"p; sweet</tea>"] {
///     reader.push(piece)?;
/// }
/// let tree = reader.finish()?;
/// assert_eq!(tree.root().to_xml()?, r#"<tea color="green">hot &amp; sweet</tea>"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct XmlReader {
    ids: Ids,
    builder: Option<Builder>,
    /// The names of the elements that are open.
    open: Vec<String>,
    /// Whether the element of the document has begun.
    has_element: bool,
    /// The text or the mark that has begun.
    token: Vec<u8>,
    /// Where it has begun.
    began: usize,
    /// The quote in which a tag is.
    quote: Option<u8>,
    /// How many bytes were read.
    at: usize,
    error: Option<XmlError>,
}

impl Tree {
    /// A new tree from an XML document; the [module's](crate::xml) page says how.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_xml("<tea sort='green'>hot <!-- not boiling --></tea>")?;
    /// let tea = tree.root().child(0).unwrap();
    /// assert_eq!((tea.get_str("#element"), tea.get_str("sort")), (Some("tea"), Some("green")));
    /// assert_eq!(tea.child(0).unwrap().get_str("#text"), Some("hot "));
    /// # Ok::<(), weald::tree::XmlError>(())
    /// ```
    ///
    /// # Errors
    /// [`XmlError`].
    pub fn from_xml(text: &str) -> Result<Self, XmlError> {
        let mut reader = XmlReader::new();
        reader.push(text.as_bytes())?;
        reader.finish()
    }

    /// Reads a document that is to be spliced into this tree; see [`XmlReader::finish_subtree`].
    pub fn xml_reader(&self) -> XmlReader {
        XmlReader::with_ids(self.ids())
    }
}

impl Default for XmlReader {
    fn default() -> Self {
        Self::new()
    }
}

impl XmlReader {
    /// A reader that makes a new tree.
    pub fn new() -> Self {
        Self::with_ids(&Ids::new())
    }

    fn with_ids(ids: &Ids) -> Self {
        Self {
            ids: ids.clone(),
            builder: None,
            open: Vec::new(),
            has_element: false,
            token: Vec::new(),
            began: 0,
            quote: None,
            at: 0,
            error: None,
        }
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// [`XmlError`], as soon as a part is complete with which no document goes on; then again for all that is pushed,
    /// and at the end.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), XmlError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        for &byte in piece {
            if let Err(expected) = self.read(byte) {
                let at = self.began;
                let error = XmlError { at, expected };
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
    /// [`XmlError`].
    pub fn finish(self) -> Result<Tree, XmlError> {
        self.finish_subtree().map(Subtree::into_tree)
    }

    /// What was read, to be spliced into the tree of [`Tree::xml_reader`].
    ///
    /// # Errors
    /// [`XmlError`].
    pub fn finish_subtree(mut self) -> Result<Subtree, XmlError> {
        self.push(&[])?;
        let wrong = |at, expected| Err(XmlError { at, expected });
        if self.token.first() == Some(&b'<') {
            return wrong(self.began, "the end of what begins here");
        }
        if let Err(expected) = self.end_text() {
            return wrong(self.began, expected);
        }
        match self.builder.take() {
            Some(builder) if self.has_element && self.open.is_empty() => Ok(builder.finish()),
            _ if self.has_element => wrong(self.at, "the end of an element"),
            _ => wrong(self.at, "an element"),
        }
    }

    fn read(&mut self, byte: u8) -> Result<(), &'static str> {
        if byte == b'<' && self.token.first() != Some(&b'<') {
            self.end_text()?;
        }
        if self.token.is_empty() {
            self.began = self.at;
        }
        self.token.push(byte);
        if self.token[0] == b'<' && self.is_complete(byte)? {
            let mark = std::mem::take(&mut self.token);
            return self.read_mark(&mark);
        }
        Ok(())
    }

    /// Whether a mark ends with its last byte.
    fn is_complete(&mut self, last: u8) -> Result<bool, &'static str> {
        let mark = &self.token[..];
        for (start, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
            if mark.starts_with(start.as_bytes()) {
                return Ok(mark.len() >= start.len() + end.len() && mark.ends_with(end.as_bytes()));
            }
            if mark.len() > 1 && start.as_bytes().starts_with(mark) {
                return Ok(false);
            }
        }
        if mark.starts_with(b"<!") {
            return Err("a comment or CDATA: document types are refused");
        }
        match self.quote {
            Some(quote) if quote == last => self.quote = None,
            Some(_) => {}
            None if matches!(last, b'"' | b'\'') => self.quote = Some(last),
            None => return Ok(last == b'>'),
        }
        Ok(false)
    }

    fn read_mark(&mut self, mark: &[u8]) -> Result<(), &'static str> {
        let mark = str::from_utf8(mark).map_err(|_| "UTF-8")?;
        let between = |start: &str, end: &str| mark.strip_prefix(start)?.strip_suffix(end);
        if let Some(text) = between("<!--", "-->") {
            let text = plain(text).ok_or("characters that XML allows")?;
            return self.add(XmlPart::Comment(&text), "a comment without `--`");
        }
        if let Some(text) = between("<![CDATA[", "]]>") {
            let text = plain(text).ok_or("characters that XML allows")?;
            return match self.open.is_empty() {
                true => Err("no CDATA outside of the element"),
                false => self.add(XmlPart::Cdata(&text), "CDATA"),
            };
        }
        if let Some(text) = between("<?", "?>") {
            let text = plain(text).ok_or("characters that XML allows")?;
            return match text
                .strip_prefix("xml")
                .filter(|text| text.starts_with(is_space))
            {
                Some(text) => self.declare(text.trim_matches(is_space)),
                None => self.add(XmlPart::Instruction(&text), "an instruction with a target"),
            };
        }
        match Tag::read(&mark[1..mark.len() - 1]).ok_or("a tag")? {
            Tag::Start(start) => self.begin(&start),
            Tag::End(name) => self.end(name),
        }
    }

    fn declare(&mut self, text: &str) -> Result<(), &'static str> {
        let document = XmlPart::Document(text);
        if self.builder.is_some() {
            return Err("no declaration after the beginning");
        }
        if text.is_empty() || !document.is_valid() {
            return Err("a declaration of a version 1 in UTF-8");
        }
        self.builder = Some(Builder::with_ids(&self.ids, document.attributes()));
        Ok(())
    }

    /// The builder, in which the document has begun.
    fn builder(&mut self) -> &mut Builder {
        self.builder
            .get_or_insert_with(|| Builder::with_ids(&self.ids, XmlPart::Document("").attributes()))
    }

    fn begin(&mut self, start: &Start<'_>) -> Result<(), &'static str> {
        if self.open.is_empty() && std::mem::replace(&mut self.has_element, true) {
            return Err("no second element beside the first");
        }
        let named = start.attributes.iter();
        let named = named.map(|(name, value)| (*name, value.as_bytes()));
        let attributes = XmlPart::Element(start.name).attributes().with_all(named);
        if start.is_empty {
            self.builder().leaf(attributes);
        } else {
            self.builder().open(attributes);
            self.open.push(start.name.to_owned());
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), &'static str> {
        if self.open.pop().as_deref() != Some(name) {
            return Err("the end of the element that is open");
        }
        self.builder().close();
        Ok(())
    }

    /// Adds a part without parts in it.
    fn add(&mut self, part: XmlPart<'_>, expected: &'static str) -> Result<(), &'static str> {
        if !part.is_valid() {
            return Err(expected);
        }
        self.builder().leaf(part.attributes());
        Ok(())
    }

    /// Reads the text up to here, if there is one.
    fn end_text(&mut self) -> Result<(), &'static str> {
        let token = std::mem::take(&mut self.token);
        let text = str::from_utf8(&token).map_err(|_| "UTF-8")?;
        // A mark at the beginning of a file says that it is UTF-8, and is not a part of the text.
        let text = match self.builder {
            None => text.strip_prefix('\u{feff}').unwrap_or(text),
            Some(_) => text,
        };
        if text.is_empty() {
            return Ok(());
        }
        if self.open.is_empty() && !text.chars().all(is_space) {
            return Err("only space outside of the element");
        }
        if text.contains("]]>") {
            return Err("no `]]>` in a text");
        }
        let text = resolved(text, false);
        let text = text.ok_or("characters that XML allows, and references that it knows")?;
        self.add(XmlPart::Text(&text), "a text")
    }
}

impl std::fmt::Debug for XmlReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "XmlReader {{ at: {} }}", self.at)
    }
}
