//! The report of a crate above: a job that kept others going gives up.

use std::fmt;

use crate::{
    report::{self, JobName},
    scheduler::workers::context,
};

/// Reports that the running job gives up what it did, such as to start others again. `why` ends the sentence "… has
/// given up: ". Does nothing outside of jobs. Never waits.
pub fn report_given_up(why: &dyn fmt::Display) {
    if let Some(job) = context::again().job_ref() {
        report::given_up(&JobName::of(job.header()), why);
    }
}
