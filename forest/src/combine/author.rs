//! What an author does for a commit without the right to commit: everything that grows with the size of the
//! change.
//!
//! - Before the request: [`Action::carry_out`] makes the next version, its indexes and its encoding, if the base is
//!   still the newest.
//! - When the combiner gives a large commit back, because it was overtaken: [`Overtaken::replay`] brings it to the
//!   newest versions, under the write leases of its trees. Then nobody else commits to them.
//!
//! A change that takes more than [`FEW_STEPS`] is large.

use std::sync::Arc;

use weald_tree::{NodeId, Operation, Script, Tree};

use super::request::{
    Action, CommitRequest, Finished, HeldLeases, Overtaken, Piece, Restored, TreeEdit, Work,
};
use crate::content::erasable::Blob;
use crate::content::references::references_in;
use crate::error::{CommitError, Conflict};
use crate::journal::encode;
use crate::state::forest::Recording;
use crate::state::root::{Root, RootRef};
use crate::state::tree::TreeState;

/// The most steps that one request takes in the right to commit: about a tenth of a millisecond.
pub(crate) const FEW_STEPS: u64 = 64;

/// The most bytes of long values that are encoded in the right to commit. A record that may be longer waits for room
/// before it is taken up.
const FEW_BYTES: usize = 64 * 1024;

/// Which edits of a commit its author carries out before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beforehand {
    All,
    Large,
}

impl Action {
    /// Does what can be done before the request. This work is wasted if another commit comes first, so a small change
    /// is left to the combiner, unless the combiner seems to be free.
    pub(crate) fn carry_out(&mut self, edits: Beforehand, recording: Recording) {
        match self {
            Self::Edits(first, rest) => {
                for edit in std::iter::once(&mut **first).chain(rest) {
                    if edits == Beforehand::All || edit.work.is_large(recording) {
                        edit.carry_out(recording);
                    }
                }
            }
            Self::Restore(state, root, restored) if restored.is_none() => {
                let head = state.slot.load();
                let number = state.number;
                *restored = Some(Box::new(Restored::after((head, number), root, recording)));
            }
            Self::Create(name, tree, piece) if piece.is_none() && recording == Recording::On => {
                *piece = Some(Arc::new(encode::create(name, &tree.0)));
            }
            _ => {}
        }
    }

    /// Brings the change to these versions of its trees.
    fn bring_to(&mut self, heads: Vec<RootRef>, recording: Recording) -> Result<(), CommitError> {
        let mut heads = heads.into_iter();
        match self {
            Self::Edits(first, rest) => {
                let edits = std::iter::once(&mut **first).chain(rest);
                edits
                    .zip(heads)
                    .try_for_each(|(edit, head)| edit.bring_to(head, recording))?;
            }
            Self::Restore(state, root, restored) => {
                let number = state.number;
                let made = |head| Box::new(Restored::after((head, number), root, recording));
                *restored = heads.next().map(made);
            }
            Self::AddIndex(_, base, index) => {
                if let Some(head) = heads.next() {
                    index.update(&base.tree, &head.tree);
                    *base = head;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl CommitRequest {
    /// How many bytes the record has, as far as its author has encoded it; 0, if they are few.
    pub(crate) fn long_bytes(&self) -> usize {
        let len = |piece: &Option<Piece>| piece.as_ref().map_or(0, |piece| piece.len());
        let bytes = match &self.action {
            Action::Edits(first, rest) => {
                let edits = std::iter::once(&**first).chain(rest);
                edits.map(TreeEdit::encoded).sum()
            }
            Action::Create(_, _, piece) => len(piece),
            Action::Restore(_, _, Some(restored)) => len(&restored.piece),
            _ => 0,
        };
        if bytes > FEW_BYTES { bytes } else { 0 }
    }

    /// What it changes, if its author has encoded all of that, and no erasable bytes come with it; otherwise nothing.
    pub(crate) fn changes(&self) -> Vec<Piece> {
        let pieces: Option<Vec<_>> = match &self.action {
            Action::Edits(first, rest) => {
                let mut edits = std::iter::once(&**first).chain(rest);
                let is_alone = edits.clone().all(|edit| edit.blobs.is_empty());
                let all = || edits.by_ref().map(|edit| edit.piece().cloned()).collect();
                is_alone.then(all).flatten()
            }
            Action::Create(_, _, piece) => piece.clone().map(|piece| vec![piece]),
            Action::Restore(_, _, Some(restored)) => {
                restored.piece.clone().map(|piece| vec![piece])
            }
            _ => None,
        };
        pieces.unwrap_or_default()
    }
}

impl CommitRequest {
    /// The erasable bytes that it brings.
    pub(crate) fn blobs(&self) -> Vec<Blob> {
        let Action::Edits(first, rest) = &self.action else {
            return Vec::new();
        };
        let edits = std::iter::once(&**first).chain(rest);
        edits.flat_map(|edit| edit.blobs.iter().cloned()).collect()
    }
}

impl Overtaken {
    /// Replays the commit on the newest versions. It is to be requested again, and the leases last until then.
    ///
    /// # Errors
    /// The conflict, if what an edit relied on has changed.
    pub(crate) fn replay(
        self,
        recording: Recording,
    ) -> Result<(CommitRequest, HeldLeases), CommitError> {
        let Self {
            mut commit,
            heads,
            leases,
        } = self;
        leases.begin();
        commit.action.bring_to(heads, recording)?;
        Ok((commit, leases))
    }
}

impl Restored {
    fn after((head, number): (RootRef, u64), root: &Root, recording: Recording) -> Self {
        let indexes = head
            .all_indexes()
            .restored(&head.tree, (&root.tree, root.all_indexes()));
        // A record refers to no older version, which may be gone when it is replayed.
        let difference = || encode::edit(number, &head.tree.operations_to(&root.tree), &[]);
        Self {
            indexes,
            piece: recording.then(|| Arc::new(difference())),
            head,
        }
    }

    /// Whether it was made for this head, or for one that makes no difference.
    pub(crate) fn fits(&self, head: &RootRef) -> bool {
        match self.piece {
            None => self.indexes.are_of_same(head.all_indexes()),
            Some(_) => RootRef::is(&self.head, head),
        }
    }
}

impl Work {
    pub(crate) fn steps(&self) -> u64 {
        match self {
            Self::Edit(edit) => edit.steps(),
            Self::Script(script) => script.steps(),
        }
    }

    /// Whether its author makes its version, and encodes it, rather than the combiner.
    fn is_large(&self, recording: Recording) -> bool {
        self.steps() > FEW_STEPS || recording == Recording::On && self.has_many_bytes()
    }

    fn has_many_bytes(&self) -> bool {
        let brought = self.operations().iter().map(Operation::long_bytes);
        brought.sum::<usize>() > FEW_BYTES
    }

    fn steps_to_rebase(&self, between: u64) -> u64 {
        match self {
            Self::Edit(edit) => edit.steps_to_rebase(between),
            Self::Script(script) => script.steps_to_rebase(between),
        }
    }

    pub(crate) fn operations(&self) -> &[Operation] {
        match self {
            Self::Edit(edit) => edit.operations(),
            Self::Script(script) => script.operations(),
        }
    }

    pub(crate) fn into_script(self) -> Script {
        match self {
            Self::Edit(edit) => edit.into_script(),
            Self::Script(script) => script,
        }
    }
}

impl TreeEdit {
    /// Makes the next version, if the base is the newest.
    fn carry_out(&mut self, recording: Recording) {
        let Work::Edit(edit) = &mut self.work else {
            return;
        };
        if !self.state.slot.holds(&self.base.0) {
            return;
        }
        edit.carry_out();
        if edit.steps() > FEW_STEPS
            || !self.base.all_indexes().is_empty()
            || recording == Recording::On
        {
            let base = self.base.0.clone();
            self.finish(base, recording);
        }
    }

    /// Makes the version that follows the base, which is the head, with its indexes.
    fn finish(&mut self, head: RootRef, recording: Recording) {
        let work = std::mem::replace(&mut self.work, Work::Script(Script::default()));
        let (tree, script) = match work {
            Work::Edit(edit) => edit.finish(),
            Work::Script(_) => unreachable!("an edit is finished once"),
        };
        self.work = Work::Script(script);
        self.finished_as((head, tree), recording);
    }

    fn finished_as(&mut self, (head, tree): (RootRef, Tree), recording: Recording) {
        let number = self.state.number;
        let operations = self.work.operations();
        let piece = recording.then(|| encode::edit(number, operations, &self.blobs));
        let indexes = head.all_indexes().after(operations, (&head.tree, &tree));
        let references = references_in(operations);
        let last_id = last_id_in(operations);
        self.finished = Some(Box::new(Finished {
            head,
            tree,
            indexes,
            piece: piece.map(Arc::new),
            references,
            last_id,
        }));
    }

    /// What it changes, if its author has encoded that.
    fn piece(&self) -> Option<&Piece> {
        self.finished.as_ref()?.piece.as_ref()
    }

    /// How many bytes it brings to the journal, as far as its author has encoded it.
    fn encoded(&self) -> usize {
        let blobs: usize = self.blobs.iter().map(|blob| blob.bytes.len()).sum();
        self.piece().map_or(0, |piece| piece.len()) + blobs
    }

    /// Makes the version that follows a head, if what the edit relied on is unchanged there.
    fn bring_to(&mut self, head: RootRef, recording: Recording) -> Result<(), CommitError> {
        if self
            .finished
            .as_ref()
            .is_some_and(|done| RootRef::is(&done.head, &head))
        {
            return Ok(());
        }
        if self.base.number() == head.number() && matches!(self.work, Work::Edit(_)) {
            self.finish(head, recording);
            return Ok(());
        }
        let tree = self.rebase(&head)?;
        self.finished_as((head, tree), recording);
        Ok(())
    }

    /// The head with the edit's operations, if what the edit relied on is unchanged there.
    pub(crate) fn rebase(&mut self, head: &Root) -> Result<Tree, Box<Conflict>> {
        let work = std::mem::replace(&mut self.work, Work::Script(Script::default()));
        let mut script = work.into_script();
        let rebased = rebase((&self.state, &self.base), &mut script, head);
        self.work = Work::Script(script);
        rebased
    }

    /// Whether its author has made the version that follows this head.
    pub(crate) fn is_finished_on(&self, head: &RootRef) -> bool {
        self.finished
            .as_ref()
            .is_some_and(|done| RootRef::is(&done.head, head))
    }

    /// Whether the combiner leaves it to the author to bring the edit to this head.
    pub(crate) fn is_large_on(&self, head: &RootRef, recording: Recording) -> bool {
        if self.is_finished_on(head) {
            return false;
        }
        if recording == Recording::On && self.work.has_many_bytes() {
            return true;
        }
        let steps = if self.base.number() != head.number() {
            self.work
                .steps_to_rebase(head.steps.saturating_sub(self.base.steps))
        } else if head.all_indexes().is_empty() && matches!(self.work, Work::Edit(_)) {
            0
        } else {
            self.work.steps()
        };
        steps > FEW_STEPS
    }
}

/// The greatest id of a node that operations bring; 0, if they bring none.
pub(crate) fn last_id_in(operations: &[Operation]) -> u64 {
    let brought = operations.iter().filter_map(Operation::last_id);
    brought.map(NodeId::get).max().unwrap_or(0)
}

/// The head with the operations of a script, if what the script relied on is unchanged there.
fn rebase(
    (state, base): (&TreeState, &Root),
    script: &mut Script,
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
