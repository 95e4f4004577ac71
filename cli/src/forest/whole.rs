//! What looks at a whole forest: `check`, `stats`.

use std::ops::ControlFlow;

use pollster::block_on;
use serde_json::json;
use weald_forest::Forest;
use weald_journal::{ReadOnlyForest, Size};
use weald_lab::error::Error;

use super::failure::Failure;
use super::opened::Opened;
use super::recent::changes;
use super::records::{each, failed, removed};
use super::text;
use crate::output::print;

/// Reads everything: the head of each segment, each record and the nodes in it, all checkpoints, all erasable values
/// that are kept; and makes the forest a second time, of all records, to compare it with what the checkpoint has.
pub(crate) fn check(opened: &Opened, json: bool) -> Result<(), Failure> {
    let journal = opened.0.journal();
    journal
        .check_heads()
        .map_err(|error| match journal.is_whole() {
            true => error.into(),
            false => removed(),
        })?;
    let (mut commits, mut openings, mut bytes) = (0_u64, 0_u64, 0_u64);
    each(journal, |entry, stored| {
        let changes = changes(&stored)?;
        // Each opening for writing is a record that changes nothing.
        *(if changes.is_empty() {
            &mut openings
        } else {
            &mut commits
        }) += 1;
        bytes += entry.record.len() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    // The newest one was read when the forest was opened. Those before it are for what lies between them.
    let checkpoints = journal.checkpoints();
    // Each forest has other values, so the most that one of them lacks is how many there are at least.
    let mut unreadable = opened.0.stats().unreadable_blobs;
    for at in checkpoints.iter().rev().skip(1) {
        let then = journal.as_of_checkpoint(*at);
        let read = ReadOnlyForest::recover(Forest::builder().keep(1), then.clone());
        let read = block_on(read).map_err(|error| failed(&then, error))?;
        unreadable = unreadable.max(read.stats().unreadable_blobs);
    }
    let whole = journal.without_checkpoint();
    if let Some(whole) = &whole {
        let again = ReadOnlyForest::recover(Forest::builder().keep(1), whole.clone());
        let again = block_on(again).map_err(|error| failed(whole, error))?;
        compare(&opened.0, &again)?;
    }
    let stats = opened.0.stats();
    if unreadable > 0 {
        let values = text::count(unreadable, "erasable value");
        return Err(Failure::Damaged(format!(
            "{values} cannot be read. Without --skip-damaged-values the file of the first one is named."
        )));
    }
    if json {
        let line = json!({
            "sound": true,
            "commits": commits,
            "openings": openings,
            "record_bytes": bytes,
            "trees": stats.trees,
            "versions": stats.versions,
            "erasable_values": stats.blobs,
            "all_history": whole.is_some(),
        });
        return Ok(print(&format!("{line}\n"))?);
    }
    let history = match whole {
        Some(_) => "from the first commit on",
        None => "behind what was trimmed",
    };
    Ok(print(&format!(
        "The forest is sound: {} {history}, {}, {}, {}.\n",
        text::count(commits, "commit"),
        text::count(stats.trees, "tree"),
        text::count(stats.versions, "version"),
        text::count(stats.blobs, "erasable value"),
    ))?)
}

/// Whether both have the same newest versions.
fn compare(from_checkpoint: &Forest, from_records: &Forest) -> Result<(), Failure> {
    let differs = |what: String| {
        Failure::Damaged(format!(
            "the checkpoint does not fit the records: {what}. Put the directory back from a copy, or keep it and ask \
             for help."
        ))
    };
    let names = from_checkpoint.list();
    if names != from_records.list() {
        return Err(differs("they have other trees".to_owned()));
    }
    for name in names {
        let trees = [from_checkpoint, from_records].map(|forest| forest.get(&name).ok());
        let [one, other] = trees.map(|tree| tree.map(|tree| tree.snapshot()));
        let (Some(one), Some(other)) = (one, other) else {
            return Err(differs(format!("only one has the tree `{name}`")));
        };
        let is_same =
            one.version() == other.version() && one.tree().diff(other.tree()).next().is_none();
        if !is_same {
            return Err(differs(format!("the tree `{name}` differs")));
        }
    }
    Ok(())
}

/// Counts.
pub(crate) fn stats(opened: &Opened, json: bool) -> Result<(), Failure> {
    let forest = &opened.0;
    let (stats, weight) = (forest.stats(), forest.weigh());
    let sizes = forest.journal().sizes();
    let sizes = sizes.map_err(Error::file("look at", forest.journal().name()))?;
    let mut nodes = 0;
    for name in forest.list() {
        nodes += forest.get(&name).map_or(0, |tree| tree.view().tree().len());
    }
    if json {
        let size = |size: Size| json!({ "files": size.files, "bytes": size.bytes });
        let line = json!({
            "trees": stats.trees,
            "nodes": nodes,
            "versions": stats.versions,
            "indexes": stats.indexes,
            "index_keys": stats.index_keys,
            "erasable_values": stats.blobs,
            "erasable_bytes": stats.blob_bytes,
            "memory_bytes": weight.bytes(),
            "segments": size(sizes.segments),
            "checkpoints": size(sizes.checkpoints),
            "keys": size(sizes.keys),
            "trimmed": forest.journal().is_trimmed(),
        });
        return Ok(print(&format!("{line}\n"))?);
    }
    let size = |size: Size| format!("{}, {} bytes", text::count(size.files, "file"), size.bytes);
    let rows = [
        ("trees", stats.trees.to_string()),
        ("nodes", format!("{nodes} in the newest versions")),
        ("versions", format!("{} kept", stats.versions)),
        (
            "indexes",
            match stats.indexes {
                0 => "0".to_owned(),
                many => format!("{many} with {}", text::count(stats.index_keys, "key")),
            },
        ),
        (
            "erasable",
            match stats.blobs {
                0 => "0".to_owned(),
                many => {
                    let values = text::count(many, "value");
                    format!("{values}, {} bytes", stats.blob_bytes)
                }
            },
        ),
        (
            "memory",
            format!("{} bytes when it is open", weight.bytes()),
        ),
        ("segments", size(sizes.segments)),
        ("checkpoints", size(sizes.checkpoints)),
        ("keys", size(sizes.keys)),
    ];
    let rows = rows.map(|(what, count)| vec![what.to_owned(), count]);
    Ok(print(&text::columns(&rows))?)
}
