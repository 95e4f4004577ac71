//! Prepares a commit: finds out whether it is possible and what it makes of each tree, changing nothing.
//!
//! Operations are applied to a clone of the newest version, which costs two counters and is simply
//! dropped when one of them is refused. An undo list or a pass that only checks would have to know of each
//! operation what could fail; the clone need not, and the fast way (the head is still the base) skips it.

use std::sync::Arc;

use weald_tree::{NodeId, Script, Tree};

use crate::combiner::Combiner;
use crate::erasable::Blob;
use crate::error::{CommitError, Conflict, NameError};
use crate::forest::Shared;
use crate::index::Indexes;
use crate::journal::Change;
use crate::line::Line;
use crate::past::Tagged;
use crate::request::{Part, What};
use crate::root::Root;
use crate::version::Version;

/// A commit that is possible.
pub(crate) enum Prepared {
    /// It changes nothing; the tree has this root.
    Nothing(Arc<Root>),
    One(Arc<Line>, NewTree),
    Many(Vec<(Arc<Line>, NewTree)>),
    Create(Arc<str>, Box<Tree>),
    Delete(Arc<Line>),
    Rename(Arc<Line>, Arc<str>),
    Erase(Arc<Line>, NodeId, Box<str>),
    Tag(Arc<Line>, Arc<str>, Tagged),
    Untag(Arc<Line>, Arc<str>),
}

/// What a tree becomes.
pub(crate) struct NewTree {
    pub(crate) content: (Tree, Indexes),
    pub(crate) blobs: Vec<Blob>,
    origin: Origin,
}

/// How it became so.
enum Origin {
    Edit(Script),
    Restore(Version),
    AddIndex(Arc<str>),
    DropIndex(Arc<str>),
}

impl Combiner {
    pub(crate) fn prepare(&mut self, shared: &Shared, what: What) -> Result<Prepared, CommitError> {
        // What was deleted is still read, so it can still be erased.
        let is_change = !matches!(what, What::Erase(..));
        if let Some(line) = what.lines().find(|line| is_change && line.is_deleted()) {
            return Err(CommitError::Deleted(line.name().to_string()));
        }
        match what {
            What::Edits(part, rest) if rest.is_empty() => self.prepare_one(shared, *part),
            What::Edits(first, rest) => self.prepare_many(shared, (*first, rest)),
            What::Create(name, tree) => {
                must_be_free(shared, &name)?;
                Ok(Prepared::Create(name, tree))
            }
            What::Delete(name) => Ok(Prepared::Delete(shared.line(&name)?)),
            What::Rename(name, new_name) => {
                let line = shared.line(&name)?;
                must_be_free(shared, &new_name)?;
                Ok(Prepared::Rename(line, new_name))
            }
            What::Restore(line, root) => {
                let head = self.head(&line);
                let indexes = head.indexes.updated(&head.tree, &root.tree);
                let origin = Origin::Restore(root.version());
                let new = NewTree::new((root.tree.clone(), indexes), origin);
                Ok(Prepared::One(line, new))
            }
            What::AddIndex(line, base, mut index) => {
                let head = self.head(&line);
                if head.indexes.get(&index.attribute).is_some() {
                    return Ok(Prepared::Nothing(head));
                }
                index.update(&base.tree, &head.tree);
                let origin = Origin::AddIndex(Arc::clone(&index.attribute));
                let content = (head.tree.clone(), head.indexes.with(index));
                Ok(Prepared::One(line, NewTree::new(content, origin)))
            }
            What::DropIndex(line, attribute) => {
                let head = self.head(&line);
                if head.indexes.get(&attribute).is_none() {
                    return Ok(Prepared::Nothing(head));
                }
                let content = (head.tree.clone(), head.indexes.without(&attribute));
                Ok(Prepared::One(
                    line,
                    NewTree::new(content, Origin::DropIndex(attribute)),
                ))
            }
            What::Erase(line, node, name) => {
                let place = (line.number, node, name);
                // What no version has any more a journal may still have.
                if !self.has_journal() && !shared.blobs.are_at(&place) {
                    let (_, node, name) = place;
                    return Err(CommitError::NothingToErase {
                        node,
                        name: name.into(),
                    });
                }
                Ok(Prepared::Erase(line, node, place.2))
            }
            What::Tag(line, tag, tagged) => Ok(Prepared::Tag(line, tag, tagged)),
            What::Untag(line, tag) => Ok(Prepared::Untag(line, tag)),
        }
    }

    fn prepare_one(&mut self, shared: &Shared, part: Part) -> Result<Prepared, CommitError> {
        let head = self.head(&part.line);
        let line = Arc::clone(&part.line);
        let new = merge(shared, part, &head)?;
        if new.is_idle() {
            return Ok(Prepared::Nothing(head));
        }
        Ok(Prepared::One(line, new))
    }

    fn prepare_many(
        &mut self,
        shared: &Shared,
        (first, rest): (Part, Vec<Part>),
    ) -> Result<Prepared, CommitError> {
        let mut versions = Vec::with_capacity(1 + rest.len());
        let head_of_first = self.head(&first.line);
        for part in std::iter::once(first).chain(rest) {
            let head = self.head(&part.line);
            let line = Arc::clone(&part.line);
            let new = merge(shared, part, &head)?;
            // A tree that was only read has no new version; what was read of it is checked like all else.
            if !new.is_idle() {
                versions.push((line, new));
            }
        }
        if versions.is_empty() {
            return Ok(Prepared::Nothing(head_of_first));
        }
        Ok(Prepared::Many(versions))
    }
}

/// What an edit makes of the newest version: what it made of its base, if that is still the newest; else
/// its operations are applied anew, if what it relied on is still so.
fn merge(shared: &Shared, part: Part, head: &Root) -> Result<NewTree, CommitError> {
    let (tree, script) = if part.base.number() == head.number() {
        part.edit.finish()
    } else {
        let script = part.edit.into_script();
        let tree = rebase((&part.line, &part.base), &script, head)?;
        shared.stats.rebased();
        (tree, script)
    };
    let indexes = head.indexes.updated(&head.tree, &tree);
    Ok(NewTree {
        content: (tree, indexes),
        blobs: part.blobs,
        origin: Origin::Edit(script),
    })
}

fn rebase(
    (line, base): (&Line, &Root),
    script: &Script,
    head: &Root,
) -> Result<Tree, Box<Conflict>> {
    let tree = || line.name().to_string();
    if let Some(read) = script.stale(&base.tree, &head.tree) {
        return Err(Box::new(Conflict::Stale {
            tree: tree(),
            read,
            head: head.version(),
        }));
    }
    script.replay(&head.tree).map_err(|error| {
        Box::new(Conflict::Refused {
            tree: tree(),
            error,
            head: head.version(),
        })
    })
}

fn must_be_free(shared: &Shared, name: &str) -> Result<(), NameError> {
    if shared.names().contains_key(name) {
        return Err(NameError::Taken(name.to_owned()));
    }
    Ok(())
}

impl NewTree {
    fn new(content: (Tree, Indexes), origin: Origin) -> Self {
        Self {
            content,
            blobs: Vec::new(),
            origin,
        }
    }

    /// Whether an edit did nothing.
    fn is_idle(&self) -> bool {
        matches!(&self.origin, Origin::Edit(script) if script.operations().is_empty())
    }

    fn change(&self, line: &Line) -> Change<'_> {
        let tree = line.number;
        match &self.origin {
            Origin::Edit(script) => Change::Edit {
                tree,
                operations: script.operations(),
                blobs: &self.blobs,
            },
            Origin::AddIndex(attribute) => Change::AddIndex { tree, attribute },
            Origin::DropIndex(attribute) => Change::DropIndex { tree, attribute },
            Origin::Restore(version) => Change::Restore {
                tree,
                version: *version,
            },
        }
    }
}

/// Tells a journal what a commit changes. `lines` is how many trees were created before.
pub(crate) fn tell(
    prepared: &Prepared,
    lines: u64,
    journal: &mut dyn FnMut(&[Change<'_>]) -> Result<(), String>,
) -> Result<(), String> {
    let change = match prepared {
        Prepared::Nothing(_) => return Ok(()),
        Prepared::Many(versions) => {
            let changes = versions.iter().map(|(line, new)| new.change(line));
            return journal(&changes.collect::<Vec<_>>());
        }
        Prepared::One(line, new) => new.change(line),
        Prepared::Create(name, content) => Change::Create {
            tree: lines + 1,
            name,
            content,
        },
        Prepared::Delete(line) => Change::Delete { tree: line.number },
        Prepared::Rename(line, name) => Change::Rename {
            tree: line.number,
            name,
        },
        Prepared::Erase(line, node, name) => Change::Erase {
            tree: line.number,
            node: *node,
            name,
        },
        Prepared::Tag(line, tag, tagged) => Change::Tag {
            tree: line.number,
            tag,
            version: tagged.given,
        },
        Prepared::Untag(line, tag) => Change::Untag {
            tree: line.number,
            tag,
        },
    };
    journal(&[change])
}
