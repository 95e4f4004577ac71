//! Prepares a commit: finds out whether it is possible and what each tree becomes, and changes nothing.
//!
//! Operations are applied to a clone of the newest version, which costs three reference counts and is dropped
//! when one of the operations is refused. An undo list or a checking pass would have to know how each operation
//! can fail; a clone does not. If the head is still the base, no clone is made.

use std::sync::Arc;

use weald_tree::{NodeId, Script, Tree};

use super::publish::Publisher;
use super::request::{Action, TreeEdit};
use crate::content::erasable::Blob;
use crate::content::index::Indexes;
use crate::error::{CommitError, Conflict, NameError};
use crate::journal::Change;
use crate::state::forest::ForestState;
use crate::state::history::Tagged;
use crate::state::root::Root;
use crate::state::tree::TreeState;
use crate::version::Version;

/// A commit that is possible.
pub(crate) enum Prepared {
    /// It changes nothing; this is the root of the tree.
    Nothing(Arc<Root>),
    One(Arc<TreeState>, NewTree),
    Many(Vec<(Arc<TreeState>, NewTree)>),
    Create(Arc<str>, Box<Tree>),
    Delete(Arc<TreeState>),
    Rename(Arc<TreeState>, Arc<str>),
    Erase(Arc<TreeState>, NodeId, Box<str>),
    Tag(Arc<TreeState>, Arc<str>, Tagged),
    Untag(Arc<TreeState>, Arc<str>),
}

/// The next version of a tree.
pub(crate) struct NewTree {
    pub(crate) content: (Tree, Indexes),
    pub(crate) blobs: Vec<Blob>,
    origin: Origin,
}

/// How a version came about.
enum Origin {
    Edit(Script),
    Restore(Version),
    AddIndex(Arc<str>),
    DropIndex(Arc<str>),
}

/// What a commit is prepared against.
pub(crate) struct Preparation<'a> {
    pub(crate) forest: &'a ForestState,
    /// Has the newest versions.
    pub(crate) publisher: &'a Publisher,
    pub(crate) has_journal: bool,
}

impl Preparation<'_> {
    pub(crate) fn prepare(&self, action: Action) -> Result<Prepared, CommitError> {
        // A deleted tree can still be read, so its bytes can still be erased.
        let is_change = !matches!(action, Action::Erase(..));
        if let Some(state) = action.trees().find(|state| is_change && state.is_deleted()) {
            return Err(CommitError::Deleted(state.name().to_string()));
        }
        match action {
            Action::Edits(edit, rest) if rest.is_empty() => self.prepare_one(*edit),
            Action::Edits(first, rest) => self.prepare_many(*first, rest),
            Action::Create(name, tree) => {
                self.must_be_free(&name)?;
                Ok(Prepared::Create(name, tree))
            }
            Action::Delete(name) => Ok(Prepared::Delete(self.forest.tree(&name)?)),
            Action::Rename(name, new_name) => {
                let state = self.forest.tree(&name)?;
                self.must_be_free(&new_name)?;
                Ok(Prepared::Rename(state, new_name))
            }
            Action::Restore(state, root) => {
                let head = self.publisher.head(&state);
                let indexes = head.indexes.updated(&head.tree, &root.tree);
                let origin = Origin::Restore(root.version());
                let new = NewTree::new((root.tree.clone(), indexes), origin);
                Ok(Prepared::One(state, new))
            }
            Action::AddIndex(state, base, mut index) => {
                let head = self.publisher.head(&state);
                if head.indexes.get(&index.attribute).is_some() {
                    return Ok(Prepared::Nothing(head));
                }
                index.update(&base.tree, &head.tree);
                let origin = Origin::AddIndex(Arc::clone(&index.attribute));
                let content = (head.tree.clone(), head.indexes.with(index));
                Ok(Prepared::One(state, NewTree::new(content, origin)))
            }
            Action::DropIndex(state, attribute) => {
                let head = self.publisher.head(&state);
                if head.indexes.get(&attribute).is_none() {
                    return Ok(Prepared::Nothing(head));
                }
                let content = (head.tree.clone(), head.indexes.without(&attribute));
                Ok(Prepared::One(
                    state,
                    NewTree::new(content, Origin::DropIndex(attribute)),
                ))
            }
            Action::Erase(state, node, name) => {
                let place = (state.number, node, name);
                // A journal may still have what no version has any longer.
                if !self.has_journal && !self.forest.blobs.are_at(&place) {
                    let (_, node, name) = place;
                    return Err(CommitError::NothingToErase {
                        node,
                        name: name.into(),
                    });
                }
                Ok(Prepared::Erase(state, node, place.2))
            }
            Action::Tag(state, tag, tagged) => Ok(Prepared::Tag(state, tag, tagged)),
            Action::Untag(state, tag) => Ok(Prepared::Untag(state, tag)),
        }
    }

    fn prepare_one(&self, edit: TreeEdit) -> Result<Prepared, CommitError> {
        let head = self.publisher.head(&edit.state);
        let state = Arc::clone(&edit.state);
        let new = self.merge(edit, &head)?;
        if new.is_idle() {
            return Ok(Prepared::Nothing(head));
        }
        Ok(Prepared::One(state, new))
    }

    fn prepare_many(&self, first: TreeEdit, rest: Vec<TreeEdit>) -> Result<Prepared, CommitError> {
        let mut versions = Vec::with_capacity(1 + rest.len());
        let head_of_first = self.publisher.head(&first.state);
        for edit in std::iter::once(first).chain(rest) {
            let head = self.publisher.head(&edit.state);
            let state = Arc::clone(&edit.state);
            let new = self.merge(edit, &head)?;
            // A tree that was only read gets no new version; the reads are checked like any others.
            if !new.is_idle() {
                versions.push((state, new));
            }
        }
        if versions.is_empty() {
            return Ok(Prepared::Nothing(head_of_first));
        }
        Ok(Prepared::Many(versions))
    }

    /// The next version of an edit's tree: the edit's own version, if its base is still the newest; else the
    /// newest version with the edit's operations applied to it, if what the edit relied on has not changed.
    fn merge(&self, edit: TreeEdit, head: &Root) -> Result<NewTree, CommitError> {
        let (tree, script) = if edit.base.number() == head.number() {
            edit.edit.finish()
        } else {
            let script = edit.edit.into_script();
            let tree = rebase((&edit.state, &edit.base), &script, head)?;
            self.forest.stats.rebased();
            (tree, script)
        };
        let indexes = head.indexes.updated(&head.tree, &tree);
        Ok(NewTree {
            content: (tree, indexes),
            blobs: edit.blobs,
            origin: Origin::Edit(script),
        })
    }

    fn must_be_free(&self, name: &str) -> Result<(), NameError> {
        if self.forest.names().contains_key(name) {
            return Err(NameError::Taken(name.to_owned()));
        }
        Ok(())
    }
}

fn rebase(
    (state, base): (&TreeState, &Root),
    script: &Script,
    head: &Root,
) -> Result<Tree, Box<Conflict>> {
    let tree = || state.name().to_string();
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

    fn change(&self, state: &TreeState) -> Change<'_> {
        let tree = state.number;
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

/// Passes to `journal` what a commit changes. `trees` is the number of trees that were created before.
pub(crate) fn append_to(
    journal: &mut dyn FnMut(&[Change<'_>]) -> Result<(), String>,
    prepared: &Prepared,
    trees: u64,
) -> Result<(), String> {
    let change = match prepared {
        Prepared::Nothing(_) => return Ok(()),
        Prepared::Many(versions) => {
            let changes = versions.iter().map(|(state, new)| new.change(state));
            return journal(&changes.collect::<Vec<_>>());
        }
        Prepared::One(state, new) => new.change(state),
        Prepared::Create(name, content) => Change::Create {
            tree: trees + 1,
            name,
            content,
        },
        Prepared::Delete(state) => Change::Delete { tree: state.number },
        Prepared::Rename(state, name) => Change::Rename {
            tree: state.number,
            name,
        },
        Prepared::Erase(state, node, name) => Change::Erase {
            tree: state.number,
            node: *node,
            name,
        },
        Prepared::Tag(state, tag, tagged) => Change::Tag {
            tree: state.number,
            tag,
            version: tagged.given,
        },
        Prepared::Untag(state, tag) => Change::Untag {
            tree: state.number,
            tag,
        },
    };
    journal(&[change])
}
