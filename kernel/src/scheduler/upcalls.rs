//! The scheduler's side of the tables by which earlier layers call it: the job's and that of the reports.

use crate::{
    job::upcalls::JobUpcalls,
    report::upcalls::ReportUpcalls,
    scheduler::{
        stackful::wait,
        workers::{current, run, waker},
    },
};

/// The feature whose parts jobs run gives their name.
pub(crate) const fn of_job(part_name: &'static str) -> JobUpcalls {
    JobUpcalls {
        abandon: run::cancel,
        make_call: waker::make_call,
        call_in_drop: run::call_in_drop,
        running_unit: current::running_unit,
        part_name,
    }
}

pub(crate) const OF_REPORTS: ReportUpcalls = ReportUpcalls {
    deliver_cancel_again: wait::deliver_cancel_again_unless_unwinding,
};
