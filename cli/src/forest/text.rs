//! Values and nodes as text for people, and as JSON.

use std::fmt::Write;
use std::time::SystemTime;

use serde_json::{Map, Value as Json, json};
use weald_forest::{Forest, Node, Path, Value, Version};

use super::times;

/// How many characters of a value are shown where others are beside it.
const SHORT: usize = 40;

/// A value for people; all of it, if `most` is `None`.
pub(crate) fn value(value: &Value<'_>, most: Option<usize>) -> String {
    match value {
        Value::Plain(bytes) => shown(bytes, most),
        Value::Erasable(bytes) => format!("{} (erasable)", shown(bytes, most)),
        Value::Erased { when } => format!("erased (no later than {})", times::shown(*when)),
        Value::Elsewhere => "in another forest (erasable)".to_owned(),
    }
}

/// Bytes for people: text in quotation marks, or digits.
pub(crate) fn shown(bytes: &[u8], most: Option<usize>) -> String {
    let most = most.unwrap_or(usize::MAX);
    match str::from_utf8(bytes) {
        Ok(text) if text.chars().nth(most).is_none() => format!("{text:?}"),
        Ok(text) => {
            let begin: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{:?}", format!("{begin}…"))
        }
        Err(_) => {
            let mut digits = "0x".to_owned();
            let is_long = bytes.len() > most / 2;
            for byte in bytes.iter().take(most / 2) {
                write!(digits, "{byte:02x}").expect("a String takes any text");
            }
            digits.push_str(if is_long { "…" } else { "" });
            digits
        }
    }
}

/// A name for people: characters that are invisible, or change how others look, are shown as in
/// `\u{202e}`.
pub(crate) fn name(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for part in name.split_inclusive(['"', '\'', '\\']) {
        let (rest, mark) = match part.strip_suffix(['"', '\'', '\\']) {
            Some(rest) => part.split_at(rest.len()),
            None => (part, ""),
        };
        shown.extend(rest.escape_debug());
        shown.push_str(mark);
    }
    shown
}

/// A node in one line: its number and its attributes.
pub(crate) fn label(forest: &Forest, node: Node<'_>) -> String {
    let mut label = node.id().to_string();
    for (name, _) in node.attributes().iter() {
        if let Some(it) = forest.value(node, name) {
            let (name, it) = (name.escape_debug(), value(&it, Some(SHORT)));
            write!(label, " {name}={it}").expect("a String takes any text");
        }
    }
    label
}

/// A value as JSON, as `export` prints it.
pub(crate) fn value_json(value: &Value<'_>) -> Json {
    match value {
        Value::Plain(bytes) => bytes_json(bytes),
        Value::Erasable(bytes) => json!({ "erasable": bytes_json(bytes) }),
        Value::Erased { when } => {
            let since = when.duration_since(SystemTime::UNIX_EPOCH);
            let seconds = since.unwrap_or_default().as_secs();
            json!({ "erased": seconds.to_string() })
        }
        Value::Elsewhere => json!({ "elsewhere": "erasable" }),
    }
}

/// Bytes as JSON: a string if they are UTF-8, else an object with `hex`.
pub(crate) fn bytes_json(bytes: &[u8]) -> Json {
    match str::from_utf8(bytes) {
        Ok(text) => Json::from(text),
        Err(_) => json!({ "hex": shown(bytes, None)[2..] }),
    }
}

pub(crate) fn attributes_json(forest: &Forest, node: Node<'_>) -> Json {
    let names = node.attributes().iter().map(|(name, _)| name);
    let values = names.filter_map(|name| {
        let value = forest.value(node, name)?;
        Some((name.to_owned(), value_json(&value)))
    });
    Json::Object(values.collect::<Map<_, _>>())
}

/// A node as JSON, without those below it.
pub(crate) fn node_json(forest: &Forest, node: Node<'_>) -> Json {
    json!({
        "node": node.id().get(),
        "parent": node.parent().map(|parent| parent.id().get()),
        "path": path(&node.path()),
        "children": node.child_count(),
        "attributes": attributes_json(forest, node),
    })
}

/// A path as a command line takes it: without the brackets around it, which mean something to a
/// shell.
pub(crate) fn path(path: &Path) -> String {
    let text = path.to_string();
    text.trim_matches(['<', '>']).to_owned()
}

/// A version as JSON: the text that a command line takes.
pub(crate) fn version_json(version: Version) -> Json {
    Json::from(version.to_string())
}

/// This many of something, as in "1 node" and "2 nodes".
pub(crate) fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// Lines in columns: every column but the last is as wide as its longest cell.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let is_last = column + 1 == row.len();
            let width = if is_last { 0 } else { widths[column] + 2 };
            write!(text, "{cell:width$}").expect("a String takes any text");
        }
        text.push('\n');
    }
    text
}
