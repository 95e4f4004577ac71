//! Two reports that crates above make: a job has given up what it did for others, or has failed in it once.

use std::fmt;

use crate::{
    report::{self, JobName},
    scheduler::workers::context,
};

/// Reports that the running job gives up what it did, such as starting others again. `why` ends the sentence "… has
/// given up: ". Does nothing outside of jobs. Never waits.
pub fn report_given_up(why: &dyn fmt::Display) {
    if let Some(job) = context::again().job_ref() {
        report::given_up(&JobName::of(job.header()), why);
    }
}

/// Reports that something which the running job does for others, such as answering a request, has failed. `text` is the
/// whole sentence; it is not called if there were too many such reports of jobs from the same place. Never waits.
pub fn report_failure(text: impl FnOnce() -> String) {
    let job = context::again().job_ref();
    let named = job.map(|job| JobName::of(job.header()));
    report::failure(named.as_ref(), text);
}
