//! The specs of a supervisor's children, and its messages.

use std::{any::Any, borrow::Cow, error::Error, fmt, panic::Location, time::Duration};

use weald_kernel::{AsUnit, SpawnError, Unit};

use crate::{
    call::Reply,
    exit::ExitReason,
    guarded::Guarded,
    inbox::Inbox,
    signal::{signals::ProcessId, trap::Exit},
    spawn::Builder,
    supervisor::error::{ChildFault, Failure, StartError},
};

/// When a supervisor restarts a child that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    #[default]
    Permanent,
    /// If it ended for another reason than [`Normal`](crate::ExitReason::Normal) or
    /// [`Shutdown`](crate::ExitReason::Shutdown).
    Transient,
    /// Never; it is also forgotten when it ends.
    Temporary,
}

/// How a supervisor ends a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// It is killed.
    Kill,
    /// It gets an exit signal [`Shutdown`](crate::ExitReason::Shutdown), and is killed if it has not ended after this
    /// time.
    After(Duration),
    /// It gets that signal, and the supervisor waits as long as the end takes, and does nothing else, as in OTP. A
    /// child that ignores the signal holds up the supervisor for ever, and is left behind if the supervisor is killed
    /// meanwhile. For children that are supervisors.
    Infinity,
}

/// The pauses before a child is started again: the first is `first`, each further one twice as long, up to `longest`;
/// with up to a quarter of jitter. They begin anew when the child was up for longer than `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

/// What a child's start function gets.
#[derive(Debug)]
pub struct Starting {
    pub(crate) ready: Option<Reply<Readiness>>,
}

impl Starting {
    /// The right to say that the child is ready, for a child whose spec asks for it; see [`ChildSpec::ready_within`].
    /// To be moved into the child.
    pub fn ready(&mut self) -> Ready {
        Ready(self.ready.take())
    }
}

/// What a child says about itself: that it is ready, or why it does not start.
pub(crate) type Readiness = Result<(), ChildFault>;

/// Says that a child is ready, or that it does not start. If it is dropped, the child has failed to start.
#[derive(Debug)]
pub struct Ready(Option<Reply<Readiness>>);

impl Ready {
    /// The child is ready; the supervisor continues.
    pub fn say(self) {
        self.tell(Ok(()));
    }

    /// The child does not start: its [`StartError`] has this error. If the child does not end by itself, the supervisor
    /// ends it as its [shutdown](ChildSpec::shutdown) says. With [`Shutdown::Infinity`] the supervisor waits for that
    /// as long as it takes, and handles no message meanwhile.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::time::Duration;
    /// use weald::process::{ChildSpec, Inbox, Strategy, Supervisor, spawn_link};
    ///
    /// let child = ChildSpec::new("reader", |starting| {
    ///     let ready = starting.ready();
    ///     spawn_link(async move |_: Inbox<()>| ready.refuse("there is no file")).map(|p| p.into_pid())
    /// });
    /// let supervisor = Supervisor::new(Strategy::OneForOne);
    /// let supervisor = supervisor.child(child.ready_within(Duration::from_secs(5)));
    /// let error = supervisor.start().await.unwrap_err();
    /// assert_eq!(error.to_string(), "the child `reader` did not start: there is no file");
    /// # });
    /// ```
    pub fn refuse(self, error: impl Into<StartFailure>) {
        self.fail(ChildFault::Failed(Failure::new(error.into())));
    }

    pub(crate) fn fail(self, fault: ChildFault) {
        self.tell(Err(fault));
    }

    fn tell(self, readiness: Readiness) {
        if let Some(reply) = self.0 {
            // An error: the supervisor waits no longer, and has killed the child.
            let _late = reply.send(readiness);
        }
    }
}

/// Why a child did not start, in the words of its start function.
pub type StartFailure = Box<dyn Error + Send + Sync>;

type Start = Box<dyn FnMut(&mut Starting) -> Result<Unit, StartFailure> + Send>;

/// A child of a [`Supervisor`](crate::Supervisor).
pub struct ChildSpec {
    pub(crate) id: Cow<'static, str>,
    pub(crate) start: Guarded<Start>,
    pub(crate) restart: Restart,
    pub(crate) shutdown: Shutdown,
    pub(crate) ready_within: Option<Duration>,
    pub(crate) backoff: Option<Backoff>,
}

/// The child was never started: it has no unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the start function returned a handle without a unit: the runtime refused it")]
pub struct NoUnit;

impl ChildSpec {
    /// A child that `start` starts: a process, a thread or a job, by its pid or handle. `start` runs in the supervisor
    /// whenever the child is started, and must not wait. The supervisor links the unit. If a start function panics, its
    /// child has failed to start.
    ///
    /// A unit that has ended before the supervisor links it is treated as any child that has ended: a transient child
    /// that has returned is not started again. The supervisor cannot be its own child, and no unit can be two children.
    ///
    /// The type of the error is named where `?` leaves it open:
    ///
    /// ```
    /// use weald::SpawnError;
    /// use weald::process::{self as process, ChildSpec, Inbox};
    ///
    /// let child = ChildSpec::new("waits", |_starting| {
    ///     let process = process::spawn_link(async |mut inbox: Inbox<()>| inbox.receive().await)?;
    ///     Ok::<_, SpawnError>(process.into_pid())
    /// });
    /// ```
    pub fn new<U, E>(
        id: impl Into<Cow<'static, str>>,
        start: impl FnMut(&mut Starting) -> Result<U, E> + Send + 'static,
    ) -> ChildSpec
    where
        U: AsUnit + Any,
        E: Into<StartFailure>,
    {
        let mut start = start;
        ChildSpec {
            id: id.into(),
            start: Guarded::new(Box::new(move |starting| {
                let started = start(starting).map_err(Into::into)?;
                started.as_unit().ok_or_else(|| NoUnit.into())
            })),
            restart: Restart::default(),
            shutdown: Shutdown::After(Duration::from_secs(5)),
            ready_within: None,
            backoff: None,
        }
    }

    /// A child that is a process named `id`, with this body. `body` is called for each start. It gets no [`Ready`], so
    /// with [`ready_within`](ChildSpec::ready_within) it does not start: use [`new`](ChildSpec::new) for that.
    ///
    /// Values that the body uses, including plain numbers, must be cloned for each start, before the `async move` block
    /// of a closure that makes the future. An `async move` closure that uses its captures can be called only once,
    /// which the compiler refuses here.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::sync::{Arc, Mutex};
    /// use weald::process::{ChildSpec, Inbox, Strategy, Supervisor};
    ///
    /// let log = Arc::new(Mutex::new(Vec::new()));
    /// let kept = log.clone();
    /// let logger = ChildSpec::process("logger", move |mut inbox: Inbox<String>| {
    ///     let log = kept.clone();
    ///     async move {
    ///         loop {
    ///             let line = inbox.receive().await;
    ///             log.lock().unwrap().push(line);
    ///         }
    ///     }
    /// });
    /// let supervisor = Supervisor::new(Strategy::OneForOne).child(logger).start().await?;
    /// # supervisor.stop().await;
    /// # Ok::<(), weald::process::StartError>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn process<M, Fut>(
        id: impl Into<Cow<'static, str>>,
        body: impl FnMut(Inbox<M>) -> Fut + Send + 'static,
    ) -> ChildSpec
    where
        M: Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let id = id.into();
        let (name, mut body) = (id.clone(), body);
        let site = Location::caller();
        ChildSpec::new(id, move |_starting| {
            let builder = Builder::new().name(name.clone()).site(site).link();
            let process = builder.spawn(&mut body)?;
            Ok::<_, SpawnError>(process.into_pid())
        })
    }

    /// When it is started again; [`Restart::Permanent`] by default.
    #[must_use]
    pub fn restart(self, restart: Restart) -> ChildSpec {
        ChildSpec { restart, ..self }
    }

    /// How it is ended; after 5 s by default.
    #[must_use]
    pub fn shutdown(self, shutdown: Shutdown) -> ChildSpec {
        ChildSpec { shutdown, ..self }
    }

    /// The child says itself when it is [ready](Starting::ready); until then, the supervisor starts no other one. If it
    /// does not within `duration`, it is killed, and has failed to start.
    #[must_use]
    pub fn ready_within(self, duration: Duration) -> ChildSpec {
        ChildSpec {
            ready_within: Some(duration),
            ..self
        }
    }

    /// Pauses before it is started again; none by default.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> ChildSpec {
        ChildSpec {
            backoff: Some(backoff),
            ..self
        }
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("id", &self.id)
            .field("restart", &self.restart)
            .field("shutdown", &self.shutdown)
            .finish_non_exhaustive()
    }
}

/// Which children a supervisor restarts when one has ended.
///
/// ```
/// use weald::process::{Strategy, Supervisor};
///
/// weald::block_on(async {
///     // If the first child ends, those after it are started again, too.
///     let supervisor = Supervisor::new(Strategy::RestForOne).start().await?;
///     supervisor.stop().await;
///     Ok::<(), weald::process::StartError>(())
/// })?;
/// # Ok::<(), weald::process::StartError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// That child.
    #[default]
    OneForOne,
    /// All: the others are ended first.
    OneForAll,
    /// That child and those behind it, which are ended first.
    RestForOne,
}

/// A child, as [`SupervisorPid::children`](crate::SupervisorPid::children) shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildState {
    /// Its id.
    pub id: String,
    /// The unit, if it runs.
    pub unit: Option<Unit>,
    /// Whether it is to be started again.
    pub is_restarting: bool,
}

/// How many children a supervisor has, as [`SupervisorPid::count_children`](crate::SupervisorPid::count_children)
/// tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildCounts {
    /// How many specs it has, whether or not their children run.
    pub specs: usize,
    /// How many of them run.
    pub running: usize,
    /// How many are to be started again.
    pub restarting: usize,
}

/// What a supervisor receives. It is made by [`SupervisorPid`](crate::SupervisorPid); a [`Name`](crate::Name) of a
/// supervisor has it as its message.
pub struct SupervisorMessage(pub(crate) Message);

impl fmt::Debug for SupervisorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorMessage").finish_non_exhaustive()
    }
}

pub(crate) enum Message {
    Exit(Exit),
    /// A unit had ended before it could be linked.
    Ended(ProcessId, ExitReason),
    Stop,
    Start(ChildSpec, Reply<Result<(), StartError>>),
    Terminate(String, Reply<Result<(), StartError>>),
    Restart(String, Reply<Result<(), StartError>>),
    Delete(String, Reply<Result<(), StartError>>),
    Children(Reply<Vec<ChildState>>),
    Count(Reply<ChildCounts>),
}
