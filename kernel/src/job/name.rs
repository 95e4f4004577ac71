//! How reports name a job.

use crate::{job::Header, report::JobName};

impl JobName {
    pub(crate) fn of(job: &Header) -> JobName {
        JobName {
            name: job.name(),
            type_name: job.type_name(),
            site: job.extensions.site(),
            waits_for: job.waits_for(),
        }
    }
}
