//! Writing a document piece by piece.

use super::characters::{self, is_name, is_space};
use super::part::XmlPart;
use crate::id::NodeId;
use crate::node::Node;
use crate::siblings::Siblings;

/// How many bytes a piece has at least, except the last.
const PIECE: usize = 64 << 10;

/// A tree is not an XML document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node {node} is no part of an XML document: it has no {lacks}. `to_json` writes trees of any shape"
)]
pub struct NotXml {
    /// The node.
    pub node: NodeId,
    /// What it lacks.
    pub lacks: &'static str,
}

impl<'t> Node<'t> {
    /// This node and everything below it as the XML that it stands for; the [module's](crate::xml) page says how. Of a
    /// document that is the whole, and of any other part that part.
    ///
    /// # Errors
    /// [`NotXml`].
    pub fn to_xml(self) -> Result<String, NotXml> {
        let mut text = String::new();
        for piece in self.xml_pieces() {
            text.push_str(&piece?);
        }
        Ok(text)
    }

    /// [`to_xml`](Self::to_xml) as a stream of pieces of some 64 KiB.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_xml("<tea><hot></hot></tea>")?;
    /// let pieces: Result<Vec<_>, _> = tree.root().xml_pieces().collect();
    /// assert_eq!(pieces?, ["<tea><hot/></tea>"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn xml_pieces(self) -> XmlPieces<'t> {
        XmlPieces {
            first: Some(self),
            open: Vec::new(),
        }
    }
}

/// A document as text, piece by piece. After an error it ends.
#[derive(Clone)]
pub struct XmlPieces<'t> {
    first: Option<Node<'t>>,
    /// The names of the elements that are open, with the rest of what is in them. A document has no name.
    open: Vec<(Option<&'t str>, Siblings<'t>)>,
}

impl<'t> XmlPieces<'t> {
    /// Writes until a piece is full or all is written.
    fn write(&mut self, piece: &mut String) -> Result<(), NotXml> {
        if let Some(first) = self.first.take() {
            self.begin(piece, first)?;
        }
        while piece.len() < PIECE
            && let Some((name, left)) = self.open.last_mut()
        {
            match (left.next(), *name) {
                (Some(node), _) => self.begin(piece, node)?,
                (None, name) => {
                    if let Some(name) = name {
                        piece.extend(["</", name, ">"]);
                    }
                    self.open.pop();
                }
            }
        }
        Ok(())
    }

    /// Writes a part, up to the first part in it.
    fn begin(&mut self, piece: &mut String, node: Node<'t>) -> Result<(), NotXml> {
        let wrong = |lacks| NotXml {
            node: node.id(),
            lacks,
        };
        let part = XmlPart::of(node).ok_or(wrong("one attribute that says which part it is"))?;
        if !part.is_valid() {
            return Err(wrong("text that such a part may have"));
        }
        let is_open = matches!(part, XmlPart::Document(_) | XmlPart::Element(_));
        if !is_open && node.child_count() > 0 {
            return Err(wrong("place for children, because it is no element"));
        }
        match part {
            XmlPart::Document(text) => {
                if !self.open.is_empty() {
                    return Err(wrong("place within another, because it is a document"));
                }
                if !is_document(node) {
                    return Err(wrong("one element, with only space and marks beside it"));
                }
                if !text.is_empty() {
                    piece.extend(["<?xml ", text, "?>"]);
                }
                self.open.push((None, node.children()));
            }
            XmlPart::Element(name) => {
                piece.extend(["<", name]);
                if !write_attributes(piece, node) {
                    return Err(wrong("attributes of XML alone"));
                }
                if node.child_count() == 0 {
                    piece.push_str("/>");
                } else {
                    piece.push('>');
                    self.open.push((Some(name), node.children()));
                }
            }
            XmlPart::Text(text) => {
                let is_written = characters::write(piece, text, false);
                debug_assert!(is_written, "the text was checked");
            }
            XmlPart::Cdata(text) => piece.extend(["<![CDATA[", text, "]]>"]),
            XmlPart::Comment(text) => piece.extend(["<!--", text, "-->"]),
            XmlPart::Instruction(text) => piece.extend(["<?", text, "?>"]),
        }
        Ok(())
    }
}

#[must_use]
fn write_attributes(piece: &mut String, node: Node<'_>) -> bool {
    let all = node.attributes().iter_bytes();
    let mut others = all.filter(|(name, _)| *name != b"#element");
    others.all(|(name, value)| {
        let (Ok(name), Ok(value)) = (str::from_utf8(name), str::from_utf8(value)) else {
            return false;
        };
        piece.extend([" ", name, "=\""]);
        let is_written = characters::write(piece, value, true);
        piece.push('"');
        is_written && is_name(name)
    })
}

/// Whether there is one element, and beside it only what may be there.
fn is_document(node: Node<'_>) -> bool {
    let mut elements = 0;
    let are_allowed = node.children().all(|child| match XmlPart::of(child) {
        Some(XmlPart::Element(_)) => {
            elements += 1;
            true
        }
        Some(XmlPart::Text(text)) => text.chars().all(is_space),
        Some(XmlPart::Comment(_) | XmlPart::Instruction(_)) => true,
        _ => false,
    });
    are_allowed && elements == 1
}

impl Iterator for XmlPieces<'_> {
    type Item = Result<String, NotXml>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut piece = String::new();
        if let Err(error) = self.write(&mut piece) {
            (self.first, self.open) = (None, Vec::new());
            return Some(Err(error));
        }
        (!piece.is_empty()).then_some(Ok(piece))
    }
}
