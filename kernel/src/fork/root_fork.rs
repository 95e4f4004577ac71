//! A region: an outermost fork, from its beginning to its end, on the thread that runs it.
//!
//! The thread's context names the region's lane while the region is what its stack runs. A job that runs on
//! top of it, while it waits, finds none there and begins a region of its own.

use crate::{
    fork::{
        cancel, depth,
        fork_deque::{self, Lane, Line},
        fork_deques,
        root_job::Root,
    },
    scheduler::workers::{
        context::{self, Context},
        current,
        shared::Shared,
    },
    sys::barrier,
};

/// What a stolen half descends from.
pub(super) struct Descent {
    pub(super) root: Root,
    pub(super) line: Line,
}

/// Lasts until it is dropped.
pub(super) struct Region<'a> {
    pub(super) lane: &'a Lane,
    is_stolen: bool,
}

/// Runs `act` with the lane of the calling thread's region, which begins here if there is none.
pub(super) fn with_lane<R>(act: impl FnOnce(&Lane) -> R) -> R {
    let here = context::here();
    match fork_deque::of(here) {
        Some(lane) => act(lane),
        None => current::with_current(|shared| {
            let region = Region::enter(here, shared, None);
            act(region.lane)
        }),
    }
}

impl<'a> Region<'a> {
    /// The calling thread, whose context is `here`, begins a region in the runtime `shared`.
    pub(super) fn enter(
        here: &'a Context,
        shared: &'a Shared,
        descent: Option<Descent>,
    ) -> Region<'a> {
        let lane = match fork_deque::take_spare(here) {
            Some(spare) => spare,
            None => fork_deques::of(shared).claim(shared),
        };
        let is_stolen = descent.is_some();
        lane.stack_end.set(depth::end_of_stack());
        lane.begin(here.job(), descent);
        if here.is_dropping() || here.is_panicking() {
            lane.cut_off();
        }
        here.set_root_fork(Some(fork_deque::named(lane)));
        if here.job().is_some() {
            // Pairs with the fence in `Lanes::cancel_forks_of`.
            barrier::full();
            if is_stolen {
                cancel::inherit(lane);
            }
            cancel::ring_if_cancelled(here, lane);
        }
        Region { lane, is_stolen }
    }
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        if self.is_stolen {
            self.lane.forget_line();
        }
        self.lane.end();
        let shared = self.lane.shared();
        // Asked for anew: a fiber that moves may end its region on another thread.
        let here = context::again();
        here.set_root_fork(None);
        // A thread of the runtime keeps its lane, and gives it back when it ends.
        let keeps = here.worker().is_some() && !shared.is_driven();
        if !keeps || !here.keep_spare_root_fork(fork_deque::named(self.lane)) {
            self.lane.unclaim();
        }
        fork_deques::room_for_another(shared);
    }
}
