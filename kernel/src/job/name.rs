//! How reports name a job.

use std::panic::Location;

use crate::{
    job::{
        Header,
        description::{self, Describe},
        extensions::Extensions,
    },
    report::JobName,
};

/// A callback as reports name it.
#[derive(Clone, Copy)]
pub(crate) struct CallbackName {
    /// The type of its closure.
    pub(crate) type_name: fn() -> &'static str,
    /// Where it was started.
    pub(crate) site: &'static Location<'static>,
}

/// How reports name a job that runs parts of a fork.
const PART_OF_A_FORK: &str = "part of a fork";

impl JobName {
    pub(crate) fn of(job: &Header) -> JobName {
        let extensions = job.extensions.lock_existing();
        let named = JobName::with(job, extensions.as_deref());
        let description = extensions.and_then(|extensions| extensions.description.clone());
        named.described(description.as_deref())
    }

    /// As [`of`](JobName::of), for a caller that may hold the lock of the extensions: without it, the name is missing.
    pub(crate) fn try_of(job: &Header) -> JobName {
        let named = |extensions: &Extensions| {
            let named = JobName::with(job, Some(extensions));
            (named, extensions.description.clone())
        };
        let named = job.extensions.try_with(named);
        let (named, description) = named.unwrap_or_else(|| (JobName::with(job, None), None));
        named.described(description.as_deref())
    }

    /// The name that the job's description gives, if it has one. Without a lock of the kernel.
    fn described(mut self, description: Option<&dyn Describe>) -> JobName {
        if let Some(description) = description {
            self.name = description::name(description).or(self.name);
        }
        self
    }

    fn with(job: &Header, extensions: Option<&Extensions>) -> JobName {
        let callback = extensions.and_then(|extensions| extensions.callback);
        let given =
            || extensions.and_then(|extensions| extensions.name.as_deref().map(str::to_owned));
        JobName {
            name: match callback {
                Some(callback) => Some(format!("callback {}", (callback.type_name)())),
                None if job.is_forked() => Some(PART_OF_A_FORK.to_owned()),
                None => given(),
            },
            type_name: job.type_name(),
            site: callback.map_or_else(|| job.extensions.site(), |callback| callback.site),
            waits_for: job.waits_for(),
        }
    }
}
