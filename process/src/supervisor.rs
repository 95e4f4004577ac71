//! Supervisors: processes that start others, and start them again when they end.
//!
//! A supervisor is a process that traps exits and is linked with its children. It starts its children in order, and ends
//! them in the reverse order. If it is killed, the links end them, except those that trap exits: they get a message.
//!
//! Of the exit signals that come to it, those of its children count as their ends. It ends itself with the unit that
//! spawned it, if they are linked, and when another supervisor tells it to shut down. All others are ignored: a start
//! function may have linked a unit and then failed.

pub(crate) mod children;
pub(crate) mod handover;
pub(crate) mod spec;

use std::{borrow::Cow, pin::Pin, task::Poll, time::Duration};

use weald_kernel::{AsUnit, SpawnError, Unit, yield_now};

use crate::{
    call::{CallError, Reply, answer},
    exit::ExitReason,
    inbox::Inbox,
    pid::Pid,
    signal::{link::exit, monitor::monitor, signals::ProcessId, trap::Exit},
    spawn::Builder,
    supervisor::{
        children::{Activity, Children, GaveUp},
        spec::{ChildSpec, ChildState, Message, Shutdown, StartError, Strategy},
    },
};

/// The settings of a supervisor, and its children.
///
/// ```
/// # weald_kernel::Runtime::test(1).block_on(async {
/// use weald_process::{ChildSpec, Inbox, Name, Strategy, Supervisor};
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
/// let down = weald_process::monitor(&first);
/// first.send(10);
/// down.await;
/// let second = COUNTER.registered().await.unwrap();
/// assert_ne!(first, second);
/// supervisor.stop().await;
/// assert!(!second.is_alive());
/// # Ok::<(), weald_process::StartError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a supervisor does nothing until it is started"]
pub struct Supervisor {
    builder: Builder,
    strategy: Strategy,
    intensity: (usize, Duration),
    limit: usize,
    children: Vec<ChildSpec>,
}

/// The address of a supervisor.
#[derive(Clone, Debug)]
pub struct SupervisorPid(Pid<Message>);

impl Supervisor {
    /// A supervisor without children. It gives up after more than 1 restart in 5 s, as in OTP.
    pub fn new(strategy: Strategy) -> Supervisor {
        Supervisor {
            builder: Builder::new(),
            strategy,
            intensity: (1, Duration::from_secs(5)),
            limit: usize::MAX,
            children: Vec::new(),
        }
    }

    /// The settings of its process, such as its name and whether it is linked with the running one. If it is, it ends
    /// with the running one, however that ends, even if it returns. The end of any other unit does not end it.
    pub fn builder(self, builder: Builder) -> Supervisor {
        Supervisor { builder, ..self }
    }

    /// It gives up after more than `restarts` restarts within `period`: it ends all children, and then itself with the
    /// reason [`Shutdown`](ExitReason::Shutdown).
    pub fn intensity(self, restarts: usize, period: Duration) -> Supervisor {
        Supervisor {
            intensity: (restarts, period),
            ..self
        }
    }

    /// It has at most `limit` children; to start a further one is an error.
    pub fn limit(self, limit: usize) -> Supervisor {
        Supervisor { limit, ..self }
    }

    /// Adds a child behind the others.
    pub fn child(mut self, child: ChildSpec) -> Supervisor {
        self.children.push(child);
        self
    }

    /// Starts the supervisor and its children, in order; returns when all of them run.
    ///
    /// # Errors
    /// The first child that does not start. Those before it are ended, and the supervisor is.
    pub async fn start(self) -> Result<SupervisorPid, StartError> {
        let (reply, answer) = answer(None);
        let pid = self.spawn(move |started| drop(reply.send(started)))?;
        match answer.await {
            Ok(started) => started.map(|()| pid),
            Err(error) => Err(ended(error)),
        }
    }

    /// Spawns the process, which calls `tell` when the children run, or one does not start.
    fn spawn(
        self,
        tell: impl FnOnce(Result<(), StartError>) + Send + 'static,
    ) -> Result<SupervisorPid, SpawnError> {
        let builder = self.builder.clone();
        let parent = Unit::current().as_ref().map(ProcessId::of);
        let process = builder.spawn(move |inbox| self.run(parent, inbox, tell))?;
        Ok(SupervisorPid(process.into_pid()))
    }

    async fn run(
        self,
        parent: Option<ProcessId>,
        mut inbox: Inbox<Message>,
        tell: impl FnOnce(Result<(), StartError>),
    ) {
        inbox.trap_exits(Message::Exit);
        let mut children = Children::new(self.strategy, self.intensity);
        for child in self.children {
            let started = match children.len() < self.limit {
                true => children.add(&mut inbox, child).await,
                false => Err(StartError::TooManyChildren { limit: self.limit }),
            };
            if let Err(error) = started {
                children.stop_all().await;
                tell(Err(error));
                exit(ExitReason::Shutdown);
            }
        }
        tell(Ok(()));
        let reason = supervise(&mut inbox, &mut children, self.limit, parent).await;
        children.stop_all().await;
        exit(reason)
    }
}

impl ChildSpec {
    /// A child that is a supervisor itself, which `make` describes for each start. It has as much time as it needs, to
    /// start and to end.
    pub fn supervisor(
        id: impl Into<Cow<'static, str>>,
        make: impl FnMut() -> Supervisor + Send + 'static,
    ) -> ChildSpec {
        let mut make = make;
        let start = ChildSpec::new(id, move |starting| {
            let ready = starting.ready();
            let supervisor = make();
            let builder = supervisor.builder.clone().link();
            supervisor.builder(builder).spawn(move |started| {
                if started.is_ok() {
                    ready.say();
                }
            })
        });
        start
            .ready_within(Duration::MAX)
            .shutdown(Shutdown::Infinity)
    }
}

/// Serves until the supervisor is to end; returns the reason.
async fn supervise(
    inbox: &mut Inbox<Message>,
    children: &mut Children,
    limit: usize,
    parent: Option<ProcessId>,
) -> ExitReason {
    loop {
        if children.has_due() {
            if children.start_due(inbox).await.is_err() {
                return ExitReason::Shutdown;
            }
            // A child that fails again and again must not keep the supervisor from its messages.
            yield_now().await;
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
        let Some(message) = message else { continue };
        let ended = match message {
            Message::Exit(exit) => match exit.from.filter(|_| exit.by_link) {
                Some(unit) => match children.ended(unit, &exit.reason).await {
                    Ok(false) if tells_to_end(&exit, parent) => return exit.reason,
                    ended => ended,
                },
                None if tells_to_end(&exit, parent) => return exit.reason,
                None => Ok(false),
            },
            Message::Ended(unit, reason) => children.ended(unit, &reason).await,
            Message::Stop => return ExitReason::Shutdown,
            _ => {
                request(message, inbox, children, limit).await;
                continue;
            }
        };
        if let Err(GaveUp) = ended {
            return ExitReason::Shutdown;
        }
    }
}

/// Whether the exit signal of a unit that is no child ends the supervisor.
fn tells_to_end(exit: &Exit, parent: Option<ProcessId>) -> bool {
    let of_parent = parent.is_some() && exit.from == parent;
    of_parent || (!exit.by_link && exit.reason == ExitReason::Shutdown)
}

async fn request(
    message: Message,
    inbox: &mut Inbox<Message>,
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
            Some(_) => (reply, Err(StartError::Running(id))),
            None => (reply, Err(not_found(&id))),
        },
        Message::Delete(id, reply) => match children.find(&id) {
            Some((place, Activity::Idle)) => {
                children.remove(place);
                (reply, Ok(()))
            }
            Some(_) => (reply, Err(StartError::Running(id))),
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
    };
    let _unheard = reply.send(result);
}

fn ended(error: CallError) -> StartError {
    match error {
        CallError::Died(reason) => StartError::Ended(reason),
        _ => StartError::Ended(ExitReason::NoProcess),
    }
}

impl SupervisorPid {
    /// Starts one more child, behind the others.
    ///
    /// # Errors
    /// If it does not start, or there is one with its id, or the supervisor has ended.
    pub async fn start_child(&self, child: ChildSpec) -> Result<(), StartError> {
        self.ask(|reply| Message::Start(child, reply)).await
    }

    /// Ends a child and waits for that. The end is no reason to start it again, but the strategies
    /// [`OneForAll`](Strategy::OneForAll) and [`RestForOne`](Strategy::RestForOne) do when another child ends, as in OTP.
    /// The supervisor keeps its spec, unless it is temporary. If the child is killed and does not wait, this takes until it
    /// does, and the supervisor does nothing else.
    ///
    /// # Errors
    /// If there is no such child, or the supervisor has ended.
    pub async fn terminate_child(&self, id: &str) -> Result<(), StartError> {
        self.ask(|reply| Message::Terminate(id.to_owned(), reply))
            .await
    }

    /// Starts a child that was terminated, or has ended and was not started again.
    ///
    /// # Errors
    /// If there is no such child, or it runs, or does not start, or the supervisor has ended.
    pub async fn restart_child(&self, id: &str) -> Result<(), StartError> {
        self.ask(|reply| Message::Restart(id.to_owned(), reply))
            .await
    }

    /// Forgets a child that does not run.
    ///
    /// # Errors
    /// If there is no such child, or it runs, or the supervisor has ended.
    pub async fn delete_child(&self, id: &str) -> Result<(), StartError> {
        self.ask(|reply| Message::Delete(id.to_owned(), reply))
            .await
    }

    /// The children, in order.
    ///
    /// # Errors
    /// If the supervisor has ended.
    pub async fn children(&self) -> Result<Vec<ChildState>, StartError> {
        self.0.call(Message::Children).await.map_err(ended)
    }

    /// Ends the supervisor, after its children, and waits for that. Anyone may call it, also a child, which then does not
    /// return from this call.
    pub async fn stop(&self) {
        let down = monitor(&self.0);
        self.0.send(Message::Stop);
        down.await;
    }

    /// The supervisor's number.
    pub fn id(&self) -> ProcessId {
        self.0.id()
    }

    async fn ask(
        &self,
        request: impl FnOnce(Reply<Result<(), StartError>>) -> Message,
    ) -> Result<(), StartError> {
        match self.0.call(request).await {
            Ok(result) => result,
            Err(error) => Err(ended(error)),
        }
    }
}

impl AsUnit for SupervisorPid {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}
