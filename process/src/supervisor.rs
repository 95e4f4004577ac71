//! Supervisors: processes that start others, and start them again when they end.
//!
//! A supervisor is a process that traps exits and is linked with its children. It starts its children in order, and
//! ends them in the reverse order. If it is killed, the links end them, except those that trap exits: they get a
//! message. A child that the supervisor is just ending has no link any longer, and is killed.
//!
//! An exit signal of a child means that the child has ended. An exit signal of the unit that spawned the supervisor, if
//! they are linked, ends the supervisor, and so does the order of another supervisor to shut down. All other exit
//! signals are ignored, because a start function may have linked a unit and then failed.
//!
//! A restart: the exit signal comes to `supervise`; `children.rs` notes the end, and finds out which children start
//! again (`ended`, `restart`, `start_due`); `units.rs` calls the start function of the child's spec (`launch`). After
//! too many restarts the supervisor gives up ([`GaveUp`]), which is reported.

pub(crate) mod address;
pub(crate) mod children;
pub(crate) mod error;
pub(crate) mod handover;
pub(crate) mod spec;
pub(crate) mod units;

use std::{
    borrow::Cow,
    panic::Location,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::Poll,
    time::Duration,
};

use weald_kernel::{Unit, report_given_up, yield_now};

use crate::{
    call::answer,
    exit::ExitReason,
    inbox::Inbox,
    names::Name,
    signal::{link::exit, monitor::monitor, signals::ProcessId},
    spawn::{Builder, Process},
    supervisor::{
        address::{StopAtDrop, SupervisorPid, start_error_of},
        children::{Activity, Children},
        error::{GaveUp, StartError},
        spec::{ChildSpec, ChildState, Message, Shutdown, Strategy, SupervisorMessage},
        units::reason_to_end,
    },
};

/// The settings of a supervisor, and its children.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{ChildSpec, Inbox, Name, Strategy, Supervisor};
///
/// static COUNTER: Name<u32> = Name::new("counter");
///
/// let counter = ChildSpec::process("counter", async |mut inbox: Inbox<u32>| {
///     COUNTER.register(&inbox.pid()).unwrap();
///     loop {
///         assert!(inbox.receive().await < 10);
///     }
/// });
/// let supervisor = Supervisor::new(Strategy::OneForOne).child(counter).start().await?;
/// let first = COUNTER.registered().await.unwrap();
/// let down = weald::process::monitor(&first);
/// first.send(10);
/// down.await;
/// let second = COUNTER.registered().await.unwrap();
/// assert_ne!(first, second);
/// supervisor.stop().await;
/// assert!(!second.is_alive());
/// # Ok::<(), weald::process::StartError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a supervisor does nothing until it is started"]
pub struct Supervisor {
    builder: Builder,
    name: Option<Name<SupervisorMessage>>,
    strategy: Strategy,
    intensity: (usize, Duration),
    limit: usize,
    children: Vec<ChildSpec>,
}

impl Supervisor {
    /// A supervisor without children. It gives up after more than 1 restart in 5 s, as in OTP.
    pub fn new(strategy: Strategy) -> Supervisor {
        Supervisor {
            builder: Builder::new(),
            name: None,
            strategy,
            intensity: (1, Duration::from_secs(5)),
            limit: usize::MAX,
            children: Vec::new(),
        }
    }

    /// The settings of the supervisor's process, such as its name and whether it is linked with the running unit. A
    /// linked supervisor ends when that unit ends, in any way, even by returning. The end of any other unit does not
    /// end it.
    pub fn builder(self, builder: Builder) -> Supervisor {
        Supervisor { builder, ..self }
    }

    /// The supervisor gets this name before its first child starts, so that others find it again after a restart: by
    /// [`Name::registered`] and [`SupervisorPid::of`].
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{ChildSpec, Inbox, Name, Strategy, Supervisor, SupervisorMessage, SupervisorPid};
    ///
    /// static ROOMS: Name<SupervisorMessage> = Name::new("rooms");
    ///
    /// let rooms = ChildSpec::supervisor("rooms", || {
    ///     Supervisor::new(Strategy::OneForOne).register(&ROOMS)
    /// });
    /// let root = Supervisor::new(Strategy::OneForOne).child(rooms).start().await?;
    /// let rooms = SupervisorPid::of(ROOMS.registered().await.unwrap());
    /// let room = ChildSpec::process("1", async |mut inbox: Inbox<()>| inbox.receive().await);
    /// rooms.start_child(room).await?;
    /// assert_eq!(rooms.count_children().await?.running, 1);
    /// root.stop().await;
    /// # Ok::<(), weald::process::StartError>(())
    /// # }).unwrap();
    /// ```
    pub fn register(self, name: &Name<SupervisorMessage>) -> Supervisor {
        let name = Some(name.clone());
        Supervisor { name, ..self }
    }

    /// It gives up after more than `restarts` restarts within `period`: it reports the last child and why that ended,
    /// ends all children, and then ends with the reason [`Shutdown`](ExitReason::Shutdown).
    ///
    /// # Panics
    /// If `period` is zero, which OTP refuses as well: no two restarts would be within it, and the supervisor would
    /// never give up.
    #[track_caller]
    pub fn intensity(self, restarts: usize, period: Duration) -> Supervisor {
        assert!(
            !period.is_zero(),
            "a supervisor counts its restarts within a period that is longer than zero"
        );
        Supervisor {
            intensity: (restarts, period),
            ..self
        }
    }

    /// The supervisor has at most `limit` children; starting a further one is an error.
    pub fn limit(self, limit: usize) -> Supervisor {
        Supervisor { limit, ..self }
    }

    /// Adds a child behind the others.
    pub fn child(mut self, child: ChildSpec) -> Supervisor {
        self.children.push(child);
        self
    }

    /// Starts the supervisor and its children, in order; returns when all of them run. The supervisor is linked with
    /// nobody, unless its [builder](Supervisor::builder) says so.
    ///
    /// Not cancel-safe: if the future is dropped before it is done, the supervisor ends, with the children that it has
    /// started.
    ///
    /// # Errors
    /// The first child that does not start. The children before it are ended, and then the supervisor. If the
    /// supervisor is linked, its end is an exit signal [`Shutdown`](ExitReason::Shutdown) to the caller, which ends the
    /// caller unless it traps exits, as in OTP.
    ///
    /// # Panics
    /// The future panics outside of units, if the [builder](Supervisor::builder) links.
    #[track_caller]
    pub fn start(self) -> impl Future<Output = Result<SupervisorPid, StartError>> + Send + use<> {
        let site = Location::caller();
        async move {
            let (reply, started) = answer(None);
            let builder = self.builder.clone().site(site);
            builder.check_link(site);
            let tell = move |started| drop(reply.send(started));
            let pid = self.spawn(builder, tell)?;
            let unfinished = StopAtDrop::new(pid.clone());
            let started = started.await;
            unfinished.disarm();
            match started {
                Ok(Ok(())) => Ok(pid),
                Ok(Err(error)) => {
                    // Its name is free when the caller learns that it did not start.
                    monitor(&pid).await;
                    Err(error)
                }
                Err(error) => Err(start_error_of(&pid, error)),
            }
        }
    }

    /// Spawns the process, which calls `tell` when the children run, or one does not start.
    fn spawn(
        self,
        builder: Builder,
        tell: impl FnOnce(Result<(), StartError>) + Send + 'static,
    ) -> Result<SupervisorPid, StartError> {
        let parent = Unit::current().as_ref().map(ProcessId::of);
        let cause = Arc::new(OnceLock::new());
        let noted = cause.clone();
        let name = self.name.clone();
        let body = move |inbox| async move {
            let mut inbox: Inbox<SupervisorMessage> = inbox;
            inbox.trap_exits(|exit| SupervisorMessage(Message::Exit(exit)));
            let mut children = Children::new(self.strategy, self.intensity, parent);
            let limit = self.limit;
            if let Err(error) = self.start_children(&mut inbox, &mut children).await {
                children.stop_all().await;
                tell(Err(error));
                let told = children.told_to_end().cloned();
                exit(told.unwrap_or(ExitReason::Shutdown));
            }
            tell(Ok(()));
            let supervised = supervise(&mut inbox, &mut children, limit, parent).await;
            let reason = supervised.unwrap_or_else(|gave_up| {
                report_given_up(&gave_up);
                // It is set here alone.
                let _set = noted.set(gave_up);
                ExitReason::Shutdown
            });
            children.stop_all().await;
            exit(reason)
        };
        let process: Process<_, ()> = match name {
            Some(name) => name.spawn(builder, body)?,
            None => builder.spawn(body)?,
        };
        Ok(SupervisorPid::new(process.into_pid(), cause))
    }

    /// Starts the children, in order.
    async fn start_children(
        self,
        inbox: &mut Inbox<SupervisorMessage>,
        children: &mut Children,
    ) -> Result<(), StartError> {
        for child in self.children {
            if children.len() == self.limit {
                return Err(StartError::TooManyChildren { limit: self.limit });
            }
            children.add(inbox, child).await?;
        }
        Ok(())
    }
}

impl ChildSpec {
    /// A child that is a supervisor itself, which `make` describes for each start. It has as much time as it needs, to
    /// start and to end.
    #[track_caller]
    pub fn supervisor(
        id: impl Into<Cow<'static, str>>,
        make: impl FnMut() -> Supervisor + Send + 'static,
    ) -> ChildSpec {
        let mut make = make;
        let site = Location::caller();
        let start = ChildSpec::new(id, move |starting| {
            let ready = starting.ready();
            let supervisor = make();
            let builder = supervisor.builder.clone().site(site).link();
            let tell = move |started| match started {
                Ok(()) => ready.say(),
                Err(error) => ready.refuse(error),
            };
            supervisor.spawn(builder, tell)
        });
        start
            .ready_within(Duration::MAX)
            .shutdown(Shutdown::Infinity)
    }
}

/// Serves until the supervisor is to end; returns the reason.
///
/// # Errors
/// If its children ended too often.
async fn supervise(
    inbox: &mut Inbox<SupervisorMessage>,
    children: &mut Children,
    limit: usize,
    parent: Option<ProcessId>,
) -> Result<ExitReason, GaveUp> {
    loop {
        if children.has_due() {
            children.start_due(inbox).await?;
            // A child that fails again and again must not keep the supervisor from its messages.
            yield_now().await;
        }
        if let Some(reason) = children.told_to_end() {
            return Ok(reason.clone());
        }
        let message = {
            let mut due = std::pin::pin!(children.due());
            let mut receive = inbox.receive();
            std::future::poll_fn(|cx| match Pin::new(&mut receive).poll(cx) {
                Poll::Ready(message) => Poll::Ready(Some(message)),
                Poll::Pending => due.as_mut().poll(cx).map(|()| None),
            })
            .await
        };
        let Some(SupervisorMessage(message)) = message else {
            continue;
        };
        let is_child = match units::ended(&message) {
            Some((unit, reason)) => children.ended(unit, reason).await?,
            None => false,
        };
        match reason_to_end(&message, parent) {
            Some(reason) if !is_child => return Ok(reason),
            _ => request(message, inbox, children, limit).await,
        }
    }
}

async fn request(
    message: Message,
    inbox: &mut Inbox<SupervisorMessage>,
    children: &mut Children,
    limit: usize,
) {
    let not_found = |id: &str| StartError::NotFound(id.to_owned());
    let (reply, result) = match message {
        Message::Exit(_) | Message::Ended(..) | Message::Stop => return,
        Message::Start(spec, reply) if children.len() < limit => {
            (reply, children.add(inbox, spec).await)
        }
        Message::Start(_, reply) => (reply, Err(StartError::TooManyChildren { limit })),
        Message::Terminate(id, reply) => match children.find(&id) {
            Some((place, _)) => {
                children.terminate(place).await;
                (reply, Ok(()))
            }
            None => (reply, Err(not_found(&id))),
        },
        Message::Restart(id, reply) => match children.find(&id) {
            Some((place, Activity::Idle)) => (reply, children.start(inbox, place).await),
            Some((_, Activity::Restarts)) => (reply, Err(StartError::Restarting(id))),
            Some((_, Activity::Runs)) => (reply, Err(StartError::Running(id))),
            None => (reply, Err(not_found(&id))),
        },
        Message::Delete(id, reply) => match children.find(&id) {
            Some((place, Activity::Idle)) => {
                children.remove(place);
                (reply, Ok(()))
            }
            Some((_, Activity::Restarts)) => (reply, Err(StartError::Restarting(id))),
            Some((_, Activity::Runs)) => (reply, Err(StartError::Running(id))),
            None => (reply, Err(not_found(&id))),
        },
        Message::Children(reply) => {
            let states = children.iter().map(|child| ChildState {
                id: child.spec.id.clone().into_owned(),
                unit: child.unit.clone(),
                is_restarting: child.is_restarting(),
            });
            let _unheard = reply.send(states.collect());
            return;
        }
        Message::Count(reply) => {
            let _unheard = reply.send(children.counts());
            return;
        }
    };
    let _unheard = reply.send(result);
}
