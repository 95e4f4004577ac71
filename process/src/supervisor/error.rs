//! Why a supervisor or a child did not start, and why a supervisor gave up.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use weald_kernel::{SpawnError, catch_panic};

use crate::{
    exit::ExitReason, guarded::Guarded, names::RegisterError, supervisor::spec::StartFailure,
};

/// Why a supervisor or a child was not started.
///
/// ```
/// use weald::process::{ChildSpec, Inbox, StartError, Strategy, Supervisor};
///
/// let waiter = || ChildSpec::process("waiter", async |mut inbox: Inbox<()>| inbox.receive().await);
///
/// weald::block_on(async {
///     let supervisor = Supervisor::new(Strategy::RestForOne).child(waiter()).start().await?;
///     let again = supervisor.start_child(waiter()).await;
///     assert!(matches!(again, Err(StartError::Exists(_))));
///     supervisor.stop().await;
///     Ok::<(), StartError>(())
/// })?;
/// # Ok::<(), StartError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The child's start function failed or panicked, or the child was not ready in time, or has refused to start.
    #[error("the child `{child}` did not start: {reason}")]
    Failed {
        /// The child.
        child: String,
        /// What went wrong.
        reason: ChildFault,
    },
    /// There is a child with this id.
    #[error("the supervisor has a child `{0}` already")]
    Exists(String),
    /// There is no child with this id.
    #[error("the supervisor has no child `{0}`")]
    NotFound(String),
    /// The child runs.
    #[error("the child `{0}` runs; terminate it first")]
    Running(String),
    /// The child does not run, but is to be started again by itself.
    #[error("the child `{0}` is to be started again; terminate it first")]
    Restarting(String),
    /// The supervisor has as many children as it may have.
    #[error("the supervisor has {limit} children and may have no more")]
    TooManyChildren {
        /// The limit.
        limit: usize,
    },
    /// The supervisor has ended, because its children ended too often.
    #[error("the supervisor has given up: {0}")]
    GaveUp(GaveUp),
    /// The deadline of the request on whose behalf this was asked has passed. The supervisor may still do it.
    #[error(
        "the supervisor has not answered before the deadline of the request that is served; it may still do what was asked"
    )]
    TimedOut,
    /// A start function asked its own supervisor, which cannot answer: start functions run in the
    /// supervisor's process.
    #[error(
        "a start function cannot ask its own supervisor and wait; ask from the child, or from another process"
    )]
    Itself,
    /// The supervisor was to have a name, which it could not get.
    #[error(transparent)]
    Register(RegisterError),
    /// The supervisor has ended, for this reason.
    #[error("the supervisor has ended: {0}")]
    Ended(ExitReason),
    /// The supervisor could not be spawned.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

impl From<RegisterError> for StartError {
    fn from(error: RegisterError) -> StartError {
        match error {
            RegisterError::Spawn(error) => StartError::Spawn(error),
            error => StartError::Register(error),
        }
    }
}

/// What happened to a child that its supervisor starts again, or that did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChildFault {
    /// It ended for this reason; in a [`StartError`], it did so while it started, as a server does whose first step
    /// [stops](crate::Step::Stop).
    #[error("{0}")]
    Ended(ExitReason),
    /// Its start function returned this error, or the child itself has [refused](crate::Ready::refuse) to start.
    #[error("{0}")]
    Failed(Failure),
    /// Its start function panicked, with this message.
    #[error("its start function panicked: {0}")]
    Panicked(String),
    /// It was not [ready](crate::ChildSpec::ready_within) in time.
    #[error("it was not ready in time")]
    Late,
    /// It dropped the right to say that it is ready, and continued.
    #[error("it dropped its `Ready` and has not said that it is ready")]
    ReadyDropped,
    /// The supervisor was told to end before the child was ready.
    #[error("its supervisor was told to end before it was ready")]
    Interrupted,
    /// Its spec asks the child to say that it is ready, but its start function did not take the right to say so.
    #[error(
        "its start function did not take the right to say that it is ready, which `ready_within` asks for; see \
         `Starting::ready`"
    )]
    ReadyNotTaken,
    /// Its start function returned this supervisor.
    #[error("its start function returned the supervisor itself")]
    Itself,
    /// Its start function returned the unit of another child, which runs.
    #[error("its start function returned the unit of another child")]
    SharedUnit,
}

/// An error of the program's own, and its text. It compares by the text.
#[derive(Clone)]
pub struct Failure {
    text: String,
    error: Arc<Guarded<StartFailure>>,
}

impl Failure {
    pub(crate) fn new(error: StartFailure) -> Failure {
        // The text is user code, which may panic.
        let text = catch_panic(|| error.to_string());
        Failure {
            text: text.unwrap_or_else(|| "an error whose text panics".to_owned()),
            error: Arc::new(Guarded::new(error)),
        }
    }

    /// The error, if it has the type `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.value().downcast_ref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.text).finish()
    }
}

impl PartialEq for Failure {
    fn eq(&self, other: &Failure) -> bool {
        self.text == other.text
    }
}

impl Eq for Failure {}

/// Why a supervisor gave up: its children ended, or did not start, more often than its
/// [intensity](crate::Supervisor::intensity) allows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GaveUp {
    /// The child that was the last.
    pub child: String,
    /// What happened to it.
    pub fault: ChildFault,
    /// How many restarts were allowed.
    pub restarts: usize,
    /// Within this time.
    pub period: Duration,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GaveUp {
            child,
            fault,
            restarts,
            period,
        } = self;
        let plural = if *restarts == 1 { "" } else { "s" };
        write!(
            f,
            "more than {restarts} restart{plural} within {period:?}; at last its child `{child}`: {fault}"
        )
    }
}
