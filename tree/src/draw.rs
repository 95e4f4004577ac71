//! A tree as a picture: text with box characters, Graphviz DOT, or two versions side by side.
//!
//! Pictures are for people, so they leave out what nobody reads: long values, deep indents, and in a comparison long
//! stretches that are the same.

use std::collections::HashMap;
use std::fmt::Write;

use crate::id::NodeId;
use crate::node::Node;
use crate::tree::Tree;

/// How many characters of a value are shown.
const VALUE: usize = 40;

/// From this depth on, lines are indented no further and show the depth instead.
const DEEP: usize = 32;

/// How many equal lines are shown beside one that differs.
const CONTEXT: usize = 2;

impl Node<'_> {
    /// This node and everything below it as lines of text.
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_json(
    ///     r#"{"children": [{"attributes": {"text": "tea"}, "children": [{}]}, {}]}"#,
    /// )?;
    /// assert_eq!(
    ///     tree.root().draw(),
    ///     "#1\n\
    ///      ├─ #2 text=\"tea\"\n\
    ///      │  └─ #3\n\
    ///      └─ #4\n"
    /// );
    /// # Ok::<(), weald::tree::JsonError>(())
    /// ```
    pub fn draw(self) -> String {
        self.draw_with(&mut |node| label(node))
    }

    /// [`draw`](Self::draw), with what `label` says of each node; only its first line is shown.
    pub fn draw_with(self, label: &mut dyn FnMut(Node<'_>) -> String) -> String {
        let mut text = String::new();
        for (_, line) in lines(self, label) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The id and the attributes as [`draw`](Self::draw) shows them, with each value as `shown` has it: for values that
    /// encode something else. [`shown`] is what `draw` uses.
    pub fn label_with(self, mut shown: impl FnMut(&[u8]) -> String) -> String {
        let mut label = self.id().to_string();
        for (name, value) in self.attributes().iter() {
            label.push(' ');
            label.extend(name.escape_debug());
            label.push('=');
            label.push_str(&shown(value));
        }
        label
    }

    /// This node and everything below it in the language of [Graphviz](https://graphviz.org/doc/info/lang.html).
    ///
    /// ```
    /// use weald::tree::Tree;
    ///
    /// let tree = Tree::from_json(r#"{"children": [{"attributes": {"text": "a \"b\""}}]}"#)?;
    /// assert_eq!(
    ///     tree.root().to_dot(),
    ///     "digraph tree {\n  \
    ///        node [shape=box];\n  \
    ///        n1 [label=\"#1\"];\n  \
    ///        n2 [label=\"#2 text=\\\"a \\\\\\\"b\\\\\\\"\\\"\"];\n  \
    ///        n1 -> n2;\n\
    ///      }\n"
    /// );
    /// # Ok::<(), weald::tree::JsonError>(())
    /// ```
    pub fn to_dot(self) -> String {
        let mut text = String::from("digraph tree {\n  node [shape=box];\n");
        for node in self.preorder() {
            let id = node.id().get();
            let label = label(node).replace('\\', "\\\\").replace('"', "\\\"");
            put(&mut text, format_args!("  n{id} [label=\"{label}\"];\n"));
            if let Some(parent) = node.parent().filter(|_| node.id() != self.id()) {
                let parent = parent.id().get();
                put(&mut text, format_args!("  n{parent} -> n{id};\n"));
            }
        }
        text.push_str("}\n");
        text
    }
}

impl Tree {
    /// This version on the left and a newer one on the right, each column `width` characters wide. Between them is `+`
    /// for a node that was added, `-` for one that was deleted, and `~` for one with other attributes. A node that
    /// moved has `<` where it was and `>` where it is, and so have the nodes below it.
    ///
    /// ```
    /// use weald::tree::{Attributes, Tree};
    ///
    /// let old = Tree::from_json(r#"{"children": [{"attributes": {"text": "tea"}}, {}]}"#)?;
    /// let mut edit = old.edit();
    /// let [root, tea] = [1, 2].map(|id| weald::tree::NodeId::new(id).unwrap());
    /// edit.put_attribute(tea, "text", "coffee")?;
    /// edit.append(root, Attributes::new())?;
    /// assert_eq!(
    ///     old.draw_beside(&edit.freeze(), 20),
    ///     "#1                     #1\n\
    ///      ├─ #2 text=\"tea\"     ~ ├─ #2 text=\"coffee\"\n\
    ///      └─ #3                  ├─ #3\n\
    ///      \u{20}                    + └─ #4\n"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn draw_beside(&self, newer: &Self, width: usize) -> String {
        let rows = rows(self, newer);
        let is_shown = |at: usize| {
            let from = at.saturating_sub(CONTEXT);
            let to = rows.len().min(at + CONTEXT + 1);
            rows[from..to].iter().any(|row| row.sign != ' ')
        };
        let mut text = String::new();
        let mut hidden = 0;
        for (at, row) in rows.iter().enumerate() {
            if !is_shown(at) {
                hidden += 1;
                continue;
            }
            put_hidden(&mut text, &mut hidden);
            let (left, right) = (fit(&row.left, width), fit(&row.right, width));
            let line = format!("{left:width$} {} {right}", row.sign);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        put_hidden(&mut text, &mut hidden);
        text
    }
}

/// One line of a comparison.
struct Row {
    left: String,
    sign: char,
    right: String,
}

fn rows(old: &Tree, new: &Tree) -> Vec<Row> {
    let sides = [old, new].map(|tree| lines(tree.root(), &mut |node| label(node)));
    let places = sides.each_ref().map(|side| {
        let places = side.iter().enumerate().map(|(at, (id, _))| (*id, at));
        places.collect::<HashMap<NodeId, usize>>()
    });
    let [left, right] = &sides;
    let (mut rows, mut one, mut other) = (Vec::new(), 0, 0);
    while one < left.len() || other < right.len() {
        let there = left.get(one).map(|(id, _)| places[1].get(id).copied());
        let here = right.get(other).map(|(id, _)| places[0].get(id).copied());
        let text = |side: &[(NodeId, String)], at: usize| side[at].1.clone();
        if there == Some(Some(other)) {
            let id = left[one].0;
            let is_same = match (old.node(id), new.node(id)) {
                (Some(old), Some(new)) => old.attributes() == new.attributes(),
                _ => true,
            };
            rows.push(Row {
                left: text(left, one),
                sign: if is_same { ' ' } else { '~' },
                right: text(right, other),
            });
            (one, other) = (one + 1, other + 1);
        } else if let Some(there) = there
            && (there.is_none_or(|there| there < other)
                || here.is_none_or(|here| here.is_some_and(|here| here >= one)))
        {
            rows.push(Row {
                left: text(left, one),
                sign: if there.is_some() { '<' } else { '-' },
                right: String::new(),
            });
            one += 1;
        } else {
            rows.push(Row {
                left: String::new(),
                sign: if here.flatten().is_some() { '>' } else { '+' },
                right: text(right, other),
            });
            other += 1;
        }
    }
    rows
}

fn put_hidden(text: &mut String, hidden: &mut usize) {
    match std::mem::take(hidden) {
        0 => {}
        1 => text.push_str("⋮ 1 line is the same\n"),
        hidden => put(text, format_args!("⋮ {hidden} lines are the same\n")),
    }
}

/// The line of each node.
fn lines(first: Node<'_>, label: &mut dyn FnMut(Node<'_>) -> String) -> Vec<(NodeId, String)> {
    let mut lines = Vec::new();
    // How many children of each node above are still to come.
    let mut left: Vec<usize> = Vec::new();
    for (depth, node) in first.outline() {
        left.truncate(depth);
        let mut line = String::new();
        if let Some((last, above)) = left.split_last_mut() {
            *last -= 1;
            for left in above.iter().take(DEEP) {
                line.push_str(if *left == 0 { "   " } else { "│  " });
            }
            line.push_str(if *last == 0 { "└─ " } else { "├─ " });
            if depth > DEEP {
                put(&mut line, format_args!("[{depth}] "));
            }
        }
        left.push(node.child_count());
        line.push_str(label(node).lines().next().unwrap_or_default());
        lines.push((node.id(), line));
    }
    lines
}

fn label(node: Node<'_>) -> String {
    node.label_with(shown)
}

/// The beginning of a value for people: text in quotation marks, and other bytes in hexadecimal digits.
///
/// ```
/// use weald::tree::shown;
///
/// assert_eq!(shown(b"tea"), "\"tea\"");
/// assert_eq!(shown(b"\xff\x00"), "0xff00");
/// ```
pub fn shown(value: &[u8]) -> String {
    if let Ok(value) = str::from_utf8(value) {
        return format!("{:?}", fit(value, VALUE));
    }
    let mut text = String::from("0x");
    let begin = value.iter().take(VALUE / 2);
    begin.for_each(|byte| put(&mut text, format_args!("{byte:02x}")));
    text.push_str(if value.len() > VALUE / 2 { "…" } else { "" });
    text
}

/// A text in at most this many characters.
fn fit(text: &str, width: usize) -> String {
    if text.chars().nth(width).is_none() {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a string cannot fail");
}
