//! How reports name a job.

use std::{fmt, panic::Location};

use crate::{
    job::{Header, extensions::Extensions},
    report::{JobName, LateName},
};

/// A callback as reports name it.
#[derive(Clone, Copy)]
pub(crate) struct CallbackName {
    /// The type of its closure.
    pub(crate) type_name: fn() -> &'static str,
    /// Where it was started.
    pub(crate) site: &'static Location<'static>,
}

impl CallbackName {
    /// The name of the callback that `job` runs, if it is a runner that has begun one.
    pub(crate) fn of_runner(job: &Header) -> Option<CallbackName> {
        if !job.is_shared_by_units() {
            return None;
        }
        job.extensions.lock_existing()?.callback
    }
}

impl fmt::Display for CallbackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "callback {}", (self.type_name)())
    }
}

/// How reports name a job that runs parts of a fork.
const PART_OF_A_FORK: &str = "part of a fork";

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

    /// The name of a callback that no job runs.
    pub(crate) fn of_callback(callback: CallbackName) -> JobName {
        let type_name = (callback.type_name)();
        JobName {
            name: Some(callback.to_string()),
            type_name,
            site: callback.site,
            waits_for: None,
        }
    }

    /// The name of `job`, which has these extensions, without asking its description.
    pub(super) fn known(job: &Header, extensions: Option<&Extensions>) -> JobName {
        let callback = extensions.and_then(|extensions| extensions.callback);
        let given =
            || extensions.and_then(|extensions| extensions.name.as_deref().map(str::to_owned));
        JobName {
            name: match callback {
                Some(callback) => Some(callback.to_string()),
                None if job.is_part() => Some(PART_OF_A_FORK.to_owned()),
                None => given(),
            },
            type_name: job.type_name(),
            site: callback.map_or_else(|| job.extensions.site(), |callback| callback.site),
            waits_for: job.waits_for(),
        }
    }
}
