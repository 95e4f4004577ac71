//! The scheduler's side of the tables by which earlier layers call it: the job's and that of the reports.

use crate::{
    job::upcalls::JobUpcalls,
    report::upcalls::ReportUpcalls,
    scheduler::{
        stackful::wait,
        workers::{current, run, waker},
    },
};

pub(crate) const OF_JOB: JobUpcalls = JobUpcalls {
    abandon: run::cancel,
    make_call: waker::make_call,
    call_in_drop: run::call_in_drop,
    running_unit: current::running_unit,
};

pub(crate) const OF_REPORTS: ReportUpcalls = ReportUpcalls {
    deliver_cancel_again: wait::deliver_cancel_again_unless_unwinding,
};
