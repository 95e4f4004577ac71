//! What reports need from the scheduler, which comes later than they do in the list of the crate root. The root fills
//! in the table ([`REPORT_UPCALLS`](crate::REPORT_UPCALLS)).

/// The functions of the scheduler that reports call.
pub(crate) struct ReportUpcalls {
    /// An unwinding of the running job for a cancel was caught, and went no further.
    pub(crate) deliver_cancel_again: fn(),
}
