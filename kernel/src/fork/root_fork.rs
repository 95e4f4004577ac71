//! A root fork: an outermost fork, from its beginning to its end, on the thread that runs it.
//!
//! The thread's context names the root fork's deque while the thread's stack runs the root fork. While the root fork
//! waits, a job may run nested on top of it. That job finds no deque in the context, and begins a root fork of its own.

use std::panic::Location;

use crate::{
    fork::{
        cancel, depth,
        fork_deque::{self, Ancestry, ForkDeque},
        fork_deques,
        root_job::RootJob,
    },
    scheduler::{
        stackful::foreign_runtime::ForeignRuntime,
        workers::{
            context::{self, Context},
            current,
            shared::Shared,
        },
    },
    sys::barrier,
};

/// What a stolen job descends from.
pub(super) struct Origin {
    pub(super) root: RootJob,
    pub(super) ancestry: Ancestry,
}

/// A root fork; ends when it is dropped.
pub(super) struct RootFork<'a> {
    pub(super) fork_deque: &'a ForkDeque,
    is_stolen: bool,
}

/// Runs `act` with the fork deque of the calling thread's root fork, which begins here, because of the call at `site`,
/// if there is none.
pub(super) fn with_fork_deque<R>(
    site: &'static Location<'static>,
    act: impl FnOnce(&ForkDeque) -> R,
) -> R {
    let here = context::here();
    match fork_deque::of(here) {
        Some(fork_deque) => act(fork_deque),
        None => {
            // The halves run on the workers of the job's own runtime, so that runtime is current in them.
            let _own = ForeignRuntime::none(here);
            current::with_current(|shared| {
                let root_fork = RootFork::enter(here, shared, site, None);
                act(root_fork.fork_deque)
            })
        }
    }
}

impl<'a> RootFork<'a> {
    /// Begins a root fork in the runtime `shared`, on the calling thread, whose context is `here`. `site`: the call in
    /// the user's code.
    pub(super) fn enter(
        here: &'a Context,
        shared: &'a Shared,
        site: &'static Location<'static>,
        origin: Option<Origin>,
    ) -> RootFork<'a> {
        let fork_deque = match fork_deque::take_spare(here) {
            Some(spare) => spare,
            None => fork_deques::of(shared).claim(shared),
        };
        let is_stolen = origin.is_some();
        fork_deque.stack_end.set(depth::end_of_stack());
        fork_deque.set_thread(here);
        fork_deque.begin(here.job(), site, origin);
        if here.is_dropping() || here.is_panicking() {
            fork_deque.shield();
        }
        if is_stolen && fork_deque.root().is_of_destructor() {
            cancel::shield_to_the_end(here);
        }
        here.set_thread_fork(Some(fork_deque::as_thread_fork(fork_deque)));
        if is_stolen {
            // Alerted, so that it shares its first halves: the thread that it was stolen from may soon wait, and then
            // helps.
            fork_deque.deque.alert();
        }
        if here.job().is_some() {
            // Pairs with the fence in `ForkDeques::cancel_forks_of`.
            barrier::full();
            if is_stolen {
                cancel::inherit(fork_deque);
            }
            cancel::alert_if_cancelled(here, fork_deque);
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
        // Read again: a fiber that migrates may end its root fork on another thread.
        let here = context::again();
        here.set_thread_fork(None);
        // A thread of the runtime keeps its fork deque as a spare, and gives it back when it ends.
        let keeps = here.worker().is_some() && !shared.is_driven();
        if !keeps || !here.keep_spare_thread_fork(fork_deque::as_thread_fork(self.fork_deque)) {
            self.fork_deque.unclaim();
        }
        fork_deques::wake_for_room(shared);
    }
}
