//! How reports name a job.

use std::{fmt, panic::Location};

use crate::{
    JOB_UPCALLS,
    job::{Header, extensions::Extensions},
    report::{JobName, LateName},
};

/// The code of a unit that has no job of its own: one that is [shared by units](Header::is_shared_by_units) runs it.
pub(crate) struct UnitCode {
    /// What the unit is, as reports say it.
    pub(crate) what: &'static str,
    /// The type of its closure.
    pub(crate) type_name: fn() -> &'static str,
}

/// Such a unit as reports name it.
#[derive(Clone, Copy)]
pub(crate) struct UnitName {
    pub(crate) code: &'static UnitCode,
    /// Where it was started.
    pub(crate) site: &'static Location<'static>,
}

impl UnitName {
    /// The name of the unit that `job` runs, if units share the job and it has begun one.
    pub(crate) fn of_running(job: &Header) -> Option<UnitName> {
        if !job.is_shared_by_units() {
            return None;
        }
        job.extensions.lock_existing()?.running_unit
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code.what, (self.code.type_name)())
    }
}

impl LateName {
    /// The name of `job`, without asking its description yet.
    pub(crate) fn of(job: &Header) -> LateName {
        let extensions = job.extensions.lock_existing();
        LateName::with(job, extensions.as_deref())
    }

    /// As [`of`](LateName::of), for a caller that may hold the lock of the extensions: without it, the name is missing.
    pub(crate) fn try_of(job: &Header) -> LateName {
        let named = |extensions: &Extensions| LateName::with(job, Some(extensions));
        let named = job.extensions.try_with(named);
        named.unwrap_or_else(|| LateName::with(job, None))
    }

    fn with(job: &Header, extensions: Option<&Extensions>) -> LateName {
        let description = extensions.and_then(|extensions| extensions.description.clone());
        LateName::new(JobName::known(job, extensions), description)
    }
}

impl JobName {
    /// The name of `job`, which runs user code if the job has a description. Not on the monitor, and not under a lock.
    pub(crate) fn of(job: &Header) -> JobName {
        LateName::of(job).now()
    }

    /// As [`of`](JobName::of), for a caller that may hold the lock of the extensions: without it, the name is missing.
    pub(crate) fn try_of(job: &Header) -> JobName {
        let named = |extensions: &Extensions| LateName::with(job, Some(extensions));
        let named = job.extensions.try_with(named);
        named.map_or_else(|| JobName::known(job, None), LateName::now)
    }

    /// As [`try_of`](JobName::try_of), without asking the description of `job`.
    pub(crate) fn try_known(job: &Header) -> JobName {
        let known = |extensions: &Extensions| JobName::known(job, Some(extensions));
        let known = job.extensions.try_with(known);
        known.unwrap_or_else(|| JobName::known(job, None))
    }

    /// The name of `job`, without asking its description.
    pub(crate) fn without_description(job: &Header) -> JobName {
        let extensions = job.extensions.lock_existing();
        JobName::known(job, extensions.as_deref())
    }

    /// The name of a unit without a job of its own, while no job runs it.
    pub(crate) fn of_unit(unit: UnitName) -> JobName {
        JobName {
            name: Some(unit.to_string()),
            type_name: (unit.code.type_name)(),
            site: unit.site,
            waits_for: None,
        }
    }

    /// The name of `job`, which has these extensions, without asking its description.
    pub(super) fn known(job: &Header, extensions: Option<&Extensions>) -> JobName {
        let unit = extensions.and_then(|extensions| extensions.running_unit);
        let given =
            || extensions.and_then(|extensions| extensions.name.as_deref().map(str::to_owned));
        JobName {
            name: match unit {
                Some(unit) => Some(unit.to_string()),
                None if job.is_part() => Some(JOB_UPCALLS.part_name.to_owned()),
                None => given(),
            },
            type_name: job.type_name(),
            site: unit.map_or_else(|| job.extensions.site(), |unit| unit.site),
            waits_for: job.waits_for(),
        }
    }
}
