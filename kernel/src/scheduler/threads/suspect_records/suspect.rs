//! A suspect kind as a worker's loop knows it, and whether it keeps a job from the workers.

use crate::{
    job::Header,
    scheduler::threads::job_kind::{Code, CurrentWork, JobKind, Width},
};

/// A suspect kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::scheduler::threads) struct Suspect {
    pub(in crate::scheduler::threads) kind: JobKind,
    pub(super) is_strict: bool,
    pub(super) ends_long: bool,
}

impl Suspect {
    /// Whether `job`, which does `work`, must not run on a worker. `trusted`: see [`trials`](super::trials).
    fn keeps(self, job: &Header, work: CurrentWork, trusted: &[Code]) -> bool {
        if !self.kind.includes(work) {
            return false;
        }
        if job.state.is_cancelled() {
            // One that left the quarantine was made proven: see `Quarantine::take_released`.
            return self.ends_long || !job.is_proven();
        }
        let is_exempt = match self.kind.width {
            Width::Work(0) => job.is_proven(),
            // The job's short runs say nothing about work that it has just begun.
            Width::Work(_) => false,
            Width::Family(_) | Width::Families => work.is_known,
            Width::All if work.number != 0 => return !work.is_known,
            Width::All if trusted.contains(&work.code) => return false,
            Width::All => job.is_proven(),
        };
        self.is_strict || !is_exempt
    }

    /// Whether `job` must not run on a worker while these are the suspects, and these the trusted codes.
    pub(in crate::scheduler::threads) fn is_among(
        suspects: impl Iterator<Item = Suspect>,
        trusted: &[Code],
        job: &Header,
    ) -> bool {
        let code = Code::of(job);
        let of_code = |suspect: &Suspect| suspect.kind.code.is_none_or(|it| it == code);
        let mut suspects = suspects.filter(of_code).peekable();
        if suspects.peek().is_none() {
            return false;
        }
        let work = CurrentWork::of(job);
        suspects.any(|suspect| suspect.keeps(job, work, trusted))
    }
}
