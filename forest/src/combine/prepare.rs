//! Prepares a commit: finds out whether it is possible and what each tree becomes, and changes nothing.
//!
//! A large change is not prepared here: it goes back to its author (see `author.rs`). Otherwise operations are
//! applied to a clone of the newest version, which costs three reference counts and is dropped when one of the
//! operations is refused. An undo list or a checking pass would have to know how each operation can fail; a clone
//! does not. If the head is still the base, no clone is made.

use std::borrow::Cow;
use std::sync::Arc;

use weald_tree::Tree;

use super::author::{FEW_STEPS, last_id_in};
use super::new_versions::ErasableParts;
use super::publish::Publisher;
use super::request::{Action, Garbage, Piece, Restored, TreeEdit, Work};
use crate::content::erasable::{Blob, Referred};
use crate::content::index::Indexes;
use crate::content::references::references_in;
use crate::error::{CommitError, NameError};
use crate::journal::{Erasure, encode};
use crate::state::forest::ForestState;
use crate::state::history::Tagged;
use crate::state::root::RootRef;
use crate::state::tree::{TreeRef, TreeState};

/// A commit that is possible.
pub(crate) enum Prepared {
    /// It changes nothing; this is the root of the tree, and what is left of the request.
    Nothing(RootRef, Garbage),
    One(TreeRef, NewTree),
    Many(Vec<(TreeRef, NewTree)>),
    Create(Arc<str>, Box<(Tree, Vec<Referred>)>, Option<Piece>),
    Delete(Arc<str>, TreeRef),
    /// The old name and the new one.
    Rename(Arc<str>, Arc<str>, TreeRef),
    Erase(Box<Erasure>),
    Tag(TreeRef, Arc<str>, Box<Tagged>),
    Untag(TreeRef, Arc<str>),
}

/// The next version of a tree.
pub(crate) struct NewTree {
    /// The nodes, the indexes, and the steps up to this version.
    pub(crate) content: (Tree, Indexes, u64),
    pub(crate) erasable: Option<Box<ErasableParts>>,
    /// The greatest id of a node that it brings; 0, if it brings none.
    pub(crate) last_id: u64,
    /// The part for the journal, if there is one.
    piece: Option<Piece>,
    /// The edit, or an older version that the commit held.
    pub(crate) left: Garbage,
}

/// A commit that is not made.
pub(crate) enum Unprepared {
    /// The refused part may be large.
    Refused(CommitError, Garbage),
    /// Its author is to bring it to these versions of its trees.
    Overtaken(Action, Vec<RootRef>),
}

impl<E: Into<CommitError>> From<E> for Unprepared {
    fn from(error: E) -> Self {
        Self::Refused(error.into(), Garbage::NONE)
    }
}

/// What a commit is prepared against.
pub(crate) struct Preparation<'a> {
    pub(crate) forest: &'a ForestState,
    /// Has the newest versions.
    pub(crate) publisher: &'a Publisher,
}

impl Preparation<'_> {
    pub(crate) fn prepare(&self, action: Action) -> Result<Prepared, Unprepared> {
        // A deleted tree can still be read, so its bytes can still be erased.
        let is_change = !matches!(action, Action::Erase(..));
        let deleted = action
            .trees()
            .find(|state| is_change && self.is_deleted(state));
        if let Some(name) = deleted.map(|state| state.name()) {
            let error = CommitError::Deleted(name.to_string());
            return Err(Unprepared::Refused(error, Garbage::of(action)));
        }
        match action {
            Action::Edits(edit, rest) if rest.is_empty() => self.prepare_one(edit),
            Action::Edits(first, rest) => self.prepare_many(first, rest),
            Action::Create(name, tree, piece) => match self.must_be_free(&name) {
                Ok(()) => Ok(Prepared::Create(name, tree, piece)),
                Err(error) => Err(Unprepared::Refused(error.into(), Garbage::of(tree))),
            },
            Action::Delete(name) => {
                let state = self.named(&name)?;
                Ok(Prepared::Delete(name, state))
            }
            Action::Rename(name, new_name) => {
                let state = self.named(&name)?;
                self.must_be_free(&new_name)?;
                Ok(Prepared::Rename(name, new_name, state))
            }
            Action::Restore(state, root, restored) => self.prepare_restore(state, root, restored),
            Action::AddIndex(state, base, mut index) => {
                let head = self.publisher.head(&state);
                if head.all_indexes().get(&index.attribute).is_some() {
                    return Ok(Prepared::Nothing(head, Garbage::NONE));
                }
                if head.steps.saturating_sub(base.steps) > FEW_STEPS {
                    let action = Action::AddIndex(state, base, index);
                    return Err(Unprepared::Overtaken(action, vec![head]));
                }
                index.update(&base.tree, &head.tree);
                let piece = self.piece(|| encode::add_index(state.number, &index.attribute));
                let content = (
                    head.tree.clone(),
                    head.all_indexes().with(index),
                    head.steps,
                );
                Ok(Prepared::One(state, NewTree::new(content, piece, base)))
            }
            Action::DropIndex(state, attribute) => Ok(self.prepare_drop(state, &attribute)),
            Action::Erase(_, place) => {
                // A journal may still have what no version has any longer.
                if self.forest.journal.is_none() && !self.forest.blobs.are_at(&place) {
                    let (_, node, name) = place;
                    let name = name.into();
                    return Err(CommitError::NothingToErase { node, name }.into());
                }
                let ids = self.forest.blobs.ids_at(&place);
                Ok(Prepared::Erase(Box::new(Erasure { place, ids })))
            }
            Action::Tag(state, tag, tagged) => {
                // If it was let go since its author found it, the newest checkpoint may lack it.
                state.history().must_have(&tagged)?;
                Ok(Prepared::Tag(state, tag, tagged))
            }
            Action::Untag(state, tag) => Ok(Prepared::Untag(state, tag)),
            Action::Refused(refused) => {
                let (error, action) = *refused;
                Err(Unprepared::Refused(error, Garbage::of(action)))
            }
        }
    }

    fn prepare_drop(&self, state: TreeRef, attribute: &str) -> Prepared {
        let head = self.publisher.head(&state);
        if head.all_indexes().get(attribute).is_none() {
            return Prepared::Nothing(head, Garbage::NONE);
        }
        let indexes = head.all_indexes().without(attribute);
        let content = (head.tree.clone(), indexes, head.steps);
        let piece = self.piece(|| encode::drop_index(state.number, attribute));
        Prepared::One(state, NewTree::new(content, piece, head))
    }

    fn prepare_one(&self, mut edit: Box<TreeEdit>) -> Result<Prepared, Unprepared> {
        let head = self.publisher.head(&edit.state);
        if edit.is_large_on(&head, self.forest.recording()) {
            return Err(Unprepared::Overtaken(
                Action::Edits(edit, Vec::new()),
                vec![head],
            ));
        }
        let state = edit.state.clone();
        let is_idle = edit.work.operations().is_empty();
        let merged = self.merge(&mut edit, &head);
        let left = Garbage::of_edit(edit);
        match merged {
            Ok(_) if is_idle => Ok(Prepared::Nothing(head, left)),
            Ok(new) => Ok(Prepared::One(state, NewTree { left, ..new })),
            Err(error) => Err(Unprepared::Refused(error, left)),
        }
    }

    fn prepare_many(
        &self,
        first: Box<TreeEdit>,
        rest: Vec<TreeEdit>,
    ) -> Result<Prepared, Unprepared> {
        let all = || std::iter::once(&*first).chain(&rest);
        let heads: Vec<_> = all().map(|edit| self.publisher.head(&edit.state)).collect();
        let recording = self.forest.recording();
        if all()
            .zip(&heads)
            .any(|(edit, head)| edit.is_large_on(head, recording))
        {
            return Err(Unprepared::Overtaken(Action::Edits(first, rest), heads));
        }
        let mut versions = Vec::with_capacity(heads.len());
        for (mut edit, head) in std::iter::once(*first).chain(rest).zip(&heads) {
            let state = edit.state.clone();
            let new = self.merge(&mut edit, head)?;
            // A tree that was only read gets no new version; the reads are checked like any others.
            if !edit.work.operations().is_empty() {
                let left = Garbage::of(edit);
                versions.push((state, NewTree { left, ..new }));
            }
        }
        if versions.is_empty() {
            // At the newest head's number each of these trees has its own, and that commit is accepted after theirs.
            let newest = heads.into_iter().max_by_key(|head| head.number());
            let newest = newest.expect("a commit has an edit");
            return Ok(Prepared::Nothing(newest, Garbage::NONE));
        }
        Ok(Prepared::Many(versions))
    }

    fn prepare_restore(
        &self,
        state: TreeRef,
        root: RootRef,
        restored: Option<Box<Restored>>,
    ) -> Result<Prepared, Unprepared> {
        let head = self.publisher.head(&state);
        match restored {
            Some(restored) if restored.fits(&head) => {
                let Restored { indexes, piece, .. } = *restored;
                // The difference between the versions is at most all nodes of both.
                let steps = head.steps + head.tree.len() + root.tree.len();
                let new = NewTree::new((root.tree.clone(), indexes, steps), piece, root);
                Ok(Prepared::One(state, new))
            }
            restored => Err(Unprepared::Overtaken(
                Action::Restore(state, root, restored),
                vec![head],
            )),
        }
    }

    /// The next version of an edit's tree. It is the version that its author finished, or the edit's own version if its
    /// base is still the newest. Otherwise it is the newest version with the edit's operations applied to it, if what
    /// the edit relied on has not changed.
    fn merge(&self, edit: &mut TreeEdit, head: &RootRef) -> Result<NewTree, CommitError> {
        let is_overtaken = edit.base.number() != head.number();
        if is_overtaken {
            self.forest.stats.rebased();
        }
        let steps = head.steps + edit.work.steps();
        if edit.is_finished_on(head)
            && let Some(finished) = edit.finished.take()
        {
            let blobs = std::mem::take(&mut edit.blobs);
            return Ok(NewTree {
                content: (finished.tree, finished.indexes, steps),
                erasable: ErasableParts::of(blobs, finished.references),
                last_id: finished.last_id,
                piece: finished.piece,
                left: Garbage::NONE,
            });
        }
        let tree = match &mut edit.work {
            Work::Edit(own) if !is_overtaken => own.take_version(),
            _ => edit.rebase(head)?,
        };
        let operations = edit.work.operations();
        let indexes = head.all_indexes().after(operations, (&head.tree, &tree));
        let piece = self.piece(|| encode::edit(edit.state.number, operations, &edit.blobs));
        let references = match self.forest.blobs.were_used() {
            true => references_in(operations),
            false => Vec::new(),
        };
        let last_id = last_id_in(operations);
        Ok(NewTree {
            content: (tree, indexes, steps),
            erasable: ErasableParts::of(std::mem::take(&mut edit.blobs), references),
            last_id,
            piece,
            left: Garbage::NONE,
        })
    }

    /// A small change is encoded here.
    fn piece(&self, encode: impl FnOnce() -> Vec<u8>) -> Option<Piece> {
        let recording = self.forest.recording();
        recording.then(|| Arc::new(encode()))
    }

    fn is_deleted(&self, state: &TreeState) -> bool {
        state.is_deleted() || self.publisher.unaccepted.is_deleted(state)
    }

    /// The tree that will have this name after all commits that are on their way.
    fn named(&self, name: &str) -> Result<TreeRef, NameError> {
        match self.publisher.unaccepted.named(name) {
            None => self.forest.tree(name),
            Some(Some(state)) => Ok(state.clone()),
            Some(None) => Err(NameError::Missing(name.to_owned())),
        }
    }

    fn must_be_free(&self, name: &str) -> Result<(), NameError> {
        if self.named(name).is_ok() {
            return Err(NameError::Taken(name.to_owned()));
        }
        Ok(())
    }
}

impl NewTree {
    fn new(content: (Tree, Indexes, u64), piece: Option<Piece>, held: RootRef) -> Self {
        Self {
            content,
            erasable: None,
            last_id: 0,
            piece,
            left: Garbage::of(held),
        }
    }

    fn blobs(&self) -> &[Blob] {
        self.erasable
            .as_ref()
            .map_or(&[], |erasable| &erasable.blobs)
    }
}

impl Prepared {
    /// The erasable bytes that come with it.
    pub(crate) fn blobs(&self) -> Cow<'_, [Blob]> {
        match self {
            Self::One(_, new) => Cow::Borrowed(new.blobs()),
            Self::Many(versions) => {
                let all = versions.iter().flat_map(|(_, new)| new.blobs());
                Cow::Owned(all.cloned().collect())
            }
            _ => Cow::Borrowed(&[]),
        }
    }

    /// The erasable bytes that go with it.
    pub(crate) fn erases(&self) -> Option<&Erasure> {
        match self {
            Self::Erase(erasure) => Some(erasure),
            _ => None,
        }
    }

    /// What it is for a journal.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let small = |bytes: Vec<u8>| vec![Arc::new(bytes)];
        match self {
            Self::Nothing(..) => Vec::new(),
            Self::One(_, new) => new.piece.iter().cloned().collect(),
            Self::Many(versions) => {
                let pieces = versions.iter().filter_map(|(_, new)| new.piece.clone());
                pieces.collect()
            }
            Self::Create(name, tree, piece) => match piece {
                Some(piece) => vec![Arc::clone(piece)],
                None => small(encode::create(name, &tree.0)),
            },
            Self::Delete(_, state) => small(encode::delete(state.number)),
            Self::Rename(_, name, state) => small(encode::rename(state.number, name)),
            Self::Erase(erasure) => small(encode::erase(&erasure.place, &erasure.ids)),
            Self::Tag(state, tag, tagged) => small(encode::tag(state.number, tag, tagged.given)),
            Self::Untag(state, tag) => small(encode::untag(state.number, tag)),
        }
    }
}
