//! What shows changes: `log`, `diff`.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use serde_json::{Value as Json, json};
use weald_forest::journal::{Change as Recorded, Stored};
use weald_forest::{Change, Forest, Node, Operation, Value};

use super::failure::Failure;
use super::moment::Moment;
use super::opened::Opened;
use super::recent::{self, number_of};
use super::records::each_after;
use super::text::{self, label};
use super::times;
use crate::output::Lines;

/// How many characters of a commit's bytes are shown.
const BYTES: usize = 60;

/// Lists commits.
pub(crate) fn log(
    opened: &Opened,
    name: Option<&str>,
    most: usize,
    json: bool,
) -> Result<(), Failure> {
    let most = if most == 0 { usize::MAX } else { most };
    let journal = opened.0.journal();
    let asked = name.and_then(|name| opened.0.get(name).ok());
    let asked = asked.map(|tree| tree.number());
    let (begin, names) = match (name, asked) {
        // One that is not there now is known by its name then.
        (Some(_), None) => recent::begin(opened, None, usize::MAX)?,
        _ => recent::begin(opened, asked, most)?,
    };
    let mut names = Names(names);
    let (mut newest, mut known) = (VecDeque::new(), false);
    each_after(journal, begin, |_, stored| {
        let changes = recent::changes(&stored)?;
        let mut is_asked = name.is_none();
        let mut told = Vec::new();
        for change in &changes {
            let what = names.tell(&stored, change);
            is_asked |= asked.map_or(Some(what.tree.as_str()) == name, |it| it == what.number);
            told.push(what);
        }
        known |= is_asked;
        if is_asked {
            newest.push_back(line(&stored, &told, json));
            if newest.len() > most {
                newest.pop_front();
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(name) = name.filter(|_| !known) {
        opened.tree(name)?;
    }
    let mut lines = Lines::default();
    newest.iter().rev().try_for_each(|line| lines.put(line))?;
    if journal.is_trimmed() && !json {
        lines.put("(Earlier commits were trimmed.)")?;
    }
    Ok(lines.end()?)
}

/// Lists the commits that changed a node, as far as versions are kept.
pub(crate) fn log_node(
    opened: &Opened,
    (name, word): (&str, &str),
    most: usize,
    json: bool,
) -> Result<(), Failure> {
    let most = if most == 0 { usize::MAX } else { most };
    let tree = opened.tree(name)?;
    let number = word.strip_prefix('#').unwrap_or(word).parse().ok();
    // A number may be that of a node that is gone.
    let id = match number.and_then(weald_forest::NodeId::new) {
        Some(id) => id,
        None => super::opened::node(tree.snapshot().tree(), Some(word))?.id(),
    };
    let versions = tree.history(id);
    if versions.is_empty() {
        return Err(Failure::Absent(format!(
            "no version that is kept has changed the node {id}."
        )));
    }
    let mut lines = Lines::default();
    for version in versions.iter().take(most) {
        let node = version.tree().node(id);
        let (number, time) = (version.version(), times::shown(version.time()));
        lines.put(match json {
            true => json!({
                "version": text::version_json(number),
                "commit": version.commit_id().to_string(),
                "time": time,
                "bytes": text::bytes_json(version.bytes()),
                "node": node.map(|node| text::node_json(&opened.0, node)),
            })
            .to_string(),
            false => {
                let node =
                    node.map_or_else(|| format!("{id} deleted"), |node| label(&opened.0, node));
                format!("{number}  {time}  {node}{}", said(version.bytes()))
            }
        })?;
    }
    Ok(lines.end()?)
}

/// What the author attached, if it is anything.
fn said(bytes: &[u8]) -> String {
    match bytes.is_empty() {
        true => String::new(),
        false => format!("  {}", text::shown(bytes, Some(BYTES))),
    }
}

fn line(stored: &Stored, told: &[Told], json: bool) -> String {
    let time = times::shown(stored.time);
    if json {
        let changes: Vec<_> = told.iter().map(|what| what.json.clone()).collect();
        return json!({
            "version": text::version_json(stored.version),
            "commit": stored.id.to_string(),
            "time": time,
            "bytes": text::bytes_json(&stored.bytes),
            "changes": changes,
        })
        .to_string();
    }
    let what: Vec<_> = told.iter().map(|what| what.text.as_str()).collect();
    // Each opening for writing is a record, too.
    let what = match what.is_empty() {
        true => "the forest was opened".to_owned(),
        false => what.join("; "),
    };
    let (version, said) = (stored.version, said(&stored.bytes));
    format!("{version}  {time}  {what}{said}")
}

/// What a commit did to a tree.
struct Told {
    number: u64,
    /// The name of the tree, then.
    tree: String,
    text: String,
    json: Json,
}

/// The names of trees, by their numbers.
struct Names(recent::NamesByNumber);

impl Names {
    fn of(&self, number: u64) -> String {
        let unknown = || format!("tree {number}");
        self.0.get(&number).cloned().unwrap_or_else(unknown)
    }

    fn tell(&mut self, stored: &Stored, change: &Recorded) -> Told {
        let number = number_of(stored, change);
        if let Recorded::Create { name, .. } = change {
            self.0.insert(number, name.clone());
        }
        let tree = self.of(number);
        let (text, what) = told(&tree, change);
        if let Recorded::Rename { name, .. } = change {
            self.0.insert(number, name.clone());
        }
        let mut json = json!({ "tree": tree, "number": number });
        json["change"] = what;
        Told {
            number,
            tree,
            text,
            json,
        }
    }
}

fn told(tree: &str, change: &Recorded) -> (String, Json) {
    let shown = text::name;
    let tree = shown(tree);
    match change {
        Recorded::Create { content, .. } => {
            let nodes = content.len();
            (
                format!("create {tree}, {}", text::count(nodes, "node")),
                json!({ "create": nodes }),
            )
        }
        Recorded::Edit { operations, .. } => {
            let counts = Counts::of(operations);
            (
                format!("{tree}: {}", counts.text()),
                json!({ "edit": counts.json() }),
            )
        }
        Recorded::Rename { name, .. } => (
            format!("rename {tree} to {}", shown(name)),
            json!({ "rename": name }),
        ),
        Recorded::Delete { .. } => (format!("delete {tree}"), json!("delete")),
        Recorded::AddIndex { attribute, .. } => {
            let json = json!({ "add_index": attribute });
            (format!("{tree}: index on {}", shown(attribute)), json)
        }
        Recorded::DropIndex { attribute, .. } => {
            let json = json!({ "drop_index": attribute });
            (format!("{tree}: no index on {}", shown(attribute)), json)
        }
        Recorded::Erase(erasure) => {
            let (_, node, name) = &erasure.place;
            let json = json!({ "erase": { "node": node.get(), "attribute": &**name } });
            (format!("{tree}: erase {} of {node}", shown(name)), json)
        }
        Recorded::Tag { tag, version, .. } => {
            let json = json!({ "tag": tag, "version": text::version_json(*version) });
            (format!("{tree}: tag {} on {version}", shown(tag)), json)
        }
        Recorded::Untag { tag, .. } => (
            format!("{tree}: no tag {}", shown(tag)),
            json!({ "untag": tag }),
        ),
        _ => (format!("{tree}: changed"), json!("other")),
    }
}

/// How much of what was done.
#[derive(Default)]
struct Counts {
    added: u64,
    moved: u64,
    deleted: u64,
    attributes: u64,
    roots: u64,
}

impl Counts {
    fn of(operations: &[Operation]) -> Self {
        let mut counts = Self::default();
        for operation in operations {
            match operation {
                Operation::Add { .. } => counts.added += 1,
                Operation::Splice { subtree, .. } => counts.added += subtree.len(),
                Operation::Move { .. } => counts.moved += 1,
                Operation::Delete { .. } => counts.deleted += 1,
                Operation::PutAttribute { .. } | Operation::DeleteAttribute { .. } => {
                    counts.attributes += 1;
                }
                // Of the root; or of a kind that is newer than this.
                _ => counts.roots += 1,
            }
        }
        counts
    }

    fn all(&self) -> [(&'static str, u64); 5] {
        [
            ("added", self.added),
            ("moved", self.moved),
            ("deleted", self.deleted),
            ("attributes", self.attributes),
            ("roots", self.roots),
        ]
    }

    fn text(&self) -> String {
        let some = self.all().into_iter().filter(|(_, count)| *count > 0);
        let some = some.map(|(what, count)| match what.strip_suffix('s') {
            Some(one) => text::count(count, one),
            None => format!("{count} {what}"),
        });
        let some: Vec<_> = some.collect();
        match some.is_empty() {
            true => "nothing".to_owned(),
            false => some.join(", "),
        }
    }

    fn json(&self) -> Json {
        let all = self.all().into_iter();
        Json::Object(
            all.map(|(what, count)| (what.to_owned(), count.into()))
                .collect(),
        )
    }
}

/// Says what differs between two moments of a tree.
pub(crate) fn diff(
    opened: &Opened,
    name: &str,
    (from, to): (&str, Option<&str>),
    json: bool,
) -> Result<(), Failure> {
    let [old, new] = [Some(from), to].map(|word| opened.seen(name, &Moment::read(word)?));
    let (old, new) = (old?, new?);
    let mut lines = Lines::default();
    for change in old.snapshot.tree().diff(new.snapshot.tree()) {
        let forests: [&Forest; 2] = [&old.forest, &new.forest];
        lines.put(match json {
            true => difference_json(forests, change).to_string(),
            false => difference(forests, change),
        })?;
    }
    Ok(lines.end()?)
}

/// An attribute as it was and as it is, for people or as JSON.
fn sides<T>(
    [before, after]: [&Forest; 2],
    (old, new): (Node<'_>, Node<'_>),
    name: &str,
    show: impl Fn(&Value<'_>) -> T,
) -> [Option<T>; 2] {
    let (old, new) = (before.value(old, name), after.value(new, name));
    [old, new].map(|value| value.as_ref().map(&show))
}

fn difference([before, after]: [&Forest; 2], change: Change<'_>) -> String {
    match change {
        Change::Added(node) => format!("+ {} {}", text::path(&node.path()), label(after, node)),
        Change::Deleted(node) => format!("- {} {}", text::path(&node.path()), label(before, node)),
        Change::Changed { old, new } => {
            let mut text = format!("~ {} {}", text::path(&new.path()), new.id());
            if change.is_moved() {
                text.push_str(&format!(" moved from {}", text::path(&old.path())));
            }
            for (name, ..) in change.attributes() {
                let shown = |value: &Value<'_>| text::value(value, Some(BYTES));
                let [was, is] = sides([before, after], (old, new), name, shown)
                    .map(|side| side.unwrap_or_else(|| "none".to_owned()));
                text.push_str(&format!(" {}: {was} → {is}", name.escape_debug()));
            }
            text
        }
    }
}

fn difference_json([before, after]: [&Forest; 2], change: Change<'_>) -> Json {
    let (kind, mut json) = match change {
        Change::Added(node) => ("added", text::node_json(after, node)),
        Change::Deleted(node) => ("deleted", text::node_json(before, node)),
        Change::Changed { old, new } => {
            let attributes = change.attributes().map(|(name, ..)| {
                let [was, is] = sides([before, after], (old, new), name, text::value_json);
                (name.to_owned(), json!({ "old": was, "new": is }))
            });
            let attributes: serde_json::Map<_, _> = attributes.collect();
            let moved = change.is_moved().then(|| text::path(&old.path()));
            let json = json!({
                "node": new.id().get(),
                "path": text::path(&new.path()),
                "moved_from": moved,
                "attributes": attributes,
            });
            ("changed", json)
        }
    };
    json["change"] = kind.into();
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_attribute_is_not_many() {
        let counts = |attributes, added| Counts {
            attributes,
            added,
            ..Counts::default()
        };
        assert_eq!(counts(1, 2).text(), "2 added, 1 attribute");
        assert_eq!(counts(2, 0).text(), "2 attributes");
        assert_eq!(counts(0, 0).text(), "nothing");
    }
}
