//! The combiner: the one place through which every commit goes, one after the other. Who has it (see
//! `desk`) calls it; it runs nobody's code, because edits are data.
//!
//! To follow a commit: `Commit` (`commit.rs`) brings the request here; [`Combiner::serve`] looks whether
//! a turn is in the way, [`Combiner::commit`] whether the commit happened before; the change of each
//! tree is prepared on a clone of its newest version (`prepare.rs`), so that what fails half-way leaves no trace;
//! the journal takes the record; and `publish.rs` makes it visible.
//!
//! Versions of one tree that are made one after the other become visible together at the end of a group:
//! readers could not have told, and one store serves all.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use weald_tree::Bytes;

use crate::aftermath::Aftermath;
use crate::error::CommitError;
use crate::forest::Shared;
use crate::index::Indexes;
use crate::journal::{Change, Journal, Record};
use crate::known::Known;
use crate::line::Line;
use crate::prepare::{NewTree, Prepared, tell};
use crate::publish::{self, Retention};
use crate::request::{Answer, Bid, Pending, Request, What, Work};
use crate::root::Root;
use crate::turn::Turns;
use crate::version::{CommitId, Committed, Version};

/// How many requests a group takes before it is made visible; what is in the queue at once may be more.
const GROUP: usize = 64;

/// How many versions wait to be freed before that is done between two groups.
const GONE: usize = 64;

pub(crate) struct Combiner {
    /// The number and the time of the newest commit.
    number: u64,
    time: SystemTime,
    /// What the clock said last.
    uptime: Duration,
    /// The time of this group, once somebody needed it.
    now: Option<SystemTime>,
    /// How many requests were served in this group.
    served: usize,
    lines: u64,
    known: Known,
    journal: Option<Box<dyn Journal>>,
    turns: Turns,
    retention: Retention,
    /// The versions of one tree that are not visible yet.
    unseen: Vec<Arc<Root>>,
    unseen_of: Option<Arc<Line>>,
    /// Requests that waited for a turn which has ended.
    resumed: VecDeque<Arc<Pending>>,
    answers: Vec<(Arc<Pending>, Answer)>,
}

/// What became of a request.
pub(crate) enum Served {
    Done(Answer),
    /// It waits for the turn of the tree with this number.
    Waits(u64, Request),
}

impl Combiner {
    pub(crate) fn new(keep: usize, journal: Option<Box<dyn Journal>>) -> Self {
        Self {
            number: 0,
            time: SystemTime::UNIX_EPOCH,
            uptime: Duration::ZERO,
            now: None,
            served: 0,
            lines: 0,
            known: Known::default(),
            journal,
            turns: Turns::default(),
            retention: Retention {
                keep,
                after: Aftermath::default(),
            },
            unseen: Vec::new(),
            unseen_of: None,
            resumed: VecDeque::new(),
            answers: Vec::new(),
        }
    }

    /// Serves the request of the thread that has the combiner, and whom it set free. It happens with the
    /// end of the group.
    pub(crate) fn serve_own(&mut self, shared: &Arc<Shared>, request: Request) -> Served {
        self.served += 1;
        let served = self.serve(shared, request);
        if !self.resumed.is_empty() {
            self.serve_resumed(shared);
        }
        served
    }

    /// Serves the requests of others, in their order, in the same group.
    pub(crate) fn serve_all(&mut self, shared: &Arc<Shared>, queue: &mut VecDeque<Arc<Pending>>) {
        self.served += queue.len();
        for pending in queue.drain(..) {
            self.serve_pending(shared, pending);
            self.serve_resumed(shared);
        }
    }

    /// Whether a group may still grow.
    pub(crate) fn has_room(&self) -> bool {
        self.served < GROUP
    }

    /// Lets a request wait for a turn that was in its way.
    pub(crate) fn wait(&mut self, shared: &Arc<Shared>, number: u64, pending: Arc<Pending>) {
        self.turns.wait(shared, number, pending);
        self.look_at_turns(shared);
        self.serve_resumed(shared);
    }

    fn serve_resumed(&mut self, shared: &Arc<Shared>) {
        while let Some(pending) = self.resumed.pop_front() {
            self.serve_pending(shared, pending);
        }
    }

    fn serve_pending(&mut self, shared: &Arc<Shared>, pending: Arc<Pending>) {
        let Some(request) = pending.take_up() else {
            return;
        };
        match self.serve(shared, request) {
            Served::Done(answer) => self.answers.push((pending, answer)),
            Served::Waits(number, request) => {
                pending.put_back(request);
                self.turns.wait(shared, number, pending);
                self.look_at_turns(shared);
            }
        }
    }

    /// Makes visible what was done, then tells those who wait.
    pub(crate) fn end_group(&mut self, shared: &Shared) {
        self.show(shared);
        self.now = None;
        let served = std::mem::take(&mut self.served);
        if served > 0 {
            shared.stats.group(served);
        }
        for (pending, answer) in self.answers.drain(..) {
            self.retention.after.wake_later(pending.answer(answer));
        }
    }

    /// What is to be done once others may have the right.
    pub(crate) fn take_aftermath(&mut self) -> Aftermath {
        std::mem::take(&mut self.retention.after)
    }

    /// Whether others should have the right for a moment, because much is to be done, or somebody waits.
    pub(crate) fn should_step_aside(&self) -> bool {
        let after = &self.retention.after;
        after.is_waited_for() || after.versions() > GONE
    }

    fn serve(&mut self, shared: &Arc<Shared>, request: Request) -> Served {
        match request {
            Request::Commit(work) => match self.turns.in_the_way(shared, &work) {
                Some(number) => return Served::Waits(number, Request::Commit(work)),
                None => return Served::Done(self.commit(shared, work)),
            },
            Request::TakeTurn(bid) => {
                let now = self.uptime(shared);
                if !self.turns.take(&bid, now) {
                    return Served::Waits(bid.line.number, Request::TakeTurn(bid));
                }
            }
            Request::LeaveTurn(bid) => self.resumed.extend(self.turns.leave(&bid)),
            Request::LookAtTurns => self.look_at_turns(shared),
        }
        Served::Done(Answer::Turned)
    }

    fn look_at_turns(&mut self, shared: &Arc<Shared>) {
        let report = |bid: &Bid, held: Duration| {
            shared.stats.turn_revoked();
            let (tree, held_ms) = (bid.line.name(), held.as_millis());
            // Who listens is somebody else's code, as a clock is.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                tracing::warn!(%tree, held_ms, caller = %bid.caller, "an update kept others waiting; its turn was taken away");
            }));
        };
        let now = self.uptime(shared);
        self.resumed.extend(self.turns.revoke(now, report));
    }

    /// What the clock says. A clock that panics stands still, and others' requests are not lost with it.
    fn uptime(&mut self, shared: &Shared) -> Duration {
        let now = catch_unwind(AssertUnwindSafe(|| shared.clock.uptime()));
        self.uptime = self.uptime.max(now.unwrap_or_default());
        self.uptime
    }

    fn commit(&mut self, shared: &Arc<Shared>, work: Work) -> Answer {
        if let Some(first) = work.id.and_then(|id| self.known.get(id)) {
            return Answer::Committed(Ok(first));
        }
        let id = work.id;
        let is_create = matches!(work.what, What::Create(..));
        match self.prepare(shared, work.what) {
            Ok(prepared) => self.happen(shared, prepared, (id, work.bytes)),
            Err(error) => {
                shared.stats.refused(&error);
                refusal(error, is_create)
            }
        }
    }

    /// The commit is sure to be possible; only the journal may still refuse it.
    fn happen(
        &mut self,
        shared: &Shared,
        prepared: Prepared,
        (id, bytes): (Option<CommitId>, Bytes),
    ) -> Answer {
        if let Prepared::Nothing(head) = prepared {
            let id = id.unwrap_or(head.commit.id);
            return Answer::Committed(Ok(Committed { id, ..head.commit }));
        }
        let commit = self.stamp(shared, id);
        if let Err(reason) = self.append(&prepared, commit, &bytes) {
            return refusal(
                CommitError::Journal(reason),
                matches!(prepared, Prepared::Create(..)),
            );
        }
        if !matches!(prepared, Prepared::One(..)) {
            // What this commit does is visible at once, so what came before it must be.
            self.show(shared);
        }
        (self.number, self.time) = (commit.version.number, commit.time);
        shared.stats.committed();
        let answer = self.perform(shared, prepared, (commit, bytes));
        if id.is_some() {
            self.known.add(commit);
        }
        answer
    }

    /// The next number and the time; they count only once the journal has them.
    fn stamp(&mut self, shared: &Shared, id: Option<CommitId>) -> Committed {
        let now = *self.now.get_or_insert_with(|| {
            let now = catch_unwind(AssertUnwindSafe(|| shared.clock.now()));
            now.unwrap_or(SystemTime::UNIX_EPOCH)
        });
        let number = self.number + 1;
        let incarnation = shared.incarnation;
        Committed {
            id: id.unwrap_or(shared.nth_id(number)),
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
        tell(prepared, self.lines, &mut append)
    }

    fn perform(
        &mut self,
        shared: &Shared,
        prepared: Prepared,
        (commit, bytes): (Committed, Bytes),
    ) -> Answer {
        let root = |line: &Line, new: NewTree| {
            shared.blobs.add(line.number, new.blobs);
            Arc::new(Root::new(line.number, new.content, commit, bytes.clone()))
        };
        match prepared {
            Prepared::Nothing(_) => {}
            Prepared::One(line, new) => {
                let root = root(&line, new);
                self.add_unseen(shared, line, root);
            }
            Prepared::Many(versions) => {
                let roots = versions.into_iter().map(|(line, new)| {
                    let root = root(&line, new);
                    (line, root)
                });
                publish::jointly(roots.collect(), &mut self.retention);
            }
            Prepared::Create(name, tree) => {
                self.lines += 1;
                let content = (*tree, Indexes::default());
                let first = Arc::new(Root::new(self.lines, content, commit, bytes));
                let line = Arc::new(Line::new(self.lines, Arc::clone(&name), first));
                shared.names_mut().insert(name, Arc::clone(&line));
                return Answer::Created(Ok(line));
            }
            Prepared::Delete(line) => {
                shared.names_mut().remove(&*line.name());
                line.delete();
                publish::last(&line, &mut self.retention);
            }
            Prepared::Rename(line, name) => {
                let mut names = shared.names_mut();
                names.remove(&*line.name());
                names.insert(Arc::clone(&name), Arc::clone(&line));
                line.rename(name);
            }
            Prepared::Erase(line, node, name) => {
                shared.blobs.erase(&(line.number, node, name), commit.time);
            }
            Prepared::Tag(line, tag, tagged) => {
                let gone = line.past().tags.insert(tag, tagged);
                self.retention.after.free_later(gone.map(|gone| gone.root));
            }
            Prepared::Untag(line, tag) => {
                let gone = line.past().tags.remove(&tag);
                self.retention.after.free_later(gone.map(|gone| gone.root));
            }
        }
        Answer::Committed(Ok(commit))
    }

    /// The newest version of a tree, visible or not.
    pub(crate) fn head(&self, line: &Arc<Line>) -> Arc<Root> {
        let is_unseen = self
            .unseen_of
            .as_ref()
            .is_some_and(|of| Arc::ptr_eq(of, line));
        match self.unseen.last() {
            Some(root) if is_unseen => Arc::clone(root),
            _ => line.slot.load_full(),
        }
    }

    fn add_unseen(&mut self, shared: &Shared, line: Arc<Line>, root: Arc<Root>) {
        if !self
            .unseen_of
            .as_ref()
            .is_some_and(|of| Arc::ptr_eq(of, &line))
        {
            self.show(shared);
            self.unseen_of = Some(line);
        }
        self.unseen.push(root);
    }

    pub(crate) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Makes visible what is not yet.
    pub(crate) fn show(&mut self, shared: &Shared) {
        if let Some(line) = self.unseen_of.take() {
            publish::one(&line, &mut self.unseen, &mut self.retention);
        }
        shared.stats.visible(self.number);
    }
}

fn refusal(error: CommitError, is_create: bool) -> Answer {
    if is_create {
        Answer::Created(Err(error))
    } else {
        Answer::Committed(Err(error))
    }
}
