//! What the monitor knows of one kind of jobs: its offences and long runs, and those of its jobs that were reported.

use std::time::{Duration, Instant};

use crate::{
    job::Header,
    scheduler::threads::{
        job_kind::{CurrentWork, JobKind},
        suspect_records::suspect::Suspect,
    },
};

/// A kind is suspect for this long after its last offence.
pub(in crate::scheduler::threads) const MEMORY: Duration = Duration::from_secs(1);
/// The number of long runs of one kind within [`MEMORY`] that make it suspect. As many of one job are reported as the
/// job's.
const LONG_RUNS: u32 = 4;
/// The number of long runs of one kind that are reported as the kind's. They are more than [`LONG_RUNS`], so that a
/// single job that has them is reported first, by its own name.
const KIND_NAMED: u32 = 4 * LONG_RUNS;
/// The number of exempt offenders that make a kind strict.
pub(in crate::scheduler::threads) const EXEMPT_OFFENDERS: u32 = 8;
/// The most jobs of one kind whose long runs are counted within [`MEMORY`], or that are remembered as reported for
/// them.
const COUNTED_JOBS: usize = 64;
/// A job that was reported for several long runs is not forgotten as long as it has had several within this time.
const NAMED_MEMORY: Duration = Duration::from_secs(4);

/// What the caller must do about a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongRun {
    /// It was one of several of the same job: report the job.
    Again,
    /// It was one of several of the same kind: report the kind.
    OfKind,
    Noted,
}

/// A job exceeded the bound, or its kind has become suspect without that.
#[derive(Clone, Copy)]
pub(in crate::scheduler::threads) struct Offence {
    /// Whether the job was exempt until now: proven, or known work.
    pub(in crate::scheduler::threads) was_exempt: bool,
    /// Whether a cancel was ending the job.
    pub(in crate::scheduler::threads) ends_long: bool,
}

/// What the monitor knows of one kind.
pub(in crate::scheduler::threads) struct Record {
    pub(super) kind: JobKind,
    /// The family that the kind has, or is; none (0) if neither. If the kind is all families: that of the last
    /// offender.
    pub(super) family: u64,
    /// The last offence or long run.
    pub(super) last: Instant,
    /// The jobs with long runs, as addresses, with their numbers since `counted_since`.
    long_runs: Vec<(usize, u32)>,
    /// The long runs of all jobs since `counted_since`.
    all_long_runs: u32,
    counted_since: Instant,
    /// The jobs that were reported for several long runs, as addresses, and when they last had several.
    named: Vec<(usize, Instant)>,
    /// Whether a report has told that its jobs stay just below the bound.
    is_named: bool,
    /// How many jobs offended on a worker although the kind was suspect, or before it was.
    pub(super) exempt_offenders: u32,
    pub(super) is_suspect: bool,
    /// Whether a job that a cancel was ending has offended: the destructors of the kind take long.
    ends_long: bool,
    /// How many offences and long runs of the kind count when it is to be [cleared](super::clearing): those since it
    /// was, and since `counted_since`.
    pub(super) to_be_cleared: u32,
}

impl Record {
    pub(super) fn new(kind: JobKind, family: u64, now: Instant) -> Record {
        Record {
            kind,
            family,
            last: now,
            long_runs: Vec::new(),
            all_long_runs: 0,
            counted_since: now,
            named: Vec::new(),
            is_named: false,
            exempt_offenders: 0,
            is_suspect: false,
            ends_long: false,
            to_be_cleared: 0,
        }
    }

    pub(super) fn suspect(&self) -> Option<Suspect> {
        self.is_suspect.then_some(Suspect {
            kind: self.kind,
            is_strict: self.exempt_offenders >= EXEMPT_OFFENDERS,
            ends_long: self.ends_long,
        })
    }

    pub(super) fn offend(&mut self, offence: Offence) {
        self.begin_count_anew(self.last);
        self.to_be_cleared += 1;
        self.exempt_offenders += u32::from(offence.was_exempt);
        self.is_suspect = true;
        self.ends_long |= offence.ends_long;
    }

    /// Whether its last offence is `time` ago.
    pub(super) fn is_old(&self, time: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= time
    }

    /// Renews its time, if one of `held` belongs to the kind.
    pub(in crate::scheduler::threads) fn prolong(&mut self, held: &[CurrentWork], now: Instant) {
        if self.is_one_of(held) {
            self.last = now;
        }
    }

    /// Whether one of `held` belongs to the kind.
    pub(super) fn is_one_of(&self, held: &[CurrentWork]) -> bool {
        held.iter().any(|work| self.kind.includes(*work))
    }

    /// It is suspect no longer, until its next offence.
    pub(super) fn clear(&mut self) {
        self.is_suspect = false;
        self.to_be_cleared = 0;
    }

    /// True the first time that `job` is to be reported for several long runs. If too many are remembered, those that
    /// have had none for long are forgotten: a kind may go on for days.
    fn name(&mut self, job: &Header, now: Instant) -> bool {
        let address = std::ptr::from_ref(job).addr();
        let mut named = self.named.iter_mut();
        if let Some((_, last)) = named.find(|(other, _)| *other == address) {
            *last = now;
            return false;
        }
        if self.named.len() == COUNTED_JOBS {
            self.named
                .retain(|(_, last)| now.saturating_duration_since(*last) < NAMED_MEMORY);
        }
        let names = self.named.len() < COUNTED_JOBS;
        if names {
            self.named.push((address, now));
        }
        names
    }

    /// A long run of `job`: what is to be done, and whether the kind has had several, so that it is suspect.
    pub(super) fn note_long_run(&mut self, job: &Header, now: Instant) -> (LongRun, bool) {
        let of_job = self.count_long_run(job, now);
        let is_offence = self.all_long_runs >= LONG_RUNS;
        self.is_suspect |= is_offence;
        if of_job >= LONG_RUNS && self.name(job, now) {
            self.is_named = true;
            return (LongRun::Again, is_offence);
        }
        let is_of_kind = self.all_long_runs >= KIND_NAMED && !self.is_named;
        if is_of_kind {
            self.is_named = true;
            return (LongRun::OfKind, is_offence);
        }
        (LongRun::Noted, is_offence)
    }

    /// Forgets what was counted for longer than [`MEMORY`].
    fn begin_count_anew(&mut self, now: Instant) {
        if now.saturating_duration_since(self.counted_since) >= MEMORY {
            self.long_runs.clear();
            self.all_long_runs = 0;
            self.to_be_cleared = 0;
            self.counted_since = now;
        }
    }

    /// Counts a long run of `job`, and returns how many there were within [`MEMORY`].
    fn count_long_run(&mut self, job: &Header, now: Instant) -> u32 {
        self.begin_count_anew(now);
        self.to_be_cleared += 1;
        self.all_long_runs += 1;
        let address = std::ptr::from_ref(job).addr();
        let mut counts = self.long_runs.iter_mut();
        if let Some((_, count)) = counts.find(|(other, _)| *other == address) {
            *count += 1;
            return *count;
        }
        if self.long_runs.len() < COUNTED_JOBS {
            self.long_runs.push((address, 1));
        }
        1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::{JobRef, testing};

    #[test]
    fn a_job_of_a_kind_that_goes_on_is_named_after_many_others_that_have_ended() {
        let jobs: Vec<_> = (0..=COUNTED_JOBS).map(|_| testing::job()).collect();
        let [first @ .., last] = &jobs[..] else {
            unreachable!("there are some")
        };
        let begin = Instant::now();
        let kind = CurrentWork::of(last.header()).kind();
        let mut record = Record::new(kind, 0, begin);
        let mut is_named = |job: &JobRef, now| {
            let mut runs = (0..LONG_RUNS).map(|_| record.note_long_run(job.header(), now).0);
            runs.any(|run| run == LongRun::Again)
        };
        assert!(first.iter().all(|job| is_named(job, begin)));
        assert!(!is_named(last, begin), "as many as are remembered");
        let later = begin + NAMED_MEMORY / 2;
        assert!(!first.iter().any(|job| is_named(job, later)), "only once");
        assert!(
            is_named(last, later + NAMED_MEMORY),
            "the others have ended"
        );
    }
}
