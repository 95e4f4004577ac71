//! Reading a tree from JSON text piece by piece. The pieces may end anywhere, even within a character.
//!
//! A state machine takes each token once.

use std::collections::HashSet;

use super::error::JsonError;
use super::grammar::{Behind, Next};
use super::tokens::{Token, Tokens};
use crate::attributes::Attributes;
use crate::builder::Builder;
use crate::id::{Ids, NodeId};
use crate::subtree::Subtree;
use crate::tree::Tree;

impl Tree {
    /// A new tree from JSON. Erasable values, which a forest has exported, are plain in it.
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let mut reader = JsonReader::new();
        reader.push(text.as_bytes())?;
        reader.finish()
    }

    /// A new tree from JSON, without its erasable values: `take` gets each of them with its node and its name, once the
    /// whole text was read.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let text = r#"{"attributes":{"born":"1815","name":{"erasable":"Ada"}}}"#;
    /// let mut taken = Vec::new();
    /// let tree = Tree::from_json_with(text, &mut |node, name, value| {
    ///     taken.push((node, name.to_owned(), value.to_vec()));
    /// })?;
    /// assert_eq!(tree.root().to_json(), r#"{"attributes":{"born":"1815"}}"#);
    /// assert_eq!(taken, [(tree.root().id(), "name".to_owned(), b"Ada".to_vec())]);
    /// # Ok::<(), weald::tree::JsonError>(())
    /// ```
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree; nothing was taken then.
    pub fn from_json_with(
        text: &str,
        take: &mut dyn FnMut(NodeId, &str, &[u8]),
    ) -> Result<Self, JsonError> {
        let mut reader = JsonReader::new().with_erasable_apart();
        reader.push(text.as_bytes())?;
        reader.finish_with(take)
    }

    /// A subtree from JSON that can be spliced into this tree.
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree.
    pub fn subtree_from_json(&self, text: &str) -> Result<Subtree, JsonError> {
        let mut reader = self.json_reader();
        reader.push(text.as_bytes())?;
        reader.finish_subtree()
    }

    /// Reads a subtree that is to be spliced into this tree; see [`JsonReader::finish_subtree`].
    pub fn json_reader(&self) -> JsonReader {
        JsonReader::with_ids(self.ids())
    }
}

/// Reads JSON text piece by piece, and makes a tree of it. It holds the tree, the attributes of the node that is being
/// read, and the string in which the last piece ended.
///
/// ```
/// use weald::tree::JsonReader;
///
/// let mut reader = JsonReader::new();
/// for piece in [&b"{\"attributes\": {\"te"[..], b"a\": \"green\"}, \"child", b"ren\": [{}]}"] {
///     reader.push(piece)?;
/// }
/// let tree = reader.finish()?;
/// assert_eq!(tree.root().to_json(), r#"{"attributes":{"tea":"green"},"children":[{}]}"#);
/// # Ok::<(), weald::tree::JsonError>(())
/// ```
pub struct JsonReader {
    ids: Ids,
    tokens: Tokens,
    next: Next,
    builder: Option<Builder>,
    /// How many nodes are open whose children are being read.
    depth: usize,
    node: OpenNode,
    /// The erasable values of the nodes that were read, if they are to be kept apart.
    apart: Option<Vec<Apart>>,
    error: Option<JsonError>,
}

/// An erasable value with its name and its node, which is `None` if it is the root.
type Apart = (Option<NodeId>, String, Vec<u8>);

/// The attributes of the node that is being read.
#[derive(Default)]
struct OpenNode {
    names: HashSet<String>,
    plain: Vec<(String, Vec<u8>)>,
    erasable: Vec<(String, Vec<u8>)>,
    /// The name of the attribute whose value is being read.
    name: String,
    /// Whether the value that is being read is within an `erasable`.
    is_erasable: bool,
}

impl Default for JsonReader {
    fn default() -> Self {
        Self::new()
    }
}

impl JsonReader {
    /// A reader that makes a new tree.
    pub fn new() -> Self {
        Self::with_ids(&Ids::new())
    }

    fn with_ids(ids: &Ids) -> Self {
        Self {
            ids: ids.clone(),
            tokens: Tokens::default(),
            next: Next::Node,
            builder: None,
            depth: 0,
            node: OpenNode::default(),
            apart: None,
            error: None,
        }
    }

    /// Keeps erasable values apart, for [`finish_with`](Self::finish_with). Otherwise they are plain in the tree.
    #[must_use]
    pub fn with_erasable_apart(self) -> Self {
        Self {
            apart: Some(Vec::new()),
            ..self
        }
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// [`JsonError`], as soon as no tree begins so; then again for all that is pushed, and at the end.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), JsonError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let read = self.read(piece);
        self.error = read.clone().err();
        read
    }

    /// The tree, if the text is whole. It lacks the erasable values that were to be kept apart.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn finish(self) -> Result<Tree, JsonError> {
        self.finish_with(&mut |_, _, _| ())
    }

    /// The tree, if the text is whole: `take` gets each erasable value that was to be kept apart, with its node and its
    /// name.
    ///
    /// # Errors
    /// [`JsonError`]; nothing was taken then.
    pub fn finish_with(
        mut self,
        take: &mut dyn FnMut(NodeId, &str, &[u8]),
    ) -> Result<Tree, JsonError> {
        let apart = self.apart.take();
        let tree = self.finish_subtree()?.into_tree();
        for (node, name, value) in apart.unwrap_or_default() {
            take(node.unwrap_or_else(|| tree.root().id()), &name, &value);
        }
        Ok(tree)
    }

    /// What was read, to be spliced into the tree of [`Tree::json_reader`]. It lacks the erasable values that were to
    /// be kept apart.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn finish_subtree(self) -> Result<Subtree, JsonError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.tokens.end()?;
        match (self.next, self.builder) {
            (Next::Nothing, Some(builder)) => Ok(builder.finish()),
            (next, _) => Err(self.tokens.error(next.text())),
        }
    }

    fn read(&mut self, mut piece: &[u8]) -> Result<(), JsonError> {
        while let Some(token) = self.tokens.next(&mut piece)? {
            match token {
                Token::Text(text) => self.read_text(text)?,
                Token::Sign(sign) => {
                    self.read_sign(sign)?;
                    self.tokens.pass_sign(&mut piece);
                }
            }
        }
        Ok(())
    }

    fn read_sign(&mut self, sign: u8) -> Result<(), JsonError> {
        self.next = match (self.next, sign) {
            (Next::Node, b'{') => Next::FirstName,
            (Next::FirstName | Next::AfterAttributes | Next::LeafEnd, b'}') => self.end_leaf(),
            (Next::Colon(behind), b':') => behind.next(),
            (Next::Attributes, b'{') => Next::FirstAttribute,
            (Next::FirstAttribute | Next::AfterValue, b'}') => Next::AfterAttributes,
            (Next::AfterValue, b',') => Next::Attribute,
            (Next::Value, b'{') => Next::Form,
            (Next::Bytes, b'{') => Next::BytesForm,
            (Next::BytesEnd, b'}') => Next::FormEnd,
            (Next::FormEnd, b'}') => Next::AfterValue,
            (Next::AfterAttributes, b',') => Next::ChildrenName,
            (Next::Children, b'[') => Next::FirstChild,
            (Next::FirstChild, b']') => Next::LeafEnd,
            (Next::FirstChild, b'{') => {
                self.open();
                Next::FirstName
            }
            (Next::AfterChild, b',') => Next::Node,
            (Next::AfterChild, b']') => Next::ChildrenEnd,
            (Next::ChildrenEnd, b'}') => self.close(),
            (next, _) => return Err(self.tokens.error(next.text())),
        };
        Ok(())
    }

    fn read_text(&mut self, text: String) -> Result<(), JsonError> {
        self.next = match (self.next, &*text) {
            (Next::FirstName, "attributes") => Next::Colon(Behind::Attributes),
            (Next::FirstName | Next::ChildrenName, "children") => Next::Colon(Behind::Children),
            (Next::FirstName, _) => {
                return Err(self.tokens.error(Next::ChildrenName.text()));
            }
            (Next::FirstAttribute | Next::Attribute, _) => {
                if !self.node.names.insert(text.clone()) {
                    let expected = "another name, because the node has this attribute already,";
                    return Err(self.tokens.error(expected));
                }
                self.node.name = text;
                self.node.is_erasable = false;
                Next::Colon(Behind::Value)
            }
            (Next::Value, _) => {
                self.put(text.into_bytes());
                Next::AfterValue
            }
            (Next::Form | Next::BytesForm, "hex") => Next::Colon(Behind::Digits),
            (Next::Form, "erasable") => {
                self.node.is_erasable = true;
                Next::Colon(Behind::Bytes)
            }
            (Next::Form, "erased" | "elsewhere") => Next::Colon(Behind::Time),
            (Next::ChildrenName | Next::Form | Next::BytesForm, _) => {
                return Err(self.tokens.error(self.next.text()));
            }
            (Next::Digits, digits) => {
                let bytes = bytes_of(digits);
                let bytes = bytes.ok_or_else(|| self.tokens.error("pairs of hexadecimal digits"));
                let is_within = self.node.is_erasable;
                self.put(bytes?);
                match is_within {
                    true => Next::BytesEnd,
                    false => Next::FormEnd,
                }
            }
            (Next::Bytes, _) => {
                self.put(text.into_bytes());
                Next::FormEnd
            }
            (Next::Time, _) => Next::FormEnd,
            (next, _) => return Err(self.tokens.error_at_string(next.text())),
        };
        Ok(())
    }

    /// Keeps the value of the attribute that is being read.
    fn put(&mut self, value: Vec<u8>) {
        let node = &mut self.node;
        let name = std::mem::take(&mut node.name);
        match node.is_erasable && self.apart.is_some() {
            true => node.erasable.push((name, value)),
            false => node.plain.push((name, value)),
        }
    }

    /// A node without children has ended.
    fn end_leaf(&mut self) -> Next {
        self.add(Builder::leaf);
        self.after_node()
    }

    /// The first child of a node begins.
    fn open(&mut self) {
        self.add(Builder::open);
        self.depth += 1;
    }

    /// A node with children has ended.
    fn close(&mut self) -> Next {
        self.depth -= 1;
        if let (Some(builder), true) = (&mut self.builder, self.depth > 0) {
            builder.close();
        }
        self.after_node()
    }

    fn after_node(&self) -> Next {
        match self.depth {
            0 => Next::Nothing,
            _ => Next::AfterChild,
        }
    }

    /// Adds the node whose attributes were read; the first one is the root.
    fn add(&mut self, add: fn(&mut Builder, Attributes) -> NodeId) {
        self.node.names.clear();
        let plain = self.node.plain.iter();
        let attributes = plain.map(|(name, value)| (&**name, &**value)).collect();
        self.node.plain.clear();
        let node = match &mut self.builder {
            Some(builder) => Some(add(builder, attributes)),
            None => {
                self.builder = Some(Builder::with_ids(&self.ids, attributes));
                None
            }
        };
        if let Some(apart) = &mut self.apart {
            let erasable = self.node.erasable.drain(..);
            apart.extend(erasable.map(|(name, value)| (node, name, value)));
        }
    }
}

impl std::fmt::Debug for JsonReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JsonReader {{ depth: {} }}", self.depth)
    }
}

/// Decodes pairs of hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| match pair {
        [a, b] => {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            u8::try_from(16 * digit(*a)? + digit(*b)?).ok()
        }
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}
