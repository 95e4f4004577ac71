//! From where the newest commits are to be read, so that a list of five does not read a history of years.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use weald_forest::journal::{Change, Position, Stored};
use weald_forest::{Forest, Tree};
use weald_journal::ReadOnlyJournal;

use super::failure::Failure;
use super::opened::Opened;
use super::records::each_after;

/// The numbers of trees, and their names.
pub(crate) type NamesByNumber = HashMap<u64, String>;

/// Where to begin to read, and the names that trees had there: behind it are the `most` newest commits to a tree, or to
/// any. It is a checkpoint that tells all names, the first one found; each attempt goes about twice as many steps back.
/// Without such a checkpoint it is the beginning.
pub(crate) fn begin(
    opened: &Opened,
    tree: Option<u64>,
    most: usize,
) -> Result<(Position, NamesByNumber), Failure> {
    let journal = opened.0.journal();
    let checkpoints = journal.checkpoints();
    let (mut back, mut behind, mut upto) = (1, Behind::default(), None);
    while most < usize::MAX && back <= checkpoints.len() {
        let at = checkpoints[checkpoints.len() - back];
        behind.read(journal, (at, upto), tree)?;
        if let Some(names) = behind.names(&opened.0, most) {
            return Ok((at, names));
        }
        upto = Some(at);
        back *= 2;
    }
    let known = match journal.is_trimmed() {
        // Those from before may have been renamed since; nothing else is known of them.
        true => names_now(&opened.0),
        false => NamesByNumber::new(),
    };
    Ok((journal.begin(), known))
}

fn names_now(forest: &Forest) -> NamesByNumber {
    let all = forest.list().into_iter();
    let all = all.filter_map(|name| Some((forest.get(&name).ok()?.number(), name)));
    all.collect()
}

/// What lies behind a position. Each part of the history is read once, the newest first.
#[derive(Default)]
struct Behind {
    /// How many commits there are to the tree.
    found: usize,
    created: HashSet<u64>,
    renamed: HashSet<u64>,
    /// The trees that these commits change.
    changed: HashSet<u64>,
}

impl Behind {
    /// Reads from a position on, up to where it has read before.
    fn read(
        &mut self,
        journal: &ReadOnlyJournal,
        (at, upto): (Position, Option<Position>),
        tree: Option<u64>,
    ) -> Result<(), Failure> {
        each_after(journal, at, |entry, stored| {
            if upto.is_some_and(|upto| entry.position > upto) {
                return Ok(ControlFlow::Break(()));
            }
            let (mut is_asked, mut numbers) = (tree.is_none(), Vec::new());
            for change in changes(&stored)? {
                let number = number_of(&stored, &change);
                is_asked |= tree == Some(number);
                match change {
                    Change::Create { .. } => _ = self.created.insert(number),
                    Change::Rename { .. } => _ = self.renamed.insert(number),
                    _ => {}
                }
                numbers.push(number);
            }
            if is_asked {
                self.found += 1;
                self.changed.extend(numbers);
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The names that trees had at its beginning; `None` if there are fewer than `most` commits, or if a tree that they
    /// change remains unnamed.
    fn names(&self, forest: &Forest, most: usize) -> Option<NamesByNumber> {
        let mut names = names_now(forest);
        names.retain(|number, _| !self.renamed.contains(number));
        let is_told = |number: &u64| self.created.contains(number) || names.contains_key(number);
        (self.found >= most && self.changed.iter().all(is_told)).then_some(names)
    }
}

/// What a record changes.
pub(crate) fn changes(stored: &Stored) -> Result<Vec<Change>, Failure> {
    // New nodes only have to be read, so any source of ids will do.
    let changes = stored.changes(&mut |_| Some(Tree::new().ids().clone()));
    changes.map_err(|error| {
        let version = stored.version;
        Failure::Damaged(format!("the record of {version} is damaged: {error}."))
    })
}

/// The number of the tree of a change.
pub(crate) fn number_of(stored: &Stored, change: &Change) -> u64 {
    match change {
        Change::Edit { tree, .. }
        | Change::Rename { tree, .. }
        | Change::Delete { tree }
        | Change::AddIndex { tree, .. }
        | Change::DropIndex { tree, .. }
        | Change::Tag { tree, .. }
        | Change::Untag { tree, .. } => *tree,
        Change::Erase(erasure) => erasure.place.0,
        // A tree has the number of the commit that created it.
        _ => stored.version.number,
    }
}
