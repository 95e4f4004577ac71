//! A tree as JSON text and back.
//!
//! A node is `{"attributes": {name: value, …}, "children": [node, …]}`; either may be missing, and
//! attributes come first. A value that is UTF-8 is a string, any other is `{"hex": "00ff"}`. Ids are not
//! written: reading gives a new tree of the same shape. A forest writes two values more:
//! `{"erasable": value}`, which is plain in a tree unless the caller takes it, and `{"erased": "1763780000"}`,
//! which has lost its bytes and is left out.
//!
//! Writer and reader keep the open nodes in a list of their own, so only memory bounds the depth.

mod scan;

use std::collections::HashSet;
use std::fmt::Write;

use crate::attributes::Attributes;
use crate::builder::Builder;
use crate::id::{Ids, NodeId};
use crate::node::Node;
use crate::siblings::Siblings;
use crate::subtree::Subtree;
use crate::tree::Tree;

pub use scan::JsonError;
use scan::Scanner;

impl Node<'_> {
    /// This node and everything below it as JSON.
    ///
    /// ```
    /// use weald_tree::Tree;
    ///
    /// let text = r#"{"attributes":{"title":"a book"},"children":[{"attributes":{"n":"1"}},{}]}"#;
    /// let tree = Tree::from_json(text)?;
    /// assert_eq!(tree.len(), 3);
    /// assert_eq!(tree.root().to_json(), text);
    /// # Ok::<(), weald_tree::JsonError>(())
    /// ```
    pub fn to_json(self) -> String {
        self.to_json_with(&mut write_value)
    }

    /// Like [`to_json`](Self::to_json), with each value written by `write`: for values that encode something
    /// else.
    pub fn to_json_with(self, write: &mut dyn FnMut(&mut String, &[u8])) -> String {
        let mut text = String::new();
        let mut levels = Vec::new();
        write_node(&mut text, self, (&mut levels, write));
        while let Some(level) = levels.last_mut() {
            let Some(child) = level.next() else {
                levels.pop();
                text.push_str("]}");
                continue;
            };
            if !text.ends_with('[') {
                text.push(',');
            }
            write_node(&mut text, child, (&mut levels, write));
        }
        text
    }
}

impl Tree {
    /// A new tree from JSON. Erasable values, which a forest has exported, are plain in it.
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        read(text, &Ids::new(), &mut None).map(Subtree::into_tree)
    }

    /// A new tree from JSON, without its erasable values: `take` gets each of them with its node and its name, once the
    /// whole text was read.
    ///
    /// ```
    /// use weald_tree::Tree;
    ///
    /// let text = r#"{"attributes":{"born":"1815","name":{"erasable":"Ada"}}}"#;
    /// let mut taken = Vec::new();
    /// let tree = Tree::from_json_with(text, &mut |node, name, value| {
    ///     taken.push((node, name.to_owned(), value.to_vec()));
    /// })?;
    /// assert_eq!(tree.root().to_json(), r#"{"attributes":{"born":"1815"}}"#);
    /// assert_eq!(taken, [(tree.root().id(), "name".to_owned(), b"Ada".to_vec())]);
    /// # Ok::<(), weald_tree::JsonError>(())
    /// ```
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree; nothing was taken then.
    pub fn from_json_with(
        text: &str,
        take: &mut dyn FnMut(NodeId, &str, &[u8]),
    ) -> Result<Self, JsonError> {
        let mut erasable = Some(Vec::new());
        let tree = read(text, &Ids::new(), &mut erasable)?.into_tree();
        for (node, name, value) in erasable.unwrap_or_default() {
            let node = node.unwrap_or_else(|| tree.root().id());
            take(node, &name, &value);
        }
        Ok(tree)
    }

    /// A subtree from JSON that can be spliced into this tree.
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree.
    pub fn subtree_from_json(&self, text: &str) -> Result<Subtree, JsonError> {
        read(text, self.ids(), &mut None)
    }
}

/// Writes a value.
type WriteValue<'a> = &'a mut dyn FnMut(&mut String, &[u8]);

/// Writes a node up to its first child, or completely if it has none.
fn write_node<'t>(
    text: &mut String,
    node: Node<'t>,
    (levels, write): (&mut Vec<Siblings<'t>>, WriteValue<'_>),
) {
    text.push('{');
    let attributes = node.attributes();
    if !attributes.is_empty() {
        let mut before = "\"attributes\":{";
        for (name, value) in attributes.iter() {
            text.push_str(before);
            write_text(text, name);
            text.push(':');
            write(text, value);
            before = ",";
        }
        text.push('}');
    }
    if node.child_count() == 0 {
        text.push('}');
        return;
    }
    if !attributes.is_empty() {
        text.push(',');
    }
    text.push_str("\"children\":[");
    levels.push(node.children());
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

/// The erasable values of a tree, each with its node (`None` for the root) and its name; `None` if they are to be plain.
type Erasable = Option<Vec<(Option<NodeId>, String, Vec<u8>)>>;

/// The same of the node that is being read.
type OfNode = Option<Vec<(String, Vec<u8>)>>;

/// A value as it is written.
enum Written {
    Plain(Vec<u8>),
    Erasable(Vec<u8>),
    Erased,
}

fn read(text: &str, ids: &Ids, erasable: &mut Erasable) -> Result<Subtree, JsonError> {
    let mut scanner = Scanner::new(text);
    let mut of_node: OfNode = erasable.as_ref().map(|_| Vec::new());
    let mut note = |of_node: &mut OfNode, node| {
        if let (Some(erasable), Some(of_node)) = (&mut *erasable, of_node) {
            let of_node = of_node.drain(..);
            erasable.extend(of_node.map(|(name, value)| (node, name, value)));
        }
    };
    let (attributes, has_children) = read_node(&mut scanner, &mut of_node)?;
    note(&mut of_node, None);
    let mut builder = Builder::with_ids(ids, attributes);
    let mut depth = usize::from(has_children);
    while depth > 0 {
        let (attributes, has_children) = read_node(&mut scanner, &mut of_node)?;
        if has_children {
            let node = builder.open(attributes);
            note(&mut of_node, Some(node));
            depth += 1;
            continue;
        }
        let node = builder.leaf(attributes);
        note(&mut of_node, Some(node));
        // A node has ended, and with it perhaps its parent, and so on.
        while depth > 0 && !scanner.skip(b',') {
            scanner.expect(b']', "`,` or `]` after a child")?;
            scanner.expect(b'}', "`}` after the children")?;
            depth -= 1;
            if depth > 0 {
                builder.close();
            }
        }
    }
    scanner.end()?;
    Ok(builder.finish())
}

/// Reads a node up to its first child and returns `true`, or completely and returns `false`.
fn read_node(
    scanner: &mut Scanner,
    erasable: &mut OfNode,
) -> Result<(Attributes, bool), JsonError> {
    scanner.expect(b'{', "`{` of a node")?;
    if scanner.skip(b'}') {
        return Ok((Attributes::new(), false));
    }
    let mut attributes = Attributes::new();
    let mut name = scanner.text()?;
    if name == "attributes" {
        scanner.expect(b':', "`:`")?;
        attributes = read_attributes(scanner, erasable)?;
        if scanner.skip(b'}') {
            return Ok((attributes, false));
        }
        scanner.expect(b',', "`,` or `}` after the attributes")?;
        name = scanner.text()?;
    }
    if name != "children" {
        return Err(scanner.error("`attributes` and then `children` as the names in a node"));
    }
    scanner.expect(b':', "`:`")?;
    scanner.expect(b'[', "`[` of the children")?;
    if scanner.skip(b']') {
        scanner.expect(b'}', "`}` after the children")?;
        return Ok((attributes, false));
    }
    Ok((attributes, true))
}

fn read_attributes(scanner: &mut Scanner, erasable: &mut OfNode) -> Result<Attributes, JsonError> {
    scanner.expect(b'{', "`{` of the attributes")?;
    let mut pairs = Vec::new();
    let mut names = HashSet::new();
    let mut is_over = scanner.skip(b'}');
    while !is_over {
        let name = scanner.text()?;
        if !names.insert(name.clone()) {
            return Err(scanner.error("another name, because the node has this attribute already,"));
        }
        scanner.expect(b':', "`:`")?;
        match (read_value(scanner)?, &mut *erasable) {
            (Written::Erasable(value), Some(erasable)) => erasable.push((name, value)),
            (Written::Erasable(value) | Written::Plain(value), _) => pairs.push((name, value)),
            (Written::Erased, _) => {}
        }
        is_over = scanner.skip(b'}');
        if !is_over {
            scanner.expect(b',', "`,` or `}` after an attribute")?;
        }
    }
    let pairs = pairs.iter();
    Ok(pairs.map(|(name, value)| (&**name, &**value)).collect())
}

fn read_value(scanner: &mut Scanner) -> Result<Written, JsonError> {
    if !scanner.skip(b'{') {
        return Ok(Written::Plain(scanner.text()?.into_bytes()));
    }
    let kind = scanner.text()?;
    let value = match &*kind {
        "hex" => {
            scanner.expect(b':', "`:`")?;
            Written::Plain(read_digits(scanner)?)
        }
        "erasable" => {
            scanner.expect(b':', "`:`")?;
            Written::Erasable(read_bytes(scanner)?)
        }
        "erased" => {
            scanner.expect(b':', "`:`")?;
            scanner.text()?;
            Written::Erased
        }
        _ => return Err(scanner.error("`hex`, `erasable` or `erased` as the name in a value")),
    };
    scanner.expect(b'}', "`}` after the value")?;
    Ok(value)
}

/// Reads bytes, which are a string or an object with `hex`.
fn read_bytes(scanner: &mut Scanner) -> Result<Vec<u8>, JsonError> {
    if !scanner.skip(b'{') {
        return Ok(scanner.text()?.into_bytes());
    }
    if scanner.text()? != "hex" {
        return Err(scanner.error("`hex` as the name in an erasable value"));
    }
    scanner.expect(b':', "`:`")?;
    let bytes = read_digits(scanner)?;
    scanner.expect(b'}', "`}` after the bytes")?;
    Ok(bytes)
}

fn read_digits(scanner: &mut Scanner) -> Result<Vec<u8>, JsonError> {
    let text = scanner.text()?;
    bytes_of(&text).ok_or_else(|| scanner.error("pairs of hexadecimal digits"))
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
