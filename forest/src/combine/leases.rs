//! The combiner's part of write leases, and of large commits that are given back to their authors.

use std::panic::Location;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::combiner::Combiner;
use super::pending::Pending;
use super::request::{Answer, CommitRequest, HeldLeases, LeaseRequest, Overtaken};
use super::write_leases::LIMIT;
use crate::journal::notice;
use crate::state::forest::ForestState;
use crate::state::root::RootRef;
use crate::state::tree::TreeRef;
use crate::wake::catch_foreign;

impl Combiner {
    /// Queues a request behind the lease that is in its way, and serves those that this sets free.
    pub(crate) fn queue_behind_lease(
        &mut self,
        forest: &ForestState,
        tree_number: u64,
        pending: Arc<Pending>,
    ) {
        self.queue_and_check(forest, tree_number, pending);
        self.serve_resumed(forest);
    }

    /// Queues a request behind a lease, and revokes the leases that are over now that it waits.
    pub(super) fn queue_and_check(
        &mut self,
        forest: &ForestState,
        tree_number: u64,
        pending: Arc<Pending>,
    ) {
        let alarm = (&*forest.clock, &self.alarm);
        self.write_leases
            .queue_behind_lease(alarm, tree_number, pending);
        self.check_leases(forest);
    }

    pub(super) fn check_leases(&mut self, forest: &ForestState) {
        let report = |request: &LeaseRequest, held: Duration| {
            forest.stats.lease_revoked();
            let (tree, held_ms) = (request.state.name(), held.as_millis());
            if request.is_begun.is_some() {
                return; // The author of a large edit has not come for it yet, and will ask again.
            }
            // All commits wait for this thread, and must not wait for a subscriber.
            let caller = request.caller;
            notice(move || {
                tracing::warn!(%tree, held_ms, %caller, "an update kept others waiting; its write lease was revoked");
            });
        };
        let now = self.uptime(forest);
        self.resumed.extend(self.write_leases.revoke(now, report));
    }

    /// The reading of the clock. A clock that panics appears to stand still, so its panic loses no request.
    pub(super) fn uptime(&mut self, forest: &ForestState) -> Duration {
        let now = catch_foreign(|| forest.clock.uptime());
        self.uptime = self.uptime.max(now.unwrap_or_default());
        self.uptime
    }

    /// The leases under which a commit is made: the numbers of the trees, and the number of the leases.
    pub(super) fn leases_of(&self, commit: &CommitRequest) -> Option<(Vec<u64>, u64)> {
        let lease_number = commit.lease()?;
        let trees = commit.action.trees().map(|state| state.number);
        Some((trees.collect(), lease_number))
    }

    /// Ends the leases once the commit has its number: later commits are prepared against its
    /// versions.
    pub(super) fn end_leases(&mut self, leases: Option<(Vec<u64>, u64)>) {
        let Some((trees, lease_number)) = leases else {
            return;
        };
        for number in trees {
            self.resumed
                .extend(self.write_leases.end(number, lease_number));
        }
    }

    /// Gives a large commit back to its author, with the write leases of its trees. None of them is held by others,
    /// because this was checked before.
    pub(super) fn give_back(
        &mut self,
        forest: &ForestState,
        mut commit: CommitRequest,
        heads: Vec<RootRef>,
    ) -> Answer {
        let is_begun = Arc::new(AtomicBool::new(false));
        let (lease_number, now) = (forest.unique_number(), self.uptime(forest));
        let request = |state: &TreeRef| LeaseRequest {
            state: state.clone(),
            lease_number,
            caller: Location::caller(),
            limit: LIMIT * (1 << commit.overtaken.min(7)),
            is_begun: Some(Arc::clone(&is_begun)),
        };
        let requests: Vec<LeaseRequest> = commit.action.trees().map(request).collect();
        requests
            .iter()
            .for_each(|request| self.write_leases.take_over(request, now));
        commit.terms().lease = Some(lease_number);
        commit.overtaken += 1;
        let submitter = Weak::clone(&self.submitter);
        let leases = HeldLeases {
            requests,
            is_begun,
            submitter,
        };
        Answer::Overtaken(Box::new(Overtaken {
            commit,
            heads,
            leases,
        }))
    }
}
