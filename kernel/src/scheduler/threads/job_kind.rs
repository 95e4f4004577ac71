//! Kinds of jobs, as the [suspects](crate::scheduler::threads::suspects) are told apart.
//!
//! The code of a job is its spawn site and the type of its future. What the job does at a moment, if it says so
//! ([`WorkKind`]), narrows this down.

use crate::job::{Header, work_kind::WorkKind};

/// A spawn site and a type of future, as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    site: usize,
    vtable: usize,
}

impl Code {
    pub(super) fn of(job: &Header) -> Code {
        Code {
            site: std::ptr::from_ref(job.extensions.site()).addr(),
            vtable: std::ptr::from_ref(job.vtable).addr(),
        }
    }
}

/// What a job does at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentWork {
    pub(super) code: Code,
    /// 0 if the job says nothing.
    pub(super) number: u64,
    /// 0 if the work belongs to none.
    pub(super) family: u64,
    pub(super) is_known: bool,
}

impl CurrentWork {
    pub(super) fn of(job: &Header) -> CurrentWork {
        let code = Code::of(job);
        let extensions = job.extensions.lock_existing();
        let kind = extensions.as_ref().and_then(|it| it.kind.as_ref());
        let number = kind.map_or(0, WorkKind::get);
        CurrentWork {
            code,
            number,
            family: kind.filter(|_| number != 0).map_or(0, WorkKind::family),
            is_known: kind.is_some_and(WorkKind::is_known),
        }
    }

    /// As [`of`](CurrentWork::of), for a job that has offended: it is told so.
    pub(super) fn of_offender(job: &Header) -> CurrentWork {
        let extensions = job.extensions.lock_existing();
        if let Some(kind) = extensions.as_ref().and_then(|it| it.kind.as_ref()) {
            kind.note_offence();
        }
        drop(extensions);
        CurrentWork::of(job)
    }

    /// The narrowest kind.
    pub(super) fn kind(self) -> JobKind {
        self.within(Width::Work(self.number))
    }

    pub(super) fn within(self, width: Width) -> JobKind {
        JobKind {
            code: self.code,
            width,
        }
    }

    /// The kinds that include others, widest first; none if the work has no family.
    pub(super) fn wider(self) -> impl Iterator<Item = JobKind> {
        let widths = [Width::Families, Width::Family(self.family)];
        let widths = widths.into_iter().filter(move |_| self.family != 0);
        widths.map(move |width| self.within(width))
    }
}

/// Which work of a code a kind includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Work of this number.
    Work(u64),
    /// All work of this family.
    Family(u64),
    /// All work that belongs to a family.
    Families,
}

/// A kind of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobKind {
    pub(super) code: Code,
    pub(super) width: Width,
}

impl JobKind {
    pub(super) fn includes(self, work: CurrentWork) -> bool {
        let includes = match self.width {
            Width::Work(number) => number == work.number,
            Width::Family(family) => work.family == family,
            Width::Families => work.family != 0,
        };
        includes && self.code == work.code
    }
}
