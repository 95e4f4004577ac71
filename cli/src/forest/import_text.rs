//! The text of an import: the trees in it, with their names. A text with a fault is refused as a whole.

use std::collections::HashMap;

use pollster::block_on;
use weald_forest::{CommitError, EditError, Forest, MAX_ERASABLE_NAME, NameError, NodeId, Tree};

use super::failure::Failure;
use super::form::TreeForm;

/// The name of a tree whose erasable values are still missing.
pub(super) const UNFINISHED: &str = "weald forest import, unfinished";

/// A tree and its name.
pub(super) struct Named {
    pub(super) name: String,
    /// Without its erasable values.
    pub(super) tree: Tree,
    /// The node, the name and the bytes of each erasable value.
    pub(super) erasable: Vec<(NodeId, String, Vec<u8>)>,
}

/// The only tree of a text.
pub(super) fn one(name: &str, text: &str, form: TreeForm) -> Result<Named, Failure> {
    Taken::default().check(name, None)?;
    let read = match form {
        TreeForm::Exact => return tree(name.to_owned(), text, 1),
        TreeForm::Json => Tree::from_document(text).map_err(|error| error.to_string()),
        TreeForm::Xml => Tree::from_xml(text).map_err(|error| error.to_string()),
    };
    Ok(Named {
        name: name.to_owned(),
        tree: read.map_err(|error| no_tree(1, &error))?,
        erasable: Vec::new(),
    })
}

/// The trees of a text with one in each line.
pub(super) fn several(text: &str) -> Result<Vec<Named>, Failure> {
    let mut names = Taken::default();
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let trees = lines.map(|(line, number)| {
        let (name, rest) = begin(line).ok_or_else(|| {
            Failure::Failed(format!(
                "line {number} has no name, and nothing was imported. Without a NAME, each line is to be as \
                 `export` prints it for every tree: {{\"name\":\"…\",\"tree\":…}}."
            ))
        })?;
        names.check(&name, Some(number))?;
        tree(name, rest, number)
    });
    let trees = trees.collect::<Result<Vec<_>, _>>()?;
    match trees.is_empty() {
        true => Err(Failure::Absent(
            "there is nothing to import: the text is empty. `export` prints trees.".to_owned(),
        )),
        false => Ok(trees),
    }
}

/// The names so far, each with its line; and a forest in memory, which knows what a name is.
#[derive(Default)]
struct Taken(HashMap<String, usize>, Forest);

impl Taken {
    fn check(&mut self, name: &str, line: Option<usize>) -> Result<(), Failure> {
        let place = line.map_or_else(String::new, |line| format!("line {line}: "));
        let wrong = |why| Failure::Usage(format!("{place}{why}; nothing was imported."));
        if name == UNFINISHED {
            let why = format!("`{name}` is what an import calls a tree that it has not finished");
            return Err(wrong(why));
        }
        match block_on(self.1.create(name)) {
            Ok(_) => {}
            Err(CommitError::Name(NameError::Taken(_))) => {
                let first = self.0.get(name).copied().unwrap_or_default();
                return Err(wrong(format!(
                    "line {first} has a tree named `{name}`, too"
                )));
            }
            Err(error) => return Err(wrong(error.to_string())),
        }
        self.0.insert(name.to_owned(), line.unwrap_or(1));
        Ok(())
    }
}

fn tree(name: String, text: &str, line: usize) -> Result<Named, Failure> {
    let mut erasable = Vec::new();
    let tree = Tree::from_json_with(text, &mut |node, name, value| {
        erasable.push((node, name.to_owned(), value.to_vec()));
    });
    let is_long = |(_, name, _): &&(_, String, _)| name.len() > MAX_ERASABLE_NAME;
    if let Some((_, name, _)) = erasable.iter().find(is_long) {
        let error = EditError::NameTooLong {
            len: name.len(),
            max: MAX_ERASABLE_NAME,
        };
        return Err(no_tree(line, &error.to_string()));
    }
    Ok(Named {
        name,
        tree: tree.map_err(|error| no_tree(line, &error.to_string()))?,
        erasable,
    })
}

fn no_tree(line: usize, error: &str) -> Failure {
    Failure::Failed(format!(
        "line {line} is no tree, and nothing was imported: {error}. `export` prints trees; --document takes any JSON, \
         and --xml takes XML."
    ))
}

/// The name of a line, and the text of its tree. The tree is not read here, because it may be as deep as any.
fn begin(line: &str) -> Option<(String, &str)> {
    let mut rest = line.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (mut name, mut tree) = (None, None);
    loop {
        let (key, after) = split_value(rest)?;
        let (value, after) = split_value(after.strip_prefix(':')?)?;
        match serde_json::from_str::<String>(key).ok()?.as_str() {
            "name" if name.is_none() => name = Some(serde_json::from_str(value).ok()?),
            "tree" if tree.is_none() => tree = Some(value),
            _ => return None,
        }
        if after.is_empty() {
            return Some((name?, tree?));
        }
        rest = after.strip_prefix(',')?;
    }
}

/// The first value of a text, which is looked at no further than to find its end, and what follows it.
fn split_value(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let mut is_end = |byte: u8| {
        if is_string {
            is_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            return false;
        }
        let is_outside = depth == 0;
        match byte {
            b'"' => is_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' | b':' => return is_outside,
            _ => {}
        }
        false
    };
    let end = text.bytes().position(&mut is_end);
    let (value, rest) = text.split_at(end.unwrap_or(text.len()));
    let value = value.trim();
    (!value.is_empty()).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_name_and_a_tree_as_any_json_has() {
        let tree = r#"{"children":[{"attributes":{"a":"\\\"},{"}}]}"#;
        let name = "a \"b\",: tree".to_owned();
        for line in [
            r#"{"name":"a \"b\",: tree","tree":TREE}"#,
            r#" { "name": "a \"b\",: tree", "tree": TREE } "#,
            "{\t\"name\"\t: \"a \\\"b\\\",: tree\" ,\"tree\" :TREE\t}",
            r#"{"tree": TREE, "name": "a \u0022b\",: tree"}"#,
        ] {
            let line = line.replace("TREE", tree);
            assert_eq!(begin(&line), Some((name.clone(), tree)), "{line}");
        }
        for line in [
            "",
            "{}",
            "{",
            r#"{"name":5,"tree":{}}"#,
            r#"{"name":"a"}"#,
            r#"{"name":"a","tree":}"#,
            r#"{"name":"a","tree":{},}"#,
            r#"{"name":"a","tree":{},"tree":{}}"#,
            r#"{"name":"a","tree":{},"more":{}}"#,
            r#"{"name":"a" "tree":{}}"#,
        ] {
            assert_eq!(begin(line), None, "{line}");
        }
    }
}
