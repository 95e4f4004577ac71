//! The text of an import: the trees in it, with their names. A text with a fault is refused as a whole.

use std::collections::HashMap;

use pollster::block_on;
use weald_forest::{CommitError, EditError, Forest, MAX_ERASABLE_NAME, NameError, NodeId, Tree};

use super::failure::Failure;

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
pub(super) fn one(name: &str, text: &str, is_document: bool) -> Result<Named, Failure> {
    Taken::default().check(name, None)?;
    match is_document {
        true => Ok(Named {
            name: name.to_owned(),
            tree: Tree::from_document(text).map_err(|error| no_tree(1, &error.to_string()))?,
            erasable: Vec::new(),
        }),
        false => tree(name.to_owned(), text, 1),
    }
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
        "line {line} is no tree, and nothing was imported: {error}. `export` prints trees; --document takes any JSON."
    ))
}

/// The name that a line begins with, and the text of its tree. The tree is not read here, because it may be as deep as
/// any.
fn begin(line: &str) -> Option<(String, &str)> {
    let rest = line.trim().strip_prefix("{\"name\":")?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let name = values.next()?.ok()?;
    let rest = rest.get(values.byte_offset()..)?;
    let tree = rest.strip_prefix(",\"tree\":")?.strip_suffix('}')?;
    Some((name, tree))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_a_name() {
        let begun = begin(r#"{"name":"a \"b\",","tree":{"children":[{}]}}"#);
        let name = "a \"b\",".to_owned();
        assert_eq!(begun, Some((name, r#"{"children":[{}]}"#)));
        for line in ["", "{}", r#"{"name":5,"tree":{}}"#, r#"{"name":"a"}"#] {
            assert_eq!(begin(line), None, "{line}");
        }
    }
}
