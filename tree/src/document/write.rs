//! Writing a document piece by piece.

use super::kind::Kind;
use super::number::is_number;
use super::text;
use crate::id::NodeId;
use crate::node::Node;
use crate::siblings::Siblings;

/// How many bytes a piece has at least, except the last.
const PIECE: usize = 64 << 10;

/// A tree is not a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node {node} is no JSON value: it has no {lacks}. `to_json` writes trees of any shape")]
pub struct NotADocument {
    /// The node.
    pub node: NodeId,
    /// What it lacks.
    pub lacks: &'static str,
}

impl<'t> Node<'t> {
    /// This node and everything below it as the JSON document that it stands for; the
    /// [module's](crate::document) page says how. The `key` of this node itself is not written.
    ///
    /// # Errors
    /// [`NotADocument`].
    pub fn to_document(self) -> Result<String, NotADocument> {
        let mut text = String::new();
        for piece in self.document_pieces() {
            text.push_str(&piece?);
        }
        Ok(text)
    }

    /// [`to_document`](Self::to_document) as a stream of pieces of some 64 KiB.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_document("[true, {}]")?;
    /// let pieces: Result<Vec<_>, _> = tree.root().document_pieces().collect();
    /// assert_eq!(pieces?, ["[true,{}]"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn document_pieces(self) -> DocumentPieces<'t> {
        DocumentPieces {
            first: Some(self),
            open: Vec::new(),
        }
    }
}

/// A document as text, piece by piece. After an error it ends.
#[derive(Clone)]
pub struct DocumentPieces<'t> {
    first: Option<Node<'t>>,
    /// The values that are open, with the rest of what is in them, and whether nothing was written in them yet.
    open: Vec<(Kind, Siblings<'t>, bool)>,
}

impl<'t> DocumentPieces<'t> {
    /// Writes until a piece is full or all is written.
    fn write(&mut self, piece: &mut String) -> Result<(), NotADocument> {
        if let Some(first) = self.first.take() {
            self.begin(piece, first)?;
        }
        while piece.len() < PIECE
            && let Some((kind, left, is_new)) = self.open.last_mut()
        {
            let kind = *kind;
            let Some(node) = left.next() else {
                piece.push(if kind == Kind::Object { '}' } else { ']' });
                self.open.pop();
                continue;
            };
            if !std::mem::take(is_new) {
                piece.push(',');
            }
            if kind == Kind::Object {
                let key = node.get("key");
                if !key.is_some_and(|key| text::encode(piece, key)) {
                    return Err(NotADocument {
                        node: node.id(),
                        lacks: "`key`, which a member of an object has",
                    });
                }
                piece.push(':');
            }
            self.begin(piece, node)?;
        }
        Ok(())
    }

    /// Writes a value, up to the first value in it.
    fn begin(&mut self, piece: &mut String, node: Node<'t>) -> Result<(), NotADocument> {
        let wrong = |lacks| NotADocument {
            node: node.id(),
            lacks,
        };
        let kind = node.get("type").and_then(Kind::of);
        let kind = kind.ok_or(wrong("`type` of a JSON value"))?;
        if matches!(kind, Kind::Object | Kind::Array) {
            piece.push(if kind == Kind::Object { '{' } else { '[' });
            self.open.push((kind, node.children(), true));
            return Ok(());
        }
        if node.child_count() > 0 {
            return Err(wrong(
                "place for children, because it is no object or array",
            ));
        }
        let value = node.get_str("value");
        match (kind, value) {
            (Kind::Null, _) => piece.push_str("null"),
            (Kind::String, _)
                if node
                    .get("value")
                    .is_some_and(|value| text::encode(piece, value)) => {}
            (Kind::Boolean, Some(value @ ("true" | "false"))) => piece.push_str(value),
            (Kind::Number, Some(value)) if is_number(value.as_bytes()) => piece.push_str(value),
            _ => return Err(wrong("`value` that its `type` may have")),
        }
        Ok(())
    }
}

impl Iterator for DocumentPieces<'_> {
    type Item = Result<String, NotADocument>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut piece = String::new();
        if let Err(error) = self.write(&mut piece) {
            (self.first, self.open) = (None, Vec::new());
            return Some(Err(error));
        }
        (!piece.is_empty()).then_some(Ok(piece))
    }
}
