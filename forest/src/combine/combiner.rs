//! The combiner: every commit goes through it, one after the other. Only the thread that holds it (see
//! `publication_list`) calls it; no author's code runs here, because edits are data.
//!
//! The way of a commit: [`Combiner::serve`] checks that no write lease is in the way, [`Combiner::commit`]
//! that the commit was not made before; each tree's change is prepared on a clone of its newest version
//! (`prepare.rs`), so a failure half-way leaves no trace; [`Combiner::accept`] numbers the commit and appends
//! it to the journal; [`Combiner::apply`] changes the forest; and `publish.rs` shows the versions to readers.
//! A new version of one tree is published at the end of its group, by [`Combiner::end_group`], or before the
//! group's next commit that is not just another version of that tree. Every other commit is published when it
//! is applied.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime};

use weald_tree::Bytes;

use super::commit_ids::CommitIds;
use super::prepare::{NewTree, Preparation, Prepared, append_to};
use super::publish::Publisher;
use super::request::{Action, Answer, Bid, CommitRequest, Pending, Request};
use super::write_leases::WriteLeases;
use crate::content::index::Indexes;
use crate::error::CommitError;
use crate::journal::{Change, Journal, Record};
use crate::state::deferred::Deferred;
use crate::state::forest::ForestState;
use crate::state::root::Root;
use crate::state::tree::TreeState;
use crate::version::{CommitId, Committed, Version};

/// How many requests a group takes before it is published; requests that are queued at once may exceed it.
const GROUP: usize = 64;

/// How many versions may wait before a group's end frees them.
const GONE: usize = 64;

pub(crate) struct Combiner {
    /// The number and the time of the newest accepted commit.
    commit_number: u64,
    time: SystemTime,
    /// The last reading of the clock.
    uptime: Duration,
    /// The time of this group, once a commit needed it.
    now: Option<SystemTime>,
    /// How many requests were served in this group.
    served: usize,
    /// How many trees were created.
    trees: u64,
    commit_ids: CommitIds,
    journal: Option<Box<dyn Journal>>,
    write_leases: WriteLeases,
    /// Makes the forest check its leases.
    alarm: Waker,
    publisher: Publisher,
    /// Requests that waited for a lease that has ended.
    resumed: VecDeque<Arc<Pending>>,
    answers: Vec<(Arc<Pending>, Answer)>,
}

/// What became of a request.
pub(crate) enum Served {
    Done(Answer),
    /// It waits for the lease of the tree with this number.
    Waits(u64, Request),
}

impl Combiner {
    pub(crate) fn new(keep: usize, journal: Option<Box<dyn Journal>>, alarm: Waker) -> Self {
        Self {
            commit_number: 0,
            time: SystemTime::UNIX_EPOCH,
            uptime: Duration::ZERO,
            now: None,
            served: 0,
            trees: 0,
            commit_ids: CommitIds::default(),
            journal,
            write_leases: WriteLeases::default(),
            alarm,
            publisher: Publisher::new(keep),
            resumed: VecDeque::new(),
            answers: Vec::new(),
        }
    }

    /// Serves the request of the thread that holds the combiner, and the requests that it set free. The
    /// answer holds once the group has ended.
    pub(crate) fn serve_own(&mut self, forest: &ForestState, request: Request) -> Served {
        self.served += 1;
        let served = self.serve(forest, request);
        if !self.resumed.is_empty() {
            self.serve_resumed(forest);
        }
        served
    }

    /// Serves queued requests, in their order, in the same group.
    pub(crate) fn serve_all(&mut self, forest: &ForestState, queue: &mut VecDeque<Arc<Pending>>) {
        self.served += queue.len();
        for pending in queue.drain(..) {
            self.serve_pending(forest, pending);
            self.serve_resumed(forest);
        }
    }

    /// Whether a group may still grow.
    pub(crate) fn has_room(&self) -> bool {
        self.served < GROUP
    }

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
    fn queue_and_check(&mut self, forest: &ForestState, tree_number: u64, pending: Arc<Pending>) {
        let alarm = (&*forest.clock, &self.alarm);
        self.write_leases
            .queue_behind_lease(alarm, tree_number, pending);
        self.check_leases(forest);
    }

    fn serve_resumed(&mut self, forest: &ForestState) {
        while let Some(pending) = self.resumed.pop_front() {
            self.serve_pending(forest, pending);
        }
    }

    fn serve_pending(&mut self, forest: &ForestState, pending: Arc<Pending>) {
        let Some(request) = pending.take_up() else {
            return;
        };
        match self.serve(forest, request) {
            Served::Done(answer) => self.answers.push((pending, answer)),
            Served::Waits(tree_number, request) => {
                pending.put_back(request);
                self.queue_and_check(forest, tree_number, pending);
            }
        }
    }

    /// Publishes what the group has accepted, then leaves the answers for the waiters.
    pub(crate) fn end_group(&mut self, forest: &ForestState) {
        self.publish_accepted(forest);
        self.now = None;
        let served = std::mem::take(&mut self.served);
        if served > 0 {
            forest.stats.group(served);
        }
        for (pending, answer) in self.answers.drain(..) {
            let waker = pending.answer(answer);
            self.publisher.deferred.wake_later(waker);
        }
    }

    /// What is to be done once others may hold the combiner.
    pub(crate) fn take_deferred(&mut self) -> Deferred {
        std::mem::take(&mut self.publisher.deferred)
    }

    /// Whether others should hold the combiner for a moment, because much is to be freed or a waiter is to
    /// be woken.
    pub(crate) fn should_step_aside(&self) -> bool {
        let deferred = &self.publisher.deferred;
        deferred.is_waited_for() || deferred.versions() > GONE
    }

    fn serve(&mut self, forest: &ForestState, request: Request) -> Served {
        match request {
            Request::Commit(commit) => match self.write_leases.in_the_way(forest, &commit) {
                Some(tree_number) => return Served::Waits(tree_number, Request::Commit(commit)),
                None => return Served::Done(self.commit(forest, commit)),
            },
            Request::TakeLease(bid) => {
                let now = self.uptime(forest);
                if !self.write_leases.take(&bid, now) {
                    return Served::Waits(bid.state.number, Request::TakeLease(bid));
                }
            }
            Request::ReleaseLease(bid) => self.resumed.extend(self.write_leases.release(&bid)),
            Request::CheckLeases => self.check_leases(forest),
        }
        Served::Done(Answer::Done)
    }

    fn check_leases(&mut self, forest: &ForestState) {
        let report = |bid: &Bid, held: Duration| {
            forest.stats.lease_revoked();
            let (tree, held_ms) = (bid.state.name(), held.as_millis());
            // A subscriber is foreign code, and may panic, as a clock may.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                tracing::warn!(%tree, held_ms, caller = %bid.caller, "an update kept others waiting; its write lease was revoked");
            }));
        };
        let now = self.uptime(forest);
        self.resumed.extend(self.write_leases.revoke(now, report));
    }

    /// The reading of the clock. A clock that panics appears to stand still, and no request is lost by it.
    fn uptime(&mut self, forest: &ForestState) -> Duration {
        let now = catch_unwind(AssertUnwindSafe(|| forest.clock.uptime()));
        self.uptime = self.uptime.max(now.unwrap_or_default());
        self.uptime
    }

    fn commit(&mut self, forest: &ForestState, commit: CommitRequest) -> Answer {
        if let Some(first) = commit.id.and_then(|id| self.commit_ids.get(id)) {
            return Answer::Committed(Ok(first));
        }
        let id = commit.id;
        let is_create = matches!(commit.action, Action::Create(..));
        let preparation = Preparation {
            forest,
            publisher: &self.publisher,
            has_journal: self.journal.is_some(),
        };
        match preparation.prepare(commit.action) {
            Ok(prepared) => self.accept(forest, prepared, (id, commit.bytes)),
            Err(error) => {
                forest.stats.refused(&error);
                refusal(error, is_create)
            }
        }
    }

    /// Numbers a commit that is possible, appends it to the journal, which may still refuse it, and applies it.
    fn accept(
        &mut self,
        forest: &ForestState,
        prepared: Prepared,
        (id, bytes): (Option<CommitId>, Bytes),
    ) -> Answer {
        if let Prepared::Nothing(head) = prepared {
            let id = id.unwrap_or(head.commit.id);
            return Answer::Committed(Ok(Committed { id, ..head.commit }));
        }
        let commit = self.stamp(forest, id);
        if let Err(reason) = self.append(&prepared, commit, &bytes) {
            return refusal(
                CommitError::Journal(reason),
                matches!(prepared, Prepared::Create(..)),
            );
        }
        let is_collected = |state| self.publisher.collects(state);
        if !matches!(&prepared, Prepared::One(state, _) if is_collected(state)) {
            // What came before becomes visible before this commit is applied, or its number known.
            self.publish_accepted(forest);
        }
        (self.commit_number, self.time) = (commit.version.number, commit.time);
        forest.stats.committed();
        let answer = self.apply(forest, prepared, (commit, bytes));
        if id.is_some() {
            self.commit_ids.add(commit);
        }
        answer
    }

    /// The next number and the time; they are taken only when the journal has accepted the commit.
    fn stamp(&mut self, forest: &ForestState, id: Option<CommitId>) -> Committed {
        let now = *self.now.get_or_insert_with(|| {
            let now = catch_unwind(AssertUnwindSafe(|| forest.clock.now()));
            now.unwrap_or(SystemTime::UNIX_EPOCH)
        });
        let number = self.commit_number + 1;
        let incarnation = forest.incarnation;
        Committed {
            id: id.unwrap_or(forest.nth_id(number)),
            version: Version {
                incarnation,
                number,
            },
            time: now.max(self.time),
        }
    }

    fn append(
        &mut self,
        prepared: &Prepared,
        commit: Committed,
        bytes: &[u8],
    ) -> Result<(), String> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let mut append = |changes: &[Change<'_>]| {
            let record = Record {
                version: commit.version,
                id: commit.id,
                time: commit.time,
                bytes,
                changes,
            };
            let taken = catch_unwind(AssertUnwindSafe(|| journal.append(&record)));
            taken.unwrap_or_else(|_| Err("it panicked".to_owned()))
        };
        append_to(&mut append, prepared, self.trees)
    }

    /// Changes the forest. New versions of one tree are collected, and published when the group ends, or
    /// before a commit that is not just another of them; every other change is visible at once.
    fn apply(
        &mut self,
        forest: &ForestState,
        prepared: Prepared,
        (commit, bytes): (Committed, Bytes),
    ) -> Answer {
        let root = |state: &TreeState, new: NewTree| {
            forest.blobs.add(state.number, new.blobs);
            let root = Root::new(state.number, new.content, commit, bytes.clone());
            Arc::new(root)
        };
        match prepared {
            Prepared::Nothing(_) => {}
            Prepared::One(state, new) => {
                let root = root(&state, new);
                self.publisher.collect(state, root);
            }
            Prepared::Many(versions) => {
                let roots = versions.into_iter().map(|(state, new)| {
                    let root = root(&state, new);
                    (state, root)
                });
                let roots: Vec<_> = roots.collect();
                self.publisher.publish_jointly(&forest.stats, &roots);
            }
            Prepared::Create(name, tree) => {
                self.trees += 1;
                let content = (*tree, Indexes::default());
                let first = Arc::new(Root::new(self.trees, content, commit, bytes));
                let state = Arc::new(TreeState::new(self.trees, Arc::clone(&name), first));
                forest.stats.published(self.commit_number);
                forest.names_mut().insert(name, Arc::clone(&state));
                return Answer::Created(Ok(state));
            }
            Prepared::Delete(state) => {
                forest.names_mut().remove(&*state.name());
                state.delete();
                self.publisher.wake_watches(&state);
            }
            Prepared::Rename(state, name) => {
                let mut names = forest.names_mut();
                names.remove(&*state.name());
                names.insert(Arc::clone(&name), Arc::clone(&state));
                state.rename(name);
            }
            Prepared::Erase(state, node, name) => {
                forest.blobs.erase(&(state.number, node, name), commit.time);
            }
            Prepared::Tag(state, tag, tagged) => {
                let gone = state.history().tags.insert(tag, tagged);
                let gone = gone.map(|gone| gone.root);
                self.publisher.deferred.free_later(gone);
            }
            Prepared::Untag(state, tag) => {
                let gone = state.history().tags.remove(&tag);
                let gone = gone.map(|gone| gone.root);
                self.publisher.deferred.free_later(gone);
            }
        }
        Answer::Committed(Ok(commit))
    }

    /// Publishes all accepted commits: the versions that were collected, and the number of the newest commit.
    fn publish_accepted(&mut self, forest: &ForestState) {
        self.publisher.publish_collected(&forest.stats);
        forest.stats.published(self.commit_number);
    }
}

fn refusal(error: CommitError, is_create: bool) -> Answer {
    if is_create {
        Answer::Created(Err(error))
    } else {
        Answer::Committed(Err(error))
    }
}
