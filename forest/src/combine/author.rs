//! What an author does for a commit outside the right to commit: all that grows with the size of the change.
//!
//! - Before the request: [`Action::carry_out`] makes the next version, its indexes and its encoding, if the base is
//!   still the newest.
//! - When the combiner gives a large commit back, because it was overtaken: [`Overtaken::replay`] brings it to the
//!   newest versions, under the write leases of its trees. Then nobody else commits to them.
//!
//! What takes more than [`FEW_STEPS`] is large.

use std::sync::Arc;

use weald_tree::{NodeId, Operation, Script, Tree};

use super::request::{
    Action, CommitRequest, Finished, HeldLeases, Overtaken, Piece, Restored, TreeEdit, Work,
};
use crate::content::references::references_in;
use crate::error::{CommitError, Conflict};
use crate::journal::encode;
use crate::state::root::{Root, RootRef};
use crate::state::tree::TreeState;

/// The most steps that one request takes in the right to commit: about a tenth of a millisecond.
pub(crate) const FEW_STEPS: u64 = 64;

/// The most bytes of long values that are encoded in the right to commit. A record that may be longer waits for room
/// before it is taken up.
const FEW_BYTES: usize = 64 * 1024;

impl Action {
    /// Does what can be done before the request. It is wasted if another commit comes first; so what is small is left
    /// to the combiner, unless that seems to be free.
    pub(crate) fn carry_out(&mut self, is_free: bool, has_journal: bool) {
        match self {
            Self::Edits(first, rest) => {
                for edit in std::iter::once(&mut **first).chain(rest) {
                    if is_free || edit.work.is_large(has_journal) {
                        edit.carry_out(has_journal);
                    }
                }
            }
            Self::Restore(state, root, restored) if restored.is_none() => {
                let head = state.slot.load();
                let number = state.number;
                *restored = Some(Box::new(Restored::after((head, number), root, has_journal)));
            }
            Self::Create(name, tree, piece) if piece.is_none() && has_journal => {
                *piece = Some(Arc::new(encode::create(name, &tree.0)));
            }
            _ => {}
        }
    }

    /// Brings the change to these versions of its trees.
    fn bring_to(&mut self, heads: Vec<RootRef>, has_journal: bool) -> Result<(), CommitError> {
        let mut heads = heads.into_iter();
        match self {
            Self::Edits(first, rest) => {
                let edits = std::iter::once(&mut **first).chain(rest);
                edits
                    .zip(heads)
                    .try_for_each(|(edit, head)| edit.bring_to(head, has_journal))?;
            }
            Self::Restore(state, root, restored) => {
                let number = state.number;
                let made = |head| Box::new(Restored::after((head, number), root, has_journal));
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
    /// How many bytes its record has, as far as its author has encoded it, and if they are many; otherwise 0.
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
}

impl Overtaken {
    /// Replays the commit on the newest versions. It is to be requested again, and the leases last until then.
    ///
    /// # Errors
    /// The conflict, if what an edit relied on has changed.
    pub(crate) fn replay(
        self,
        has_journal: bool,
    ) -> Result<(CommitRequest, HeldLeases), CommitError> {
        let Self {
            mut commit,
            heads,
            leases,
        } = self;
        leases.begin();
        commit.action.bring_to(heads, has_journal)?;
        Ok((commit, leases))
    }
}

impl Restored {
    fn after((head, number): (RootRef, u64), root: &Root, has_journal: bool) -> Self {
        let indexes = head
            .indexes
            .restored(&head.tree, (&root.tree, &root.indexes));
        // A record refers to no older version, which may be gone when it is replayed.
        let difference = || encode::edit(number, &head.tree.operations_to(&root.tree), &[]);
        Self {
            indexes,
            piece: has_journal.then(|| Arc::new(difference())),
            head,
        }
    }

    /// Whether it was made for this head, or for one that makes no difference.
    pub(crate) fn fits(&self, head: &RootRef) -> bool {
        match self.piece {
            None => self.indexes.are_of_same(&head.indexes),
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
    fn is_large(&self, has_journal: bool) -> bool {
        self.steps() > FEW_STEPS || has_journal && self.has_many_bytes()
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
    fn carry_out(&mut self, has_journal: bool) {
        let Work::Edit(edit) = &mut self.work else {
            return;
        };
        if self.base.number() != self.state.slot.load().number() {
            return;
        }
        edit.carry_out();
        if edit.steps() > FEW_STEPS || !self.base.indexes.is_empty() || has_journal {
            let base = self.base.clone();
            self.finish(base, has_journal);
        }
    }

    /// Makes the version that follows the base, which is the head, with its indexes.
    fn finish(&mut self, head: RootRef, has_journal: bool) {
        let work = std::mem::replace(&mut self.work, Work::Script(Script::default()));
        let (tree, script) = match work {
            Work::Edit(edit) => edit.finish(),
            Work::Script(_) => unreachable!("an edit is finished once"),
        };
        self.finished_as((head, tree), script, has_journal);
    }

    fn finished_as(&mut self, (head, tree): (RootRef, Tree), script: Script, has_journal: bool) {
        let number = self.state.number;
        let piece = has_journal.then(|| encode::edit(number, script.operations(), &self.blobs));
        let indexes = head.indexes.after(script.operations(), (&head.tree, &tree));
        let references = references_in(script.operations());
        let last_id = last_id_in(script.operations());
        self.work = Work::Script(script);
        self.finished = Some(Box::new(Finished {
            head,
            tree,
            indexes,
            piece: piece.map(Arc::new),
            references,
            last_id,
        }));
    }

    /// How many bytes it brings to the journal, as far as its author has encoded it.
    fn encoded(&self) -> usize {
        let piece = self.finished.as_ref().and_then(|done| done.piece.as_ref());
        let blobs: usize = self.blobs.iter().map(|blob| blob.bytes.len()).sum();
        piece.map_or(0, |piece| piece.len()) + blobs
    }

    /// Makes the version that follows a head, if what the edit relied on is unchanged there.
    fn bring_to(&mut self, head: RootRef, has_journal: bool) -> Result<(), CommitError> {
        if self
            .finished
            .as_ref()
            .is_some_and(|done| RootRef::is(&done.head, &head))
        {
            return Ok(());
        }
        if self.base.number() == head.number() && matches!(self.work, Work::Edit(_)) {
            self.finish(head, has_journal);
            return Ok(());
        }
        let work = std::mem::replace(&mut self.work, Work::Script(Script::default()));
        let mut script = work.into_script();
        let tree = rebase((&self.state, &self.base), &mut script, &head)?;
        self.finished_as((head, tree), script, has_journal);
        Ok(())
    }

    /// Whether its author has made the version that follows this head.
    pub(crate) fn is_finished_on(&self, head: &RootRef) -> bool {
        self.finished
            .as_ref()
            .is_some_and(|done| RootRef::is(&done.head, head))
    }

    /// Whether the combiner leaves it to the author to bring the edit to this head.
    pub(crate) fn is_large_on(&self, head: &RootRef, has_journal: bool) -> bool {
        if self.is_finished_on(head) {
            return false;
        }
        if has_journal && self.work.has_many_bytes() {
            return true;
        }
        let steps = if self.base.number() != head.number() {
            self.work
                .steps_to_rebase(head.steps.saturating_sub(self.base.steps))
        } else if head.indexes.is_empty() && matches!(self.work, Work::Edit(_)) {
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
pub(crate) fn rebase(
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
