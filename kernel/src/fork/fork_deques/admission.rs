//! From which fork deques workers may steal: the judgement of one walk.

use std::{cell::Cell, panic::Location, ptr, sync::Arc};

use crate::{
    fork::{
        fork_deque::{ForkDeque, part_watch::PartWatch},
        fork_deques::ForkDeques,
    },
    scheduler::{services::ThreadFork, workers::shared::Shared},
    sys::Ordering,
};

/// Whether a worker may steal from a fork deque.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Admitted,
    /// Only by a [relief](super::relief): the quarantine is full, but the owner waits, or blocks.
    ByRelief,
    Kept,
}

/// From which fork deques workers may steal at this moment. For one walk.
pub(super) struct Admission<'a> {
    pub(super) fork_deques: &'a ForkDeques,
    pub(super) shared: &'a Shared,
    /// Whether parts of suspect lines may be stolen, too.
    pub(super) has_room: bool,
    /// The line that was asked about last, and whether its parts are suspect.
    pub(super) last_asked: Cell<(*const Location<'static>, bool)>,
}

impl Admission<'_> {
    pub(super) fn admits(&self, fork_deque: &ForkDeque) -> bool {
        match self.judge(fork_deque, fork_deque.site()) {
            Judgement::Admitted => true,
            Judgement::ByRelief => {
                let reliefs = &self.fork_deques.reliefs;
                reliefs.is_offered_to(fork_deque.number())
            }
            Judgement::Kept => false,
        }
    }

    /// As [`admits`](Admission::admits), of a part of `fork_deque` whose line is that of `site`.
    pub(super) fn judge(
        &self,
        fork_deque: &ForkDeque,
        site: &'static Location<'static>,
    ) -> Judgement {
        let computes = fork_deque.computes();
        let may_steal = !computes
            || self.fork_deques.may_start(self.shared)
                && self.fork_deques.has_threads_for(self.shared, fork_deque);
        match may_steal {
            true if self.has_room || !self.is_suspect(site) => Judgement::Admitted,
            true if !computes => Judgement::ByRelief,
            _ => Judgement::Kept,
        }
    }

    /// Whether the owner of `fork_deque` waits, or blocks, and has a part that nobody may begin but by a relief.
    pub(super) fn lacks_relief(&self, fork_deque: &ForkDeque) -> bool {
        fork_deque.deque.has_entries()
            && self.judge(fork_deque, fork_deque.site()) == Judgement::ByRelief
            || self.scope_without_runner(fork_deque).is_some()
    }

    /// A scope whose owner waits in `fork_deque`, and which has parts that nobody may begin but by a relief.
    pub(super) fn scope_without_runner(
        &self,
        fork_deque: &ForkDeque,
    ) -> Option<Arc<dyn PartWatch>> {
        let lacks = |scope: &dyn PartWatch| {
            scope.lacks_runner() && self.judge(fork_deque, scope.site()) == Judgement::ByRelief
        };
        fork_deque.last_scope_that(lacks)
    }

    /// Whether the parts of the fork at `site` are kept from the workers.
    fn is_suspect(&self, site: &'static Location<'static>) -> bool {
        let (asked, answer) = self.last_asked.get();
        let is_suspect = match ptr::eq(asked, site) {
            true => answer,
            false => {
                let has_room = self.fork_deques.has_room_for_trials(self.shared);
                self.shared.suspects.include_parts_of(site, has_room)
            }
        };
        self.last_asked.set((site, is_suspect));
        if is_suspect {
            // Relaxed: see `find_blocked`.
            self.fork_deques.lacked_room.store(true, Ordering::Relaxed);
        }
        is_suspect
    }
}
