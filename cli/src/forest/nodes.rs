//! What shows trees and their nodes: `ls`, `tree`, `show`, `at`, `find`, `export`.

use std::time::SystemTime;

use serde_json::json;
use weald_forest::{Forest, Node, Query, Snapshot, TreeHandle};
use weald_lab::error::Error;

use super::failure::Failure;
use super::form::TreeForm;
use super::moment::Moment;
use super::opened::{Opened, Seen, node};
use super::text::{self, label};
use super::{term, times};
use crate::args::forest::NodePlace;
use crate::output::{Lines, print};

/// Lists trees.
pub(crate) fn list(forest: &Forest, prefix: &str, json: bool) -> Result<(), Failure> {
    let names = forest.list_prefix(prefix);
    let trees = names.iter().filter_map(|name| forest.get(name).ok());
    let mut rows = Vec::new();
    let mut lines = Lines::default();
    for tree in trees {
        let newest = tree.snapshot();
        if json {
            lines.put(listed(&tree, &newest).to_string())?;
            continue;
        }
        let tags = tree.tags().into_iter();
        let tags: Vec<_> = tags.map(|(tag, _)| text::name(&tag)).collect();
        rows.push(vec![
            text::name(&tree.name()),
            text::count(newest.tree().len(), "node"),
            newest.version().to_string(),
            times::shown(newest.time()),
            tags.join(" "),
        ]);
    }
    lines.end()?;
    let text = text::columns(&rows);
    let trimmed: Vec<_> = text.lines().map(str::trim_end).collect();
    let text = trimmed.join("\n");
    Ok(print(&if text.is_empty() { text } else { text + "\n" })?)
}

fn listed(tree: &TreeHandle, newest: &Snapshot) -> serde_json::Value {
    let tags = tree.tags().into_iter();
    let tags: serde_json::Map<_, _> = tags
        .map(|(tag, version)| (tag, text::version_json(version)))
        .collect();
    json!({
        "name": tree.name(),
        "number": tree.number(),
        "nodes": newest.tree().len(),
        "version": text::version_json(newest.version()),
        "time": times::shown(newest.time()),
        "versions": tree.versions().len(),
        "indexes": newest.indexes().collect::<Vec<_>>(),
        "tags": tags,
    })
}

/// Draws a tree.
pub(crate) fn draw(
    opened: &Opened,
    (name, place): (&str, &NodePlace),
    depth: Option<usize>,
    json: bool,
) -> Result<(), Failure> {
    let seen = opened.seen(name, &Moment::read(place.at.as_deref())?)?;
    let top = node(seen.snapshot.tree(), place.node.as_deref())?;
    let most = depth.unwrap_or(usize::MAX);
    if json {
        let mut lines = Lines::default();
        for (depth, node) in top.outline().to_depth(most) {
            let mut line = text::node_json(&seen.forest, node);
            line["depth"] = depth.into();
            lines.put(line.to_string())?;
        }
        return Ok(lines.end()?);
    }
    Ok(print(&drawn(&seen, top, most))?)
}

/// A picture of what is at most this deep below a node.
fn drawn(seen: &Seen, top: Node<'_>, most: usize) -> String {
    let whole = seen.snapshot.tree();
    let mut edit = whole.edit().blind();
    for (depth, node) in top.outline().to_depth(most) {
        if depth == most {
            let below = node.children().map(Node::id);
            below.for_each(|child| _ = edit.delete(child));
        }
    }
    let cut = edit.freeze();
    let mut named = |shown: Node<'_>| {
        let node = whole.node(shown.id()).unwrap_or(shown);
        let hidden = node.child_count() - shown.child_count();
        let label = label(&seen.forest, node);
        match hidden {
            0 => label,
            1 => format!("{label} (1 child below)"),
            _ => format!("{label} ({hidden} children below)"),
        }
    };
    cut.node(top.id())
        .map_or_else(String::new, |top| top.draw_with(&mut named))
}

/// Shows a node.
pub(crate) fn show(
    opened: &Opened,
    (name, place): (&str, &NodePlace),
    json: bool,
) -> Result<(), Failure> {
    let seen = opened.seen(name, &Moment::read(place.at.as_deref())?)?;
    let it = node(seen.snapshot.tree(), place.node.as_deref())?;
    if json {
        let mut line = text::node_json(&seen.forest, it);
        line["version"] = text::version_json(seen.snapshot.version());
        return Ok(print(&format!("{line}\n"))?);
    }
    let parent = it.parent().map_or_else(
        || "none, it is the root".to_owned(),
        |parent| parent.id().to_string(),
    );
    let mut rows = vec![
        vec!["node".to_owned(), it.id().to_string()],
        vec!["path".to_owned(), text::path(&it.path())],
        vec!["parent".to_owned(), parent],
        vec!["children".to_owned(), it.child_count().to_string()],
        vec![
            "version".to_owned(),
            of(seen.snapshot.version(), seen.snapshot.time()),
        ],
    ];
    for (name, _) in it.attributes().iter() {
        if let Some(value) = seen.forest.value(it, name) {
            let name = format!("{:?}", name);
            rows.push(vec![name, text::value(&value, None)]);
        }
    }
    Ok(print(&text::columns(&rows))?)
}

fn of(version: weald_forest::Version, time: SystemTime) -> String {
    format!("{version} of {}", times::shown(time))
}

/// Shows the forest, or a tree of it, as it was.
pub(crate) fn at(
    opened: &Opened,
    (moment, name): (&str, Option<&str>),
    json: bool,
) -> Result<(), Failure> {
    let Some(name) = name else {
        let forest = opened.earlier(&Moment::read(Some(moment))?)?;
        return list(&forest, "", json);
    };
    let place = NodePlace {
        node: None,
        at: Some(moment.to_owned()),
    };
    draw(opened, (name, &place), None, json)
}

/// Finds nodes.
pub(crate) fn find(
    opened: &Opened,
    (name, at): (&str, Option<&str>),
    (terms, most): (&[String], Option<usize>),
    json: bool,
) -> Result<(), Failure> {
    let seen = opened.seen(name, &Moment::read(at)?)?;
    let mut query: Option<Query> = None;
    for term in terms {
        let one = term::read(term)?;
        query = Some(match query {
            Some(all) => all.and(one),
            None => one,
        });
    }
    let Some(mut query) = query else {
        return Err(Failure::Usage("name what is to be found.".to_owned()));
    };
    if let Some(most) = most.filter(|most| *most > 0) {
        query = query.limit(most);
    }
    let (mut lines, mut count) = (Lines::default(), 0);
    for node in seen.snapshot.find(&query) {
        count += 1;
        lines.put(match json {
            true => text::node_json(&seen.forest, node).to_string(),
            false => format!(
                "{}  {}",
                text::path(&node.path()),
                label(&seen.forest, node)
            ),
        })?;
    }
    lines.end()?;
    match count {
        0 => {
            let erasable = match seen.forest.stats().blobs {
                0 => "",
                _ => " Erasable values are not searched.",
            };
            Err(Failure::Absent(format!("no node has that.{erasable}")))
        }
        _ => Ok(()),
    }
}

/// Prints trees as JSON.
pub(crate) fn export(
    opened: &Opened,
    (name, at): (Option<&str>, Option<&str>),
    form: TreeForm,
) -> Result<(), Failure> {
    let moment = Moment::read(at)?;
    let Some(name) = name else {
        let forest = opened.earlier(&moment)?;
        let mut lines = Lines::default();
        for name in forest.list() {
            if let Ok(tree) = forest.get(&name) {
                let name = serde_json::Value::from(name);
                let tree = forest.export(tree.snapshot().tree().root());
                lines.put(format!("{{\"name\":{name},\"tree\":{tree}}}"))?;
            }
        }
        return Ok(lines.end()?);
    };
    let seen = opened.seen(name, &moment)?;
    let root = seen.snapshot.tree().root();
    match form {
        TreeForm::Exact => {
            for piece in seen.forest.export_pieces(root) {
                print(&piece)?;
            }
        }
        TreeForm::Json => print_pieces(root.document_pieces(), "--document")?,
        TreeForm::Xml => print_pieces(root.xml_pieces(), "--xml")?,
    }
    let end: Result<(), Error> = print("\n");
    Ok(end?)
}

fn print_pieces<E: std::fmt::Display>(
    pieces: impl Iterator<Item = Result<String, E>>,
    option: &str,
) -> Result<(), Failure> {
    for piece in pieces {
        let refused = |error| Failure::Failed(format!("{error}. Export it without {option}."));
        print(&piece.map_err(refused)?)?;
    }
    Ok(())
}
