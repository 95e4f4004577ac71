//! Connections that get no service, and what their clients get instead.

use crate::{activity::Activity, refusal};

/// Why a connection has no service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// The clone panicked, which was reported.
    Panicked,
    /// No instance was free in time.
    TooLate,
}

impl Unserved {
    /// The status of the answer to whatever the client asks. Reports why, unless that was reported.
    pub(crate) fn status(self, activity: &Activity) -> &'static str {
        match self {
            Unserved::Panicked => refusal::FAILED,
            Unserved::TooLate => {
                report(activity);
                refusal::UNAVAILABLE
            }
        }
    }
}

fn report(activity: &Activity) {
    weald_kernel::report_failure(|| {
        format!(
            "a new client gets a 503, because its connection has waited in vain for a clone of {}: none of the clones \
             that have begun ends; find out what they wait for",
            activity.service()
        )
    });
}
