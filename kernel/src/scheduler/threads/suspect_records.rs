//! What the monitor knows of the kinds of jobs that offended a moment ago: which are suspect, and how wide a kind is.
//!
//! Kinds of one family become one suspect kind once some of them are suspect, and families likewise. From then on the
//! offences of the whole are noted for it alone, apart from those of known work. So the records stay few, however many
//! kinds of one code a burst consists of; and of codes a program has a limited number. Once kinds of very many codes
//! are suspect, so are all fresh jobs.

use std::time::{Duration, Instant};

use crate::{
    job::Header,
    scheduler::threads::job_kind::{Code, CurrentWork, JobKind, Width},
};

/// A kind is suspect for this long after its last offence.
pub(super) const MEMORY: Duration = Duration::from_secs(1);
/// The number of long runs of one kind within [`MEMORY`] that make it suspect. As many of one job are reported as the
/// job's.
const LONG_RUNS: u32 = 4;
/// The number of long runs of one kind that are reported as the kind's. They are more than [`LONG_RUNS`], so that a
/// single job that has them is reported first, by its own name.
const KIND_NAMED: u32 = 4 * LONG_RUNS;
/// The number of exempt offenders that make a kind strict.
pub(super) const EXEMPT_OFFENDERS: u32 = 8;
/// The number of suspect kinds of a family that make the family suspect; and of families with suspect kinds that make
/// all work suspect that has a family.
pub(super) const WIDENING: usize = 4;
/// So many suspect kinds without a family make all work of their code suspect that has a number and no family. They are
/// more, because nothing says that such kinds have anything in common.
pub(super) const WIDENING_WITHOUT_FAMILY: usize = 4 * WIDENING;
/// So many codes with a suspect kind make all jobs suspect that are fresh ([`is_fresh`]).
pub(super) const WIDENING_TO_ALL: usize = 16;
/// The most jobs of one kind whose long runs are counted within [`MEMORY`], or that are remembered as reported for
/// them.
const COUNTED_JOBS: usize = 64;
/// A job that was reported for several long runs is not forgotten as long as it has had several within this time.
const NAMED_MEMORY: Duration = Duration::from_secs(4);

/// A suspect kind, as a worker's loop knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspect {
    pub(super) kind: JobKind,
    is_strict: bool,
    ends_long: bool,
}

impl Suspect {
    /// Whether `job`, which does `work`, must not run on a worker.
    fn keeps(self, job: &Header, work: CurrentWork) -> bool {
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
            Width::All => return is_fresh(job, work),
        };
        self.is_strict || !is_exempt
    }

    /// Whether `job` must not run on a worker while these are the suspects.
    pub(super) fn is_among(suspects: impl Iterator<Item = Suspect> + Clone, job: &Header) -> bool {
        let code = Code::of(job);
        let of_code = |suspect: &Suspect| suspect.kind.code.is_none_or(|it| it == code);
        let mut suspects = suspects.filter(of_code).peekable();
        if suspects.peek().is_none() {
            return false;
        }
        let work = CurrentWork::of(job);
        let is_all = |suspect: &Suspect| suspect.kind == JobKind::ALL;
        // Last, because it may note that the job is proven, which exempts it from others.
        let is_kept = suspects
            .clone()
            .any(|it| !is_all(&it) && it.keeps(job, work));
        is_kept || suspects.any(|it| is_all(&it) && it.keeps(job, work))
    }
}

/// Whether nothing speaks for `job`, which does `work` of a code that need not have offended: it is not known work, and
/// if it does not say what it does, it is not proven and has never waited.
fn is_fresh(job: &Header, work: CurrentWork) -> bool {
    // Noted, so that the answer is the same while the job runs.
    job.prove_if_it_waited();
    match work.number {
        0 => !job.is_proven(),
        _ => !work.is_known,
    }
}

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
pub(super) struct Offence {
    /// Whether the job was exempt until now: proven, or known work.
    pub(super) was_exempt: bool,
    /// Whether a cancel was ending the job.
    pub(super) ends_long: bool,
}

/// What the monitor knows of one kind.
pub(super) struct Record {
    kind: JobKind,
    /// The family that the kind has, or is; none (0) if neither. If the kind is all families: that of the last
    /// offender.
    family: u64,
    /// The last offence or long run.
    last: Instant,
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
    exempt_offenders: u32,
    is_suspect: bool,
    /// Whether a job that a cancel was ending has offended: the destructors of the kind take long.
    ends_long: bool,
}

impl Record {
    fn new(kind: JobKind, family: u64, now: Instant) -> Record {
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
        }
    }

    fn suspect(&self) -> Option<Suspect> {
        self.is_suspect.then_some(Suspect {
            kind: self.kind,
            is_strict: self.exempt_offenders >= EXEMPT_OFFENDERS,
            ends_long: self.ends_long,
        })
    }

    fn offend(&mut self, offence: Offence) {
        self.exempt_offenders += u32::from(offence.was_exempt);
        self.is_suspect = true;
        self.ends_long |= offence.ends_long;
    }

    /// Whether its last offence is `time` ago.
    fn is_old(&self, time: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= time
    }

    /// Renews its time, if one of `held` belongs to the kind.
    pub(super) fn prolong(&mut self, held: &[CurrentWork], now: Instant) {
        if held.iter().any(|work| self.kind.includes(*work)) {
            self.last = now;
        }
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
    fn note_long_run(&mut self, job: &Header, now: Instant) -> (LongRun, bool) {
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

    /// Counts a long run of `job`, and returns how many there were within [`MEMORY`].
    fn count_long_run(&mut self, job: &Header, now: Instant) -> u32 {
        if now.saturating_duration_since(self.counted_since) >= MEMORY {
            self.long_runs.clear();
            self.all_long_runs = 0;
            self.counted_since = now;
        }
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

/// The records of a runtime.
#[derive(Default)]
pub(super) struct Records {
    records: Vec<Record>,
    /// Whether the suspects have changed since the last [`take_news`](Records::take_news).
    has_news: bool,
}

impl Records {
    /// A job that did `work` has exceeded the bound. To its own kind it was exempt if it was proven.
    pub(super) fn note_offence(&mut self, work: CurrentWork, offence: Offence, now: Instant) {
        let was_suspect = self.is_suspect(work.kind());
        let wide = self.suspect_wide(work);
        if let Some(wide) = wide {
            // In quarantine as work of its own number it was not exempt.
            let to_wide = Offence {
                was_exempt: work.is_known && !was_suspect,
                ..offence
            };
            // One family alone must not keep all others suspect for as long as it offends: it is suspect itself then.
            let is_of_one =
                |record: &&Record| wide.width == Width::Families && record.family == work.family;
            let last = self.find(wide).filter(is_of_one).map(|it| it.last);
            self.change((wide, work.family), last.unwrap_or(now), |record| {
                record.family = work.family;
                record.offend(to_wide);
            });
            if last.is_some() {
                let family = work.within(Width::Family(work.family));
                self.change((family, work.family), now, |record| {
                    record.offend(to_wide);
                });
            }
        }
        if wide.is_none() || work.is_known {
            self.change((work.kind(), work.family), now, |record| {
                record.offend(offence);
            });
        }
        if wide.is_none() {
            self.widen(work, offence, now);
            if !was_suspect {
                self.widen_to_all(now);
            }
        }
    }

    /// A job that did `work` had a long run.
    pub(super) fn note_long_run(
        &mut self,
        (job, work): (&Header, CurrentWork),
        now: Instant,
    ) -> LongRun {
        let kind = (work.kind(), work.family);
        let was_suspect = self.is_suspect(kind.0) || self.suspect_wide(work).is_some();
        let (noted, is_offence) = self.change(kind, now, |record| record.note_long_run(job, now));
        if is_offence {
            let offence = Offence {
                was_exempt: false,
                ends_long: false,
            };
            self.widen(work, offence, now);
            if !was_suspect {
                self.widen_to_all(now);
            }
        }
        noted
    }

    /// A kind has become suspect: its family does too, if enough of its kinds are, and all families, if enough are.
    /// Kinds without one are a family, too.
    fn widen(&mut self, work: CurrentWork, offence: Offence, now: Instant) {
        if work.number == 0 {
            return;
        }
        let enough = match work.family {
            0 => WIDENING_WITHOUT_FAMILY,
            _ => WIDENING,
        };
        let suspects = self.records.iter().filter(|record| record.is_suspect);
        let suspects = suspects.filter(|record| record.kind.code == Some(work.code));
        let of_family = suspects
            .clone()
            .filter(|it| it.family == work.family && it.kind.width != Width::Work(0));
        let mut families: Vec<u64> = suspects.map(|record| record.family).collect();
        families.sort_unstable();
        families.dedup();
        families.retain(|family| *family != 0);
        let wide = match (families.len(), of_family.count()) {
            (WIDENING.., _) if work.family != 0 => Width::Families,
            (_, suspects) if suspects >= enough => Width::Family(work.family),
            _ => return,
        };
        self.change((work.within(wide), work.family), now, |record| {
            record.offend(Offence {
                was_exempt: false,
                ..offence
            });
        });
    }

    /// A kind has become suspect: all fresh jobs are, if kinds of very many codes are at this moment. Kinds that go on
    /// offending do not call this, so they do not keep them suspect, however many they are.
    fn widen_to_all(&mut self, now: Instant) {
        if self.records.len() < WIDENING_TO_ALL {
            return;
        }
        let mut codes: Vec<Code> = Vec::new();
        let suspects = self.records.iter().filter(|record| record.is_suspect);
        for code in suspects.filter_map(|record| record.kind.code) {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        if codes.len() >= WIDENING_TO_ALL {
            self.change((JobKind::ALL, 0), now, |record| record.is_suspect = true);
        }
    }

    fn find(&self, kind: JobKind) -> Option<&Record> {
        self.records.iter().find(|record| record.kind == kind)
    }

    fn is_suspect(&self, kind: JobKind) -> bool {
        self.find(kind).is_some_and(|record| record.is_suspect)
    }

    /// The suspect wide kind to which `work` belongs.
    fn suspect_wide(&self, work: CurrentWork) -> Option<JobKind> {
        work.wider().find(|kind| self.is_suspect(*kind))
    }

    fn change<R>(
        &mut self,
        (kind, family): (JobKind, u64),
        now: Instant,
        change: impl FnOnce(&mut Record) -> R,
    ) -> R {
        let index = self.records.iter().position(|record| record.kind == kind);
        let index = index.unwrap_or_else(|| {
            self.records.push(Record::new(kind, family, now));
            self.records.len() - 1
        });
        let record = &mut self.records[index];
        record.last = now;
        let before = record.suspect();
        let answer = change(record);
        self.has_news |= record.suspect() != before;
        answer
    }

    /// Removes the records whose last offence is long ago.
    pub(super) fn expire(&mut self, now: Instant) {
        let before = self.records.len();
        self.records.retain(|record| !record.is_old(MEMORY, now));
        self.has_news |= self.records.len() < before;
    }

    /// The records of suspect kinds whose time is half over. Not that of all jobs: fresh ones would wait for as long as
    /// others hold the threads of the quarantine.
    pub(super) fn due(&mut self, now: Instant) -> impl Iterator<Item = &mut Record> {
        let is_due = move |record: &&mut Record| {
            record.is_suspect && record.kind != JobKind::ALL && record.is_old(MEMORY / 2, now)
        };
        self.records.iter_mut().filter(is_due)
    }

    pub(super) fn suspects(&self) -> impl Iterator<Item = Suspect> + Clone {
        self.records.iter().filter_map(Record::suspect)
    }

    /// Whether the suspects have changed since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
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
