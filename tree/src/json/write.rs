//! Writing a tree as JSON text piece by piece.

use std::fmt::Write;

use crate::node::Node;
use crate::siblings::Siblings;

/// How many bytes a piece has at least, except the last.
const PIECE: usize = 64 << 10;

impl<'t> Node<'t> {
    /// This node and everything below it as JSON.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let text = r#"{"attributes":{"title":"a book"},"children":[{"attributes":{"n":"1"}},{}]}"#;
    /// let tree = Tree::from_json(text)?;
    /// assert_eq!(tree.len(), 3);
    /// assert_eq!(tree.root().to_json(), text);
    /// # Ok::<(), weald::tree::JsonError>(())
    /// ```
    pub fn to_json(self) -> String {
        self.json_pieces().collect()
    }

    /// [`to_json`](Self::to_json) as a stream of pieces of some 64 KiB; a value is in one piece.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_json(r#"{"children": [{}, {}]}"#)?;
    /// let pieces: Vec<_> = tree.root().json_pieces().collect();
    /// assert_eq!(pieces, [r#"{"children":[{},{}]}"#]);
    /// # Ok::<(), weald::tree::JsonError>(())
    /// ```
    pub fn json_pieces(self) -> JsonPieces<'t> {
        self.json_pieces_with(write_value)
    }

    /// Like [`json_pieces`](Self::json_pieces), with each value written by `write`: for values that encode something
    /// else.
    pub fn json_pieces_with<W: FnMut(&mut String, &[u8])>(self, write: W) -> JsonPieces<'t, W> {
        JsonPieces {
            first: Some(self),
            open: Vec::new(),
            write,
        }
    }
}

/// A tree as JSON text, piece by piece.
#[derive(Clone)]
pub struct JsonPieces<'t, W = fn(&mut String, &[u8])> {
    first: Option<Node<'t>>,
    /// The rest of the children of each node that is open, and whether none of them was written yet.
    open: Vec<(Siblings<'t>, bool)>,
    write: W,
}

impl<'t, W: FnMut(&mut String, &[u8])> JsonPieces<'t, W> {
    /// Writes a node up to its first child, or completely if it has none.
    fn begin(&mut self, piece: &mut String, node: Node<'t>) {
        piece.push('{');
        let attributes = node.attributes();
        if !attributes.is_empty() {
            let mut before = "\"attributes\":{";
            for (name, value) in attributes.iter() {
                piece.push_str(before);
                write_text(piece, name);
                piece.push(':');
                (self.write)(piece, value);
                before = ",";
            }
            piece.push('}');
        }
        if node.child_count() == 0 {
            piece.push('}');
            return;
        }
        if !attributes.is_empty() {
            piece.push(',');
        }
        piece.push_str("\"children\":[");
        self.open.push((node.children(), true));
    }
}

impl<W: FnMut(&mut String, &[u8])> Iterator for JsonPieces<'_, W> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut piece = String::new();
        if let Some(first) = self.first.take() {
            self.begin(&mut piece, first);
        }
        while piece.len() < PIECE
            && let Some((left, is_new)) = self.open.last_mut()
        {
            let Some(child) = left.next() else {
                self.open.pop();
                piece.push_str("]}");
                continue;
            };
            if !std::mem::take(is_new) {
                piece.push(',');
            }
            self.begin(&mut piece, child);
        }
        (!piece.is_empty()).then_some(piece)
    }
}

impl<W> std::fmt::Debug for JsonPieces<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JsonPieces {{ open: {} }}", self.open.len())
    }
}

/// Writes a value as JSON: a string if it is UTF-8, else `{"hex": "00ff"}`.
pub fn write_value(text: &mut String, value: &[u8]) {
    if let Ok(value) = str::from_utf8(value) {
        return write_text(text, value);
    }
    text.push_str("{\"hex\":\"");
    for byte in value {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text.push_str("\"}");
}

fn write_text(text: &mut String, value: &str) {
    text.push_str(&serde_json::to_string(value).expect("a string is always valid JSON"));
}
