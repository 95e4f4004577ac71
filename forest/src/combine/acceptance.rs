//! Acceptance, the first of the two stages of a commit: the combiner gives the commit its number, appends it to the
//! journal, and applies it when the journal has accepted it and all commits before it.

use std::sync::Arc;
use std::time::SystemTime;

use weald_tree::Bytes;

use super::combiner::{Combiner, Served};
use super::new_versions::Made;
use super::outstanding::{Outcome, Outstanding, Progress, Verdict, resolve};
use super::pending::Pending;
use super::prepare::Prepared;
use super::request::{Answer, Garbage};
use crate::error::CommitError;
use crate::journal::{AppendError, Appended, Digest, Durability, Erasure, Level, Position, Record};
use crate::state::forest::ForestState;
use crate::version::{CommitId, Committed, Version};
use crate::wake::catch_foreign;

impl Combiner {
    /// Numbers a commit that is possible and appends it to the journal, which may still refuse it. It is applied at
    /// once, unless the journal answers later.
    pub(super) fn accept(
        &mut self,
        forest: &ForestState,
        mut prepared: Prepared,
        (id, bytes): (Option<(CommitId, Digest)>, Bytes),
    ) -> Served {
        // References that are on their way are not noted yet.
        if let Prepared::Erase(erasure) = &mut prepared {
            let outstanding = self.outstanding.commits.iter();
            let coming = outstanding.flat_map(|known| known.made.references_at(&erasure.place));
            let coming: Vec<_> = coming.collect();
            erasure.ids.extend(coming);
            erasure.ids.sort_unstable();
            erasure.ids.dedup();
        }
        let (id, digest) = id.unzip();
        if let Prepared::Nothing(head, left) = prepared {
            return self.accept_nothing(forest, (id, digest), (head.commit(), left));
        }
        let commit = self.stamp(forest, id);
        let mut progress = match self.append(forest, &prepared, (commit, digest, &bytes)) {
            Ok(progress) => progress,
            // It is appended again when those before it are refused (`roll_back`).
            Err(AppendError::Behind)
                if prepared.erases().is_some() && !self.outstanding.is_empty() =>
            {
                Progress::Sent(Box::pin(std::future::ready(Err(AppendError::Behind))))
            }
            Err(error) => {
                let is_create = matches!(prepared, Prepared::Create(..));
                let refused = (CommitError::Journal(error), Garbage::of(prepared));
                return Served::Done(Answer::refused(refused, is_create));
            }
        };
        (self.commit_number, self.time) = (commit.version.number, commit.time);
        let Some((made, garbage)) = Made::of(prepared, (commit, bytes)) else {
            unreachable!("what changes nothing was answered above")
        };
        if self.outstanding.is_empty()
            && let Progress::Accepted(position) = progress
        {
            let at = (commit.version.number, position);
            match self.wait_if_at_risk(forest, made.given(), at) {
                Some(waits) => progress = waits,
                None => {
                    let applied = self.apply(forest, (made, garbage), (commit, digest, position));
                    return Served::Done(applied);
                }
            }
        }
        self.publisher.unaccepted.add(&made, commit.version.number);
        self.outstanding.commits.push_back(Outstanding {
            progress,
            made,
            commit,
            digest,
            garbage,
            waiters: Vec::new(),
        });
        Served::Later(self.outstanding.commits.len() - 1, Outcome::Own)
    }

    /// A commit that changes nothing gets no number and no record, but an id of its own. If the author gave the id, a
    /// later commit with this id counts as the same one; after a restart only a checkpoint may still know it.
    fn accept_nothing(
        &mut self,
        forest: &ForestState,
        (id, digest): (Option<CommitId>, Option<Digest>),
        (head, left): (Committed, Garbage),
    ) -> Served {
        self.ids += 1;
        let id = id.unwrap_or(forest.nth_id(self.ids));
        let receipt = Committed { id, ..head };
        match self.outstanding.at(head.version.number) {
            Some(at) => Served::Later(at, Outcome::Nothing(receipt, digest)),
            None => Served::Done(self.answer_nothing((receipt, digest), left)),
        }
    }

    /// Answers a commit that changed nothing, once the version that it left as it was is visible.
    fn answer_nothing(
        &mut self,
        (receipt, digest): (Committed, Option<Digest>),
        left: Garbage,
    ) -> Answer {
        // Another one with the same id may have been answered since it was asked for.
        if let Some(digest) = digest
            && self.commit_ids.get(receipt.id).is_none()
        {
            self.commit_ids.add(receipt, digest);
        }
        Answer::Committed(Ok(receipt), left)
    }

    /// What a commit waits for before it is applied, if so much is at risk that it must be durable first.
    fn wait_if_at_risk(
        &mut self,
        forest: &ForestState,
        count: u64,
        (number, position): (u64, Option<Position>),
    ) -> Option<Progress> {
        let (journal, position) = (forest.journal.as_ref()?, position?);
        if journal.most == Level::Accepted || self.at_risk.takes(count) {
            return None;
        }
        self.settle(forest);
        let settled = forest.stats.settled();
        if self.at_risk.takes_next(count, (number, settled)) {
            return None;
        }
        let when = || journal.inner.when_reached(position, journal.most);
        let when = forest.reentrancy.in_journal(|| catch_foreign(when));
        let when = when.unwrap_or_else(|| Box::pin(std::future::ready(Durability::Unknown)));
        Some(Progress::Settling(position, when))
    }

    /// Lets a waiter wait for a commit that is on its way.
    pub(crate) fn wait_for(&mut self, (at, outcome): (usize, Outcome), pending: Arc<Pending>) {
        let commit = &mut self.outstanding.commits[at];
        commit.waiters.push((pending, outcome));
    }

    /// Gives an answer that depends on all that is on its way, once that is visible.
    pub(super) fn once_visible(&self, answer: Answer) -> Served {
        match self.outstanding.newest() {
            Some(at) => Served::Later(at, Outcome::Found(answer)),
            None => Served::Done(answer),
        }
    }

    /// Lets a request wait until the journal takes records again.
    pub(crate) fn hold(&mut self, pending: Arc<Pending>) {
        self.held.push_back(pending);
    }

    /// The next number and the time; they are taken only when the journal does not refuse the commit.
    fn stamp(&mut self, forest: &ForestState, id: Option<CommitId>) -> Committed {
        // A number may be taken again after a refusal; an id is not, because the journal is asked by it.
        self.ids += 1;
        let now = *self.now.get_or_insert_with(|| {
            let now = catch_foreign(|| forest.clock.now());
            now.unwrap_or(SystemTime::UNIX_EPOCH)
        });
        let number = self.commit_number + 1;
        let incarnation = forest.incarnation;
        Committed {
            id: id.unwrap_or(forest.nth_id(self.ids)),
            version: Version {
                incarnation,
                number,
            },
            time: now.max(self.time),
        }
    }

    fn append(
        &self,
        forest: &ForestState,
        prepared: &Prepared,
        (commit, digest, bytes): (Committed, Option<Digest>, &[u8]),
    ) -> Result<Progress, AppendError> {
        let Some(journal) = &forest.journal else {
            return Ok(Progress::Accepted(None));
        };
        let journal = &*journal.inner;
        let record = Record {
            version: commit.version,
            id: commit.id,
            time: commit.time,
            digest,
            bytes,
            changes: &prepared.pieces(),
            blobs: &prepared.blobs(),
            erases: prepared.erases(),
        };
        forest
            .reentrancy
            .in_journal(|| match catch_foreign(|| journal.append(&record)) {
                Some(Ok(Appended::Accepted(position))) => Ok(Progress::Accepted(Some(position))),
                Some(Ok(Appended::Sent(answer))) => Ok(Progress::Sent(answer)),
                Some(Err(AppendError::Unknown)) | None => Ok(resolve(journal, commit.id)),
                Some(Err(error)) => Err(error),
            })
    }

    /// Applies what the journal has accepted since, and drops what it has refused. Requests that had to wait for that
    /// continue.
    pub(super) fn advance(&mut self, forest: &ForestState) {
        let Some(journal) = &forest.journal else {
            return;
        };
        loop {
            loop {
                let (journal, waker) = (&*journal.inner, &self.journal_waker);
                let outstanding = &mut self.outstanding;
                match forest
                    .reentrancy
                    .in_journal(|| outstanding.poll(journal, waker))
                {
                    None => break,
                    // A journal that failed takes nothing, and the forest has fallen back.
                    Some(Verdict::Accepted(_) | Verdict::Settled(_)) if forest.fall().is_some() => {
                        self.give_up();
                    }
                    Some(Verdict::Accepted(position)) => {
                        self.apply_unless_at_risk(forest, position)
                    }
                    Some(Verdict::Settled(position)) => self.apply_oldest(forest, Some(position)),
                    Some(Verdict::Refused(error)) => self.roll_back(forest, error),
                    Some(Verdict::Unknown) => self.give_up(),
                }
            }
            if self.outstanding.is_empty() {
                self.publisher.unaccepted.clear();
            }
            if self.held.is_empty() || self.outstanding.must_hold(journal.pipelined) {
                return;
            }
            self.resumed.append(&mut self.held);
            self.serve_resumed(forest);
        }
    }

    fn apply_unless_at_risk(&mut self, forest: &ForestState, position: Option<Position>) {
        let Some(oldest) = self.outstanding.commits.front() else {
            return;
        };
        let (count, number) = (oldest.made.given(), oldest.commit.version.number);
        match self.wait_if_at_risk(forest, count, (number, position)) {
            Some(waits) => self.outstanding.commits[0].progress = waits,
            None => self.apply_oldest(forest, position),
        }
    }

    fn apply_oldest(&mut self, forest: &ForestState, position: Option<Position>) {
        let Some(oldest) = self.outstanding.commits.pop_front() else {
            return;
        };
        let Outstanding {
            made,
            commit,
            digest,
            garbage,
            waiters,
            ..
        } = oldest;
        self.publisher
            .unaccepted
            .remove(&made, commit.version.number);
        self.has_collected = false;
        let answer = self.apply(forest, (made, garbage), (commit, digest, position));
        if self.has_collected && !waiters.is_empty() {
            self.collected_for = Some(self.answers.len());
        }
        let mut answer = Some(answer);
        for (pending, outcome) in waiters {
            let receipt = |commit| Answer::Committed(Ok(commit), Garbage::NONE);
            let answer = match outcome {
                Outcome::Own => answer.take().unwrap_or_else(|| receipt(commit)),
                Outcome::Nothing(commit, digest) => {
                    self.answer_nothing((commit, digest), Garbage::NONE)
                }
                Outcome::Found(answer) => answer,
            };
            self.answers.push((pending, answer));
        }
    }

    /// The oldest commit was refused. Those behind it were built on it, so none of them is made, except erasures. An
    /// erasure was built on nothing, and is appended before any new request, so that others cannot keep it from a full
    /// journal for ever.
    fn roll_back(&mut self, forest: &ForestState, error: AppendError) {
        (self.commit_number, self.time) = self.accepted;
        self.publisher.unaccepted.clear();
        let mut erasures = Vec::new();
        let behind = error.for_those_behind();
        let all = std::mem::take(&mut self.outstanding.commits);
        for (at, mut refused) in all.into_iter().enumerate() {
            let error = if at == 0 { error } else { behind };
            if at > 0
                && let Made::Erase(erasure) = &refused.made
            {
                let is_own = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Own);
                let own = refused.waiters.iter().position(is_own);
                let author = own.map(|own| refused.waiters.remove(own).0);
                erasures.push((erasure.clone(), author));
            }
            let errors = |_| CommitError::Journal(error);
            self.refuse(refused, &errors, behind);
        }
        for (erasure, author) in erasures {
            self.erase_again(forest, erasure, author);
        }
    }

    /// Appends an erasure that was refused because it stood behind another commit. It is refused for good only when it
    /// is the oldest.
    fn erase_again(
        &mut self,
        forest: &ForestState,
        mut erasure: Box<Erasure>,
        author: Option<Arc<Pending>>,
    ) {
        erasure.ids = forest.blobs.ids_at(&erasure.place);
        let erasure = Prepared::Erase(erasure);
        let served = self.accept(forest, erasure, (None, Bytes::new(&[])));
        let Some(author) = author else { return };
        match served {
            Served::Later(at, outcome) => self.wait_for((at, outcome), author),
            Served::Done(answer) => self.answers.push((author, answer)),
            Served::Waits(..) | Served::Held(_) => unreachable!("it has its place"),
        }
    }

    /// The journal cannot tell what became of the oldest commit, so nobody knows of those behind it. The forest takes
    /// no more commits.
    fn give_up(&mut self) {
        self.is_poisoned = true;
        self.publisher.unaccepted.clear();
        let all = std::mem::take(&mut self.outstanding.commits);
        for unknown in all {
            let errors = |id| CommitError::Unknown(id);
            self.refuse(unknown, &errors, AppendError::Poisoned);
        }
    }

    /// Answers all requests that wait for a commit; those that only depended on it were certainly
    /// not served.
    fn refuse(
        &mut self,
        refused: Outstanding,
        error: &dyn Fn(CommitId) -> CommitError,
        others: AppendError,
    ) {
        let Outstanding {
            made,
            commit,
            garbage,
            waiters,
            ..
        } = refused;
        let is_create = matches!(made, Made::Create(..));
        let mut left = Garbage::of((made, garbage));
        for (pending, outcome) in waiters {
            let answer = match outcome {
                Outcome::Found(Answer::Done) => Answer::Done,
                Outcome::Found(found) => {
                    let is_create = matches!(found, Answer::Created(..));
                    let refused = (CommitError::Journal(others), Garbage::of(found));
                    Answer::refused(refused, is_create)
                }
                _ => Answer::refused((error(commit.id), std::mem::take(&mut left)), is_create),
            };
            self.answers.push((pending, answer));
        }
    }
}
