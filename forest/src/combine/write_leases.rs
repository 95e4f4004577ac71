//! Write leases: an `update` may hold the exclusive right to commit to a tree, for ten milliseconds at first.
//!
//! - An update that has lost three races asks for the tree's lease. What arrives while another update holds
//!   it waits behind it in the order of arrival, commits and requests for the lease alike.
//! - A lease that outlasts its limit while others wait is revoked and reported. Its holder may still commit,
//!   like everybody else. The limit is [`LIMIT`], and doubles each time the same update has to ask again.
//! - The author of a large edit that was overtaken gets the leases of all its trees at once (`take_over`). They are
//!   not revoked once it has begun to replay the edit: it only computes, and then commits.
//! - There is nearly never a lease, and then the check costs one comparison.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use super::pending::Pending;
use super::request::{CommitRequest, LeaseRequest};
use crate::clock::Clock;
use crate::state::forest::ForestState;
use crate::wake::catch_foreign;

/// How long the first lease of an update lasts when others wait.
pub(crate) const LIMIT: Duration = Duration::from_millis(10);

impl LeaseRequest {
    /// Whether an author replays a large edit under it.
    fn is_replayed(&self) -> bool {
        let is_begun = self.is_begun.as_ref();
        is_begun.is_some_and(|is_begun| is_begun.load(Ordering::Relaxed))
    }
}

/// The leases that are held, by the number of the tree.
#[derive(Default)]
pub(crate) struct WriteLeases(HashMap<u64, HeldLease>);

struct HeldLease {
    request: LeaseRequest,
    since: Duration,
    waiting: VecDeque<Arc<Pending>>,
}

impl WriteLeases {
    /// The number of a tree that this commit would touch and whose lease another update holds.
    #[inline]
    pub(crate) fn in_the_way(&self, forest: &ForestState, commit: &CommitRequest) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        let is_foreign = |number: &u64| {
            let lease = self.0.get(number);
            lease.is_some_and(|lease| Some(lease.request.lease_number) != commit.lease())
        };
        let name = commit.action.named();
        let named = name.and_then(|name| forest.names().get(name).cloned());
        let trees = commit.action.trees().chain(&named);
        trees.map(|state| state.number).find(is_foreign)
    }

    /// Takes the lease if it is free.
    pub(crate) fn take(&mut self, request: &LeaseRequest, now: Duration) -> bool {
        if self.0.contains_key(&request.state.number) {
            return false;
        }
        let lease = HeldLease {
            request: request.clone(),
            since: now,
            waiting: VecDeque::new(),
        };
        self.0.insert(request.state.number, lease);
        true
    }

    /// Takes the lease, which is free or held by the commit that asks; requests that wait for it continue to
    /// wait.
    pub(crate) fn take_over(&mut self, request: &LeaseRequest, now: Duration) {
        let waiting = self.0.remove(&request.state.number);
        let lease = HeldLease {
            request: request.clone(),
            since: now,
            waiting: waiting.map_or_else(VecDeque::new, |lease| lease.waiting),
        };
        self.0.insert(request.state.number, lease);
    }

    /// Ends a lease. Returns the requests that waited for it, to be served now in this order.
    pub(crate) fn release(&mut self, request: &LeaseRequest) -> VecDeque<Arc<Pending>> {
        self.end(request.state.number, request.lease_number)
    }

    /// Ends the lease of a tree, if it is still the one with this number.
    pub(crate) fn end(&mut self, number: u64, lease_number: u64) -> VecDeque<Arc<Pending>> {
        let has_it = |lease: &HeldLease| lease.request.lease_number == lease_number;
        if !self.0.get(&number).is_some_and(has_it) {
            return VecDeque::new();
        }
        self.0
            .remove(&number)
            .map_or_else(VecDeque::new, |lease| lease.waiting)
    }

    /// Queues a request until the tree's lease has ended. The first request sets the alarm.
    pub(crate) fn queue_behind_lease(
        &mut self,
        (clock, alarm): (&dyn Clock, &Waker),
        tree_number: u64,
        pending: Arc<Pending>,
    ) {
        let lease = self.0.get_mut(&tree_number);
        let lease =
            lease.expect("the lease was found in the way, and only the combiner ends leases");
        lease.waiting.push_back(pending);
        if lease.waiting.len() == 1 {
            let deadline = lease.since + lease.request.limit;
            // If the clock panics the lease is not revoked; it ends when its holder releases it.
            catch_foreign(|| clock.wake_at(deadline, alarm.clone()));
        }
    }

    /// Ends the leases that outlasted their limit while others wait. Returns the requests that waited, to be
    /// served now.
    pub(crate) fn revoke(
        &mut self,
        now: Duration,
        report: impl Fn(&LeaseRequest, Duration),
    ) -> VecDeque<Arc<Pending>> {
        let mut freed = VecDeque::new();
        self.0.retain(|_, lease| {
            let is_over = lease.since + lease.request.limit <= now
                && !lease.waiting.is_empty()
                && !lease.request.is_replayed();
            if is_over {
                report(&lease.request, now - lease.since);
                freed.append(&mut lease.waiting);
            }
            !is_over
        });
        freed
    }
}
