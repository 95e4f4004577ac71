//! The combiner: every commit goes through it, one after the other. Only the thread that holds it (see
//! `publication_list`) calls it; no author's code runs here, because edits are data.
//!
//! The way of a commit: [`Combiner::serve`] checks that no write lease is in the way, [`Combiner::commit`] that the
//! commit was not made before; each tree's change is prepared on a clone of its newest version (`prepare.rs`), so a
//! failure half-way leaves no trace; [`Combiner::accept`] (`acceptance.rs`) numbers the commit and appends it to the
//! journal; [`Combiner::apply`] (`apply.rs`) applies it to the forest; and `publish.rs` publishes the versions: from
//! then on readers see them. If the journal answers later, the commit waits (`outstanding.rs`), and is applied when its
//! turn comes. A new version of one tree is published at the end of its group, by [`Combiner::end_group`], or before
//! the group's next commit that is not just another version of that tree. Every other commit is published when it is
//! applied.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use weald_tree::Bytes;

use super::at_risk::AtRisk;
use super::commit_ids::CommitIds;
use super::outstanding::{Outcome, Queue};
use super::pending::Pending;
use super::prepare::{Preparation, Unprepared};
use super::publish::Publisher;
use super::request::{Answer, CommitRequest, Garbage, Request, SubmitUnawaited};
use super::rollback::{Before, FailureWatch};
use super::start::Start;
use super::write_leases::WriteLeases;
use crate::error::CommitError;
use crate::journal::Position;
use crate::state::deferred::Deferred;
use crate::state::forest::ForestState;
use crate::version::CommitId;

/// How many requests a group takes before it is published; requests that are queued at once may exceed it.
const GROUP: usize = 64;

/// How many versions may wait before a group's end frees them.
const GONE: usize = 64;

pub(crate) struct Combiner {
    /// The number and the time of the newest commit, accepted or on its way into the journal.
    pub(super) commit_number: u64,
    pub(super) time: SystemTime,
    /// How many ids were given.
    pub(super) ids: u64,
    /// Those of the newest one that is visible, or will be at the end of the group.
    pub(super) accepted: (u64, SystemTime),
    /// The last reading of the clock.
    pub(super) uptime: Duration,
    /// The time of this group, once a commit needed it.
    pub(super) now: Option<SystemTime>,
    /// How many requests were served in this group.
    served: usize,
    pub(super) commit_ids: CommitIds,
    /// The position of the newest commit that is visible.
    pub(super) position: Option<Position>,
    pub(super) outstanding: Queue,
    /// Requests that wait until the journal takes records again.
    pub(super) held: VecDeque<Arc<Pending>>,
    /// Whether the journal failed in such a way that nobody knows what it has.
    pub(super) is_poisoned: bool,
    /// How names and tags were before the commits that are not durable yet, with their numbers.
    pub(super) before: VecDeque<(u64, Before)>,
    pub(super) failure: FailureWatch,
    /// The commits that are visible and not durable.
    pub(super) at_risk: AtRisk,
    /// Makes the forest look for answers of the journal.
    pub(super) journal_waker: Waker,
    pub(super) write_leases: WriteLeases,
    /// Makes the forest check its leases.
    pub(super) alarm: Waker,
    pub(super) submitter: Weak<dyn SubmitUnawaited>,
    pub(super) publisher: Publisher,
    /// Requests that waited for a lease that has ended.
    pub(super) resumed: VecDeque<Arc<Pending>>,
    pub(super) answers: Vec<(Arc<Pending>, Answer)>,
    /// Whether a watch of the forest is to be woken.
    pub(super) has_happened: bool,
    /// Whether the last request made a version that was collected.
    pub(super) has_collected: bool,
    /// The last answer to a commit whose version was collected, unless it is that of the combiner's own thread.
    pub(super) collected_for: Option<usize>,
}

/// What became of a request.
pub(crate) enum Served {
    Done(Answer),
    /// It waits for the lease of the tree with this number.
    Waits(u64, Request),
    /// It waits until the journal takes records again.
    Held(Request),
    /// The answer is the outcome of the outstanding commit at this index.
    Later(usize, Outcome),
}

impl Combiner {
    pub(crate) fn new(
        (keep, start): (usize, Start),
        [alarm, journal_waker, failure_waker]: [Waker; 3],
        submitter: Weak<dyn SubmitUnawaited>,
    ) -> Self {
        let (number, time) = (start.number, start.time);
        Self {
            commit_number: number,
            time,
            ids: 0,
            accepted: (number, time),
            uptime: Duration::ZERO,
            now: None,
            served: 0,
            commit_ids: start.ids,
            position: start.position,
            outstanding: Queue::default(),
            held: VecDeque::new(),
            is_poisoned: false,
            before: VecDeque::new(),
            failure: FailureWatch::new(failure_waker),
            at_risk: match start.is_noted {
                true => AtRisk::after(number),
                false => AtRisk::after_unnoted(),
            },
            journal_waker,
            write_leases: WriteLeases::default(),
            alarm,
            submitter,
            publisher: Publisher::new(keep),
            resumed: VecDeque::new(),
            answers: Vec::new(),
            has_happened: false,
            has_collected: false,
            collected_for: None,
        }
    }

    /// Serves the request of the thread that holds the combiner, and the requests that it set free. The
    /// answer holds once the group has ended.
    pub(crate) fn serve_own(&mut self, forest: &ForestState, request: Request) -> Served {
        self.served += 1;
        self.has_collected = false;
        let served = self.serve(forest, request);
        if self.has_collected {
            self.collected_for = None;
        }
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

    pub(super) fn serve_resumed(&mut self, forest: &ForestState) {
        while let Some(pending) = self.resumed.pop_front() {
            self.serve_pending(forest, pending);
        }
    }

    fn serve_pending(&mut self, forest: &ForestState, pending: Arc<Pending>) {
        let Some(request) = pending.take_up() else {
            return;
        };
        self.has_collected = false;
        match self.serve(forest, request) {
            Served::Done(answer) => {
                if self.has_collected {
                    self.collected_for = Some(self.answers.len());
                }
                self.answers.push((pending, answer));
            }
            Served::Waits(tree_number, request) => {
                pending.put_back(request);
                self.queue_and_check(forest, tree_number, pending);
            }
            Served::Held(request) => {
                pending.put_back(request);
                self.hold(pending);
            }
            Served::Later(at, outcome) => self.wait_for((at, outcome), pending),
        }
    }

    /// Publishes what the group has accepted, then leaves the answers for the waiters.
    pub(crate) fn end_group(&mut self, forest: &ForestState) {
        if !self.outstanding.is_empty() {
            self.advance(forest);
        }
        if forest.reentrancy.take_restless() && !self.outstanding.is_empty() {
            self.let_authors_ask();
        }
        self.publish_accepted(forest);
        self.fall_back_if_due(forest);
        self.tell_what_happened(forest);
        self.now = None;
        let served = std::mem::take(&mut self.served);
        if served > 0 {
            forest.stats.group(served);
        }
        for (pending, answer) in self.answers.drain(..) {
            let waker = pending.answer(answer);
            self.publisher.deferred.wake_later(waker);
            // If its author is gone, the answer goes with it.
            let abandoned = Arc::into_inner(pending);
            self.publisher.deferred.drop_later(abandoned);
        }
    }

    /// Publishes all accepted commits: the versions that were collected, and the number of the newest commit.
    pub(super) fn publish_accepted(&mut self, forest: &ForestState) {
        self.publisher.publish_collected(&forest.stats);
        forest.stats.published(self.accepted.0);
        // Versions that take long to free are left to an author of the same tree.
        if let Some((_, answer)) = self
            .collected_for
            .take()
            .and_then(|at| self.answers.get_mut(at))
        {
            answer.leave(self.publisher.deferred.take_large());
        }
    }

    /// The answer of the journal has to be polled again. The units that wait for it do that when it is their turn, so
    /// that no thread is kept.
    fn let_authors_ask(&mut self) {
        let commits = self.outstanding.commits.iter();
        let waiters = commits.flat_map(|commit| &commit.waiters);
        let wakers: Vec<_> = waiters.filter_map(|(pending, _)| pending.waker()).collect();
        if wakers.is_empty()
            && let Some(submitter) = self.submitter.upgrade()
        {
            submitter.submit_unawaited(Request::CheckJournal);
        }
        self.publisher.deferred.wake_later(wakers);
    }

    /// What is to be done once others may hold the combiner.
    pub(crate) fn take_deferred(&mut self) -> Deferred {
        std::mem::take(&mut self.publisher.deferred)
    }

    /// Whether others should hold the combiner for a moment, because much is to be freed or a waiter is to
    /// be woken.
    pub(crate) fn should_lend(&self) -> bool {
        let deferred = &self.publisher.deferred;
        deferred.is_waited_for() || deferred.versions() > GONE
    }

    fn serve(&mut self, forest: &ForestState, request: Request) -> Served {
        match request {
            Request::Commit(commit) => match self.write_leases.in_the_way(forest, &commit) {
                Some(tree_number) => return Served::Waits(tree_number, Request::Commit(commit)),
                None => return self.commit(forest, commit),
            },
            Request::TakeLease(request) => {
                let now = self.uptime(forest);
                if !self.write_leases.take(&request, now) {
                    return Served::Waits(request.state.number, Request::TakeLease(request));
                }
                // The update must see all commits to the tree, including those on their way.
                let head = self.publisher.unaccepted.head(&request.state);
                if let Some(at) = head.and_then(|head| self.outstanding.at(head.number())) {
                    return Served::Later(at, Outcome::Found(Answer::Done));
                }
            }
            Request::Look(id) => return self.look(id),
            Request::ReleaseLease(request) => {
                self.resumed.extend(self.write_leases.release(&request))
            }
            Request::CheckLeases => self.check_leases(forest),
            Request::Refuse(error) => {
                return self.once_visible(Answer::Committed(Err(error), Garbage::NONE));
            }
            Request::CheckFailure => self.look_for_failure(forest),
            Request::Checkpoint if forest.fall().is_some() => {
                let error = CommitError::Journal(forest.refusal());
                return Served::Done(Answer::Committed(Err(error), Garbage::NONE));
            }
            Request::Checkpoint => {
                self.publish_accepted(forest);
                return Served::Done(Answer::Moment(Box::new(self.moment(forest))));
            }
            Request::CheckJournal => {} // It is done at the end of every group.
        }
        Served::Done(Answer::Done)
    }

    /// The receipt of the commit that an author gave this id, once it is visible.
    fn look(&self, id: CommitId) -> Served {
        if let Some((first, _)) = self.commit_ids.get(id) {
            let is_lost = first.version.number > self.accepted.0;
            let found = if is_lost {
                Err(CommitError::Unknown(id))
            } else {
                Ok(first)
            };
            return Served::Done(Answer::Committed(found, Garbage::NONE));
        }
        match self.outstanding.find(id) {
            Some((at, _)) => {
                let receipt = self.outstanding.commits[at].commit;
                Served::Later(at, Outcome::Nothing(receipt, None))
            }
            None => Served::Done(Answer::Done),
        }
    }

    fn commit(&mut self, forest: &ForestState, commit: CommitRequest) -> Served {
        let done = |answer| Served::Done(answer);
        let is_create = commit.action.is_create();
        if let Some((id, digest)) = commit.id()
            && let Some((first, known)) = self.commit_ids.get(id)
        {
            let garbage = Garbage::of(commit);
            return done(match digest == known {
                // The forest has fallen back, and nobody knows whether the journal has it.
                true if first.version.number > self.accepted.0 => {
                    Answer::refused((CommitError::Unknown(id), garbage), is_create)
                }
                true => Answer::Committed(Ok(first), garbage),
                false => Answer::refused((CommitError::IdTaken(first), garbage), is_create),
            });
        }
        if !self.outstanding.is_empty() {
            if let Some((id, digest)) = commit.id()
                && let Some((at, known)) = self.outstanding.find(id)
            {
                if digest == known {
                    return Served::Later(at, Outcome::Own);
                }
                let error = CommitError::IdTaken(self.outstanding.commits[at].commit);
                let answer = Answer::refused((error, Garbage::of(commit)), is_create);
                return Served::Later(at, Outcome::Found(answer));
            }
            let pipelined = forest
                .journal
                .as_ref()
                .map_or(1, |journal| journal.pipelined);
            if self.outstanding.must_hold(pipelined) {
                return Served::Held(Request::Commit(commit));
            }
        }
        if self.is_poisoned {
            let error = CommitError::Journal(forest.refusal());
            return done(Answer::refused((error, Garbage::of(commit)), is_create));
        }
        let id = commit.id();
        let leases = self.leases_of(&commit);
        let publisher = &self.publisher;
        match (Preparation { forest, publisher }).prepare(commit.action) {
            Ok(prepared) => {
                let bytes = commit.terms.and_then(|terms| terms.bytes);
                let bytes = bytes.unwrap_or_else(|| Bytes::new(&[]));
                let served = self.accept(forest, prepared, (id, bytes));
                self.end_leases(leases);
                served
            }
            Err(Unprepared::Refused(error, garbage)) => {
                forest.stats.refused(&error);
                self.end_leases(leases);
                self.once_visible(Answer::refused((error, garbage), is_create))
            }
            Err(Unprepared::Overtaken(action, heads)) => {
                let commit = CommitRequest { action, ..commit };
                done(self.give_back(forest, commit, heads))
            }
        }
    }
}
