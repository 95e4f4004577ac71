//! What the threads of a runtime learn of a scope: whether its parts wait, and whether any is left.

use std::{panic::Location, sync::Arc};

use crate::{
    fork::{fork_deque::ForkDeque, fork_deques::relief::Relief},
    scheduler::workers::shared::Shared,
    sys::lock,
};

/// What a runner of a scope learns of the part that it runs: each `begin` is followed by one `end`.
pub(in crate::fork) trait PartWatch: Send + Sync {
    /// The part's thread begins to wait, or is blocked. If this returns true, the caller starts a runner, outside its
    /// locks.
    fn begin_wait(&self, shared: &Shared) -> bool;

    /// Starts the runner that `begin_wait` asked for.
    fn start_runner(self: Arc<Self>, shared: &Shared);

    /// The part goes on, or is over.
    fn end_wait(&self);

    /// Whether there are parts that no thread has begun.
    fn has_parts(&self) -> bool;

    /// Whether there are such parts, and no runner is at work that could take them.
    fn lacks_runner(&self) -> bool;

    /// Where the user's code called the scope.
    fn site(&self) -> &'static Location<'static>;

    /// Starts a further runner, which takes the relief.
    fn start_relief(self: Arc<Self>, shared: &Shared, relief: Relief);
}

impl ForkDeque {
    /// The root fork opens a scope. Called by its thread.
    pub(in crate::fork) fn open_scope(&self, scope: Arc<dyn PartWatch>) {
        lock(&self.scopes).push(scope);
    }

    /// `scope`, which was opened last, is over. Called by the thread of the root fork.
    pub(in crate::fork) fn close_scope(&self, scope: *const ()) {
        let closed = lock(&self.scopes).pop();
        let last = closed.as_ref().map(|last| Arc::as_ptr(last).cast());
        debug_assert_eq!(last, Some(scope), "scopes end in the opposite order");
        drop(closed);
    }

    /// The innermost of the scopes that `is_wanted` selects.
    pub(in crate::fork) fn last_scope_that(
        &self,
        is_wanted: impl Fn(&dyn PartWatch) -> bool,
    ) -> Option<Arc<dyn PartWatch>> {
        let scopes = lock(&self.scopes);
        let wanted = scopes.iter().rev().find(|scope| is_wanted(&***scope));
        wanted.cloned()
    }
}
