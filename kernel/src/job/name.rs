//! How reports name a job.

use std::panic::Location;

use crate::{job::Header, report::JobName};

/// A callback as reports name it.
#[derive(Clone, Copy)]
pub(crate) struct CallbackName {
    /// The type of its closure.
    pub(crate) type_name: fn() -> &'static str,
    /// Where it was started.
    pub(crate) site: &'static Location<'static>,
}

impl JobName {
    pub(crate) fn of(job: &Header) -> JobName {
        JobName {
            name: job.name(),
            type_name: job.type_name(),
            site: job.site(),
            waits_for: job.waits_for(),
        }
    }
}
