//! What a report of a stuck job says of the others: who does now what the job's thread did.

use std::fmt;

/// What happened to the worker of a stuck job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retake {
    /// Its worker was retaken.
    Retaken,
    /// It holds no worker, because it runs in quarantine.
    Quarantined,
    /// Its thread is a user's in `block_on`, and has no worker.
    OfVisitor,
    /// The worker could not be retaken. Others take over what is due at it.
    Refused,
    /// It is no job, but a waker that a time limit outside of runtimes fires. So many more threads may call such
    /// wakers.
    OfTimeLimit { threads_left: usize },
}

impl fmt::Display for Retake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Retake::Retaken => "another thread now serves its worker",
            Retake::Refused => "no spare thread is left, so its worker waits for it",
            Retake::OfVisitor => {
                "its thread is in block_on, whose future and other local jobs stand still meanwhile"
            }
            Retake::Quarantined => {
                "it runs on a thread without a worker, because others of its kind did the same"
            }
            Retake::OfTimeLimit { threads_left: 0 } => {
                "a time limit outside of runtimes has fired it, and no further thread is started for such wakers of \
                 other executors, so those behind it wait"
            }
            Retake::OfTimeLimit { .. } => {
                "a time limit outside of runtimes has fired it, and another thread fires those behind it"
            }
        })
    }
}
