//! What the job needs from the scheduler and from a feature, which come later than it does in the list of the crate
//! root. The root fills in the table ([`JOB_UPCALLS`](crate::JOB_UPCALLS)).

use crate::{
    job::{foreign_call::ForeignCall, runnable::Runnable},
    report::LateName,
};

/// The functions of the scheduler that the job calls, and a text of a feature.
pub(crate) struct JobUpcalls {
    /// Cancels a job that will never run. Called by the destructor of [`Runnable`].
    pub(crate) abandon: fn(Runnable),
    /// Makes a call in a job of its own, in the runtime with this number. Called when the last reference to a job goes.
    pub(crate) make_call: fn(u16, ForeignCall),
    /// Calls a closure as the running job's code, although the job's future is being dropped.
    pub(crate) call_in_drop: fn(&mut dyn FnMut()),
    /// How reports name the unit whose code the calling thread runs, if it runs one. Waits for nothing.
    pub(crate) running_unit: fn() -> Option<LateName>,
    /// How reports name a job that runs a [part](crate::job::Header::is_part).
    pub(crate) part_name: &'static str,
}
