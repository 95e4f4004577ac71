//! A tree as JSON text and back.
//!
//! A node is `{"attributes": {name: value, …}, "children": [node, …]}`; either may be missing, and
//! attributes come first. A value that is UTF-8 is a string, any other is `{"hex": "00ff"}`. Ids are not
//! written: reading gives a new tree of the same shape. An attribute whose value is
//! `{"erased": "1763780000"}`, as a forest writes it, has lost its bytes and is left out.
//!
//! Writer and reader keep the open nodes in a list of their own, so only memory bounds the depth.

mod scan;

use std::fmt::Write;

use crate::attributes::Attributes;
use crate::builder::Builder;
use crate::id::Ids;
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
    /// A new tree from JSON.
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        read(text, &Ids::new()).map(Subtree::into_tree)
    }

    /// A subtree from JSON that can be spliced into this tree.
    ///
    /// # Errors
    /// [`JsonError`], with the byte at which the text stops being a tree.
    pub fn subtree_from_json(&self, text: &str) -> Result<Subtree, JsonError> {
        read(text, self.ids())
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

fn read(text: &str, ids: &Ids) -> Result<Subtree, JsonError> {
    let mut scanner = Scanner::new(text);
    let (attributes, has_children) = read_node(&mut scanner)?;
    let mut builder = Builder::with_ids(ids, attributes);
    let mut depth = usize::from(has_children);
    while depth > 0 {
        let (attributes, has_children) = read_node(&mut scanner)?;
        if has_children {
            builder.open(attributes);
            depth += 1;
            continue;
        }
        builder.leaf(attributes);
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
fn read_node(scanner: &mut Scanner) -> Result<(Attributes, bool), JsonError> {
    scanner.expect(b'{', "`{` of a node")?;
    if scanner.skip(b'}') {
        return Ok((Attributes::new(), false));
    }
    let mut attributes = Attributes::new();
    let mut name = scanner.text()?;
    if name == "attributes" {
        scanner.expect(b':', "`:`")?;
        attributes = read_attributes(scanner)?;
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

fn read_attributes(scanner: &mut Scanner) -> Result<Attributes, JsonError> {
    scanner.expect(b'{', "`{` of the attributes")?;
    let mut pairs = Vec::new();
    let mut is_over = scanner.skip(b'}');
    while !is_over {
        let name = scanner.text()?;
        scanner.expect(b':', "`:`")?;
        pairs.extend(read_value(scanner)?.map(|value| (name, value)));
        is_over = scanner.skip(b'}');
        if !is_over {
            scanner.expect(b',', "`,` or `}` after an attribute")?;
        }
    }
    let pairs = pairs.iter();
    Ok(pairs.map(|(name, value)| (&**name, &**value)).collect())
}

/// Reads a value; `None` if it was erased.
fn read_value(scanner: &mut Scanner) -> Result<Option<Vec<u8>>, JsonError> {
    if !scanner.skip(b'{') {
        return scanner.text().map(|text| Some(text.into_bytes()));
    }
    let kind = scanner.text()?;
    if kind != "hex" && kind != "erased" {
        return Err(scanner.error("`hex` or `erased` as the name in a value"));
    }
    scanner.expect(b':', "`:`")?;
    let text = scanner.text()?;
    let bytes = if kind == "hex" {
        let bytes = bytes_of(&text);
        Some(bytes.ok_or_else(|| scanner.error("pairs of hexadecimal digits"))?)
    } else {
        None
    };
    scanner.expect(b'}', "`}` after the value")?;
    Ok(bytes)
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
