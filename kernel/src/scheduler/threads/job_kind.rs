//! Kinds of jobs, as the [suspects](crate::scheduler::threads::suspects) are told apart.
//!
//! The code of a job is its spawn site and the type of its future; that of a job that runs a callback is the
//! callback's; that of a part of a fork is the line of the fork. What the job does at a moment, if it says so
//! ([`WorkKind`]), narrows this down.

use std::{panic::Location, ptr};

use crate::job::{Header, body::VTable, name::UnitName, work_kind::WorkKind};

/// A spawn site and a type of future, or of a callback's closure. The compiler may place each of them at several
/// addresses, such as one for each part of a crate that it translates by itself, so unequal addresses decide nothing.
#[derive(Clone, Copy)]
pub(super) struct Code {
    site: &'static Location<'static>,
    of: CodeType,
}

#[derive(Clone, Copy)]
enum CodeType {
    Future(&'static VTable),
    /// The name of the closure's type.
    Callback(fn() -> &'static str),
    /// Parts of a fork: the site is that of the outermost call.
    Parts,
}

impl Code {
    pub(super) fn of(job: &Header) -> Code {
        match UnitName::of_running(job) {
            Some(callback) => Code::of_callback(callback),
            None if job.is_part() => Code::of_parts(job.extensions.site()),
            None => Code {
                site: job.extensions.site(),
                of: CodeType::Future(job.vtable),
            },
        }
    }

    /// The code of the parts of the fork that was called at `site`.
    pub(super) fn of_parts(site: &'static Location<'static>) -> Code {
        let of = CodeType::Parts;
        Code { site, of }
    }

    pub(super) fn of_callback(callback: UnitName) -> Code {
        Code {
            site: callback.site,
            of: CodeType::Callback(callback.code.type_name),
        }
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        let is_one_site = ptr::eq(self.site, other.site) || self.site == other.site;
        let is_one_type = || match (self.of, other.of) {
            (CodeType::Future(own), CodeType::Future(other)) => {
                ptr::eq(own, other) || (own.type_id)() == (other.type_id)()
            }
            (CodeType::Callback(own), CodeType::Callback(other)) => {
                ptr::fn_addr_eq(own, other) || own() == other()
            }
            (CodeType::Parts, CodeType::Parts) => true,
            _ => false,
        };
        is_one_site && is_one_type()
    }
}

impl Eq for Code {}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.of {
            CodeType::Future(vtable) => (vtable.type_name)(),
            CodeType::Callback(name) => name(),
            CodeType::Parts => "part of a fork",
        };
        write!(f, "{name} at {}", self.site)
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
            code: Some(self.code),
            width,
        }
    }

    /// The kinds that include others, widest first; none if the work says nothing.
    pub(super) fn wider(self) -> impl Iterator<Item = JobKind> {
        let families = (self.family != 0).then_some(Width::Families);
        let family = (self.number != 0).then_some(Width::Family(self.family));
        let widths = families.into_iter().chain(family);
        widths.map(move |width| self.within(width))
    }
}

/// Which work of a code a kind includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Work of this number.
    Work(u64),
    /// All work of this family; of 0, all that has none and says what it is.
    Family(u64),
    /// All work that belongs to a family.
    Families,
    /// All work, whatever its code.
    All,
}

/// A kind of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobKind {
    /// None in the kind of all jobs.
    pub(super) code: Option<Code>,
    pub(super) width: Width,
}

impl JobKind {
    /// All jobs.
    pub(super) const ALL: JobKind = JobKind {
        code: None,
        width: Width::All,
    };

    pub(super) fn includes(self, work: CurrentWork) -> bool {
        let includes = match self.width {
            Width::Work(number) => number == work.number,
            Width::Family(family) => work.number != 0 && work.family == family,
            Width::Families => work.family != 0,
            Width::All => true,
        };
        includes && self.code.is_none_or(|code| code == work.code)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::testing::job_of;

    #[test]
    fn a_code_is_told_by_what_is_at_its_addresses() {
        let (job, _) = job_of(async {});
        let code = Code::of(job.header());
        let site = Box::leak(Box::new(*code.site));
        let of = CodeType::Future(Box::leak(Box::new(*job.header().vtable)));
        assert_eq!(Code { site, of }, code);
        let (other, _) = job_of(async { std::future::ready(()).await });
        let other = Code::of(other.header());
        assert_ne!(other, code);
        let elsewhere = Code {
            site: Location::caller(),
            ..code
        };
        assert_ne!(elsewhere, code);
    }
}
