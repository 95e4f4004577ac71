//! What the monitor knows of the kinds of jobs that offended a moment ago: which are suspect, and how wide a kind is.
//!
//! Kinds of one family become one suspect kind once some of them are suspect, and families likewise. From then on the
//! offences of the whole are noted for it alone, apart from those of known work. So the records stay few, however many
//! kinds of one code a burst consists of; and of codes a program has a limited number. Once kinds of very many codes
//! are suspect, so are all jobs ([`trials`]).

mod clearing;
pub(super) mod record;
pub(super) mod suspect;
pub(super) mod trials;

use std::time::Instant;

use crate::{
    job::Header,
    scheduler::threads::{
        job_kind::{Code, CurrentWork, JobKind, Width},
        suspect_records::{
            clearing::Clearing,
            record::{LongRun, MEMORY, Offence, Record},
            suspect::Suspect,
            trials::{Rank, Trials},
        },
    },
};

/// The number of suspect kinds of a family that make the family suspect; and of families with suspect kinds that make
/// all work suspect that has a family.
pub(super) const WIDENING: usize = 4;
/// So many suspect kinds without a family make all work of their code suspect that has a number and no family. They are
/// more, because nothing says that such kinds have anything in common.
pub(super) const WIDENING_WITHOUT_FAMILY: usize = 4 * WIDENING;
/// So many codes with a suspect kind make all jobs suspect.
pub(super) const WIDENING_TO_ALL: usize = 16;
/// The records of a runtime.
#[derive(Default)]
pub(super) struct Records {
    records: Vec<Record>,
    clearing: Clearing,
    trials: Trials,
    /// Whether the suspects have changed since the last [`take_news`](Records::take_news).
    has_news: bool,
}

impl Records {
    /// A job that did `work` has exceeded the bound. To its own kind it was exempt if it was proven.
    pub(super) fn note_offence(&mut self, work: CurrentWork, offence: Offence, now: Instant) {
        self.has_news |= self.trials.forget(work.code);
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

    /// A kind has become suspect: all jobs are, if kinds of very many codes are at this moment. Kinds that go on
    /// offending do not call this, so they do not keep them suspect, however many they are. If many of these kinds
    /// offended by jobs that were exempt, a record of short runs exempts no job.
    fn widen_to_all(&mut self, now: Instant) {
        if self.records.len() < WIDENING_TO_ALL {
            return;
        }
        let (mut codes, mut exempt): (Vec<Code>, u32) = (Vec::new(), 0);
        for record in self.records.iter().filter(|record| record.is_suspect) {
            let Some(code) = record.kind.code.filter(|code| !codes.contains(code)) else {
                continue;
            };
            codes.push(code);
            exempt += u32::from(record.exempt_offenders > 0);
        }
        if codes.len() >= WIDENING_TO_ALL {
            self.change((JobKind::ALL, 0), now, |record| {
                record.is_suspect = true;
                record.exempt_offenders = record.exempt_offenders.max(exempt);
            });
        }
    }

    /// Whether parts of forks of this code must not be stolen while no thread is free for those of suspect lines.
    /// `has_room`: whether there is one for a part that is tried.
    pub(super) fn include_parts(&self, parts: Code, has_room: bool) -> bool {
        self.suspects().any(|suspect| match suspect.kind.code {
            Some(code) => code == parts,
            None => self.trials.keep_parts(parts, has_room),
        })
    }

    /// The rank of `job`, which does `work` and is put into quarantine.
    pub(super) fn rank(&mut self, job: &Header, work: CurrentWork) -> Rank {
        if !self.are_all_suspect() {
            return Rank::Last;
        }
        if self.is_suspect(work.kind()) {
            return Rank::Last;
        }
        if job.is_part() {
            // The job that has forked it may wait for it, so it must not wait for the end of what blocks.
            self.trials.enter_part(work.code);
            return Rank::Tried;
        }
        self.trials.rank(job, work)
    }

    /// A job of this code, which was to be tried, was released before it ran.
    pub(super) fn give_up_trial(&mut self, code: Code) {
        self.trials.give_up(code);
    }

    /// A run of a job that did `work` has ended in quarantine, or the job is proven. If its kind is not suspect, its
    /// code is trusted while all jobs are.
    pub(super) fn trust(&mut self, work: CurrentWork) {
        let is_trusted =
            work.number == 0 && self.are_all_suspect() && !self.is_suspect(work.kind());
        self.has_news |= is_trusted && self.trials.trust(work.code);
    }

    /// All jobs stay suspect if they are.
    pub(super) fn prolong_all(&mut self, now: Instant) {
        let mut records = self.records.iter_mut();
        if let Some(all) = records.find(|record| record.kind == JobKind::ALL) {
            all.last = now;
        }
    }

    /// Whether all jobs are suspect.
    pub(super) fn are_all_suspect(&self) -> bool {
        self.is_suspect(JobKind::ALL)
    }

    /// The codes whose jobs run on workers while all are suspect.
    pub(super) fn trusted(&self) -> &[Code] {
        self.trials.trusted()
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
        let trials = &mut self.trials;
        self.records.retain(|record| {
            let is_old = record.is_old(MEMORY, now);
            // If all jobs are still suspect, its next one is tried.
            if let Some(code) = record.kind.code.filter(|_| is_old && record.is_suspect) {
                trials.forget(code);
            }
            !is_old
        });
        self.has_news |= self.records.len() < before;
        if self.records.len() < before && !self.are_all_suspect() {
            self.trials.end();
        }
    }

    /// Whether the monitor is to look which kinds hold a thread, because one may be [cleared](clearing).
    pub(super) fn may_clear(&mut self, now: Instant) -> bool {
        self.records.iter().any(is_clearable) && self.clearing.is_due(now)
    }

    /// Clears the kinds to which none of `held` belongs. Not that of all jobs.
    pub(super) fn clear(&mut self, held: &[CurrentWork], workers: usize, now: Instant) {
        let records = self.records.iter_mut().filter(|it| is_clearable(it));
        for record in records.filter(|record| !record.is_one_of(held)) {
            if self.clearing.pardons(record, workers, now) {
                record.clear();
                self.has_news = true;
                if let Some(code) = record.kind.code {
                    self.trials.forget(code);
                }
            }
        }
    }

    /// The records of suspect kinds whose time is half over. Not that of all jobs: they would wait for as long as
    /// others hold the threads of the quarantine.
    pub(super) fn due(&mut self, now: Instant) -> impl Iterator<Item = &mut Record> {
        let is_due = move |record: &&mut Record| {
            record.is_suspect && record.kind != JobKind::ALL && record.is_old(MEMORY / 2, now)
        };
        self.records.iter_mut().filter(is_due)
    }

    pub(super) fn suspects(&self) -> impl Iterator<Item = Suspect> {
        self.records.iter().filter_map(Record::suspect)
    }

    /// Whether the suspects have changed since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

fn is_clearable(record: &Record) -> bool {
    record.is_suspect && record.kind != JobKind::ALL
}
