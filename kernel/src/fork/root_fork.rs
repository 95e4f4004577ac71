//! A region: an outermost fork, from its beginning to its end, on the thread that runs it.
//!
//! The thread's context names the region's lane while the region is what its stack runs. A job that runs on
//! top of it, while it waits, finds none there and begins a region of its own.

use crate::{
    fork::{
        cancel, depth,
        fork_deque::{self, Ancestry, ForkDeque},
        fork_deques,
        root_job::RootJob,
    },
    scheduler::workers::{
        context::{self, Context},
        current,
        shared::Shared,
    },
    sys::barrier,
};

/// What a stolen half descends from.
pub(super) struct Origin {
    pub(super) root: RootJob,
    pub(super) ancestry: Ancestry,
}

/// Lasts until it is dropped.
pub(super) struct RootFork<'a> {
    pub(super) fork_deque: &'a ForkDeque,
    is_stolen: bool,
}

/// Runs `act` with the lane of the calling thread's region, which begins here if there is none.
pub(super) fn with_fork_deque<R>(act: impl FnOnce(&ForkDeque) -> R) -> R {
    let here = context::here();
    match fork_deque::of(here) {
        Some(fork_deque) => act(fork_deque),
        None => current::with_current(|shared| {
            let root_fork = RootFork::enter(here, shared, None);
            act(root_fork.fork_deque)
        }),
    }
}

impl<'a> RootFork<'a> {
    /// The calling thread, whose context is `here`, begins a region in the runtime `shared`.
    pub(super) fn enter(
        here: &'a Context,
        shared: &'a Shared,
        origin: Option<Origin>,
    ) -> RootFork<'a> {
        let fork_deque = match fork_deque::take_spare(here) {
            Some(spare) => spare,
            None => fork_deques::of(shared).claim(shared),
        };
        let is_stolen = origin.is_some();
        fork_deque.stack_end.set(depth::end_of_stack());
        fork_deque.begin(here.job(), origin);
        if here.is_dropping() || here.is_panicking() {
            fork_deque.cut_off();
        }
        here.set_thread_fork(Some(fork_deque::named(fork_deque)));
        if here.job().is_some() {
            // Pairs with the fence in `Lanes::cancel_forks_of`.
            barrier::full();
            if is_stolen {
                cancel::inherit(fork_deque);
            }
            cancel::ring_if_cancelled(here, fork_deque);
        }
        RootFork {
            fork_deque,
            is_stolen,
        }
    }
}

impl Drop for RootFork<'_> {
    fn drop(&mut self) {
        if self.is_stolen {
            self.fork_deque.forget_ancestry();
        }
        self.fork_deque.end();
        let shared = self.fork_deque.shared();
        // Asked for anew: a fiber that moves may end its region on another thread.
        let here = context::again();
        here.set_thread_fork(None);
        // A thread of the runtime keeps its lane, and gives it back when it ends.
        let keeps = here.worker().is_some() && !shared.is_driven();
        if !keeps || !here.keep_spare_thread_fork(fork_deque::named(self.fork_deque)) {
            self.fork_deque.unclaim();
        }
        fork_deques::room_for_another(shared);
    }
}
