//! The codes that are tried while all jobs are suspect.
//!
//! A burst may consist of jobs of very many codes, each of which would cost the others the bound, and a thread. What a
//! job did before it waited once says little: a request is read, and then blocks in a database. So all jobs without a
//! record of short runs go to the quarantine, and if jobs with one have offended, too, then these as well. There one
//! job of each code is *tried* before all others, those with a record first. So no code waits behind the blockers of
//! another one. If the run ends before it is an offence, the code is *trusted*: its other jobs run on workers. A code
//! is trusted, too, if one of its jobs has a record that keeps it on the workers.
//!
//! That all jobs are suspect ends a second after the last kind became so. If then a part of the threads that are left
//! for workers is in use, it does not end: the jobs that wait would take the rest, and everybody would stand still.

use crate::{
    job::Header,
    scheduler::threads::job_kind::{Code, CurrentWork},
};

/// The most codes that are tried. Jobs of further ones wait in turn.
const TRIED: usize = 256;

/// Where a job has its place in the queue of the quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Before all others.
    First,
    /// Behind the others that are tried.
    Tried,
    Last,
}

/// The codes that were tried since all jobs are suspect.
#[derive(Default)]
pub(super) struct Trials {
    tried: Vec<Code>,
    trusted: Vec<Code>,
}

impl Trials {
    /// The rank of `job`, which does `work` of a kind that is not suspect itself.
    pub(super) fn rank(&mut self, job: &Header, work: CurrentWork) -> Rank {
        if work.number != 0 || !self.may_try(work.code) {
            return Rank::Last;
        }
        self.tried.push(work.code);
        match job.is_proven() {
            true => Rank::First,
            false => Rank::Tried,
        }
    }

    /// A part of a fork of this code goes into the quarantine, to be tried.
    pub(super) fn enter_part(&mut self, code: Code) {
        if self.may_try(code) {
            self.tried.push(code);
        }
    }

    /// Whether a job of this code would be tried.
    fn may_try(&self, code: Code) -> bool {
        self.tried.len() < TRIED && !self.tried.contains(&code)
    }

    /// Whether parts of forks of this code are kept from the workers. `has_room`: whether there is a thread for one
    /// that is tried.
    pub(super) fn keep_parts(&self, code: Code, has_room: bool) -> bool {
        !(self.trusted.contains(&code) || has_room && self.may_try(code))
    }

    /// A run of this code was no offence. True if the code was not trusted before.
    pub(super) fn trust(&mut self, code: Code) -> bool {
        let is_new = self.trusted.len() < TRIED && !self.trusted.contains(&code);
        if is_new {
            self.trusted.push(code);
        }
        is_new
    }

    /// The job of this code that was to be tried was released before it ran: the next one is tried, unless the code is
    /// trusted.
    pub(super) fn give_up(&mut self, code: Code) {
        if !self.trusted.contains(&code) {
            self.tried.retain(|other| *other != code);
        }
    }

    /// A job of this code has offended, or its kind is no longer suspect: its next job is tried. True if it was
    /// trusted.
    pub(super) fn forget(&mut self, code: Code) -> bool {
        let before = self.trusted.len();
        self.tried.retain(|other| *other != code);
        self.trusted.retain(|other| *other != code);
        self.trusted.len() < before
    }

    pub(super) fn trusted(&self) -> &[Code] {
        &self.trusted
    }

    /// All jobs are suspect no longer.
    pub(super) fn end(&mut self) {
        *self = Trials::default();
    }
}
