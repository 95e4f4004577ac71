//! Servers: processes with a state that answer typed requests, as Erlang's `gen_server`.
//!
//! A server is a type with a state. For each kind of request it implements [`Answer`], for each kind of cast
//! [`Accept`]; so no enum of messages is needed, and a request that a server does not answer does not compile. All else
//! that comes to it, such as notices of monitors and messages of timers, is an [info](Server::info).
//!
//! A request is a call (`address.rs`), which the loop here receives (`serve`, `receive`) and `message.rs` answers
//! (`run`), by the server's own function, under the deadline of the caller.
//!
//! Steps of a server: [`Server::begin`], then for each message one of its functions, whose [`Step`] says what is next,
//! and at last [`Server::end`]. They run in the server's process, one at a time. A panic in one of them ends the
//! process as any panic does: then `end` is not called, because the state may be half changed.

pub(crate) mod address;
pub(crate) mod bounded;
mod message;

use std::{fmt, time::Duration};

use message::Work;
use weald_kernel::{AsUnit, now, yield_now};

use crate::{
    call::Reply,
    exit::ExitReason,
    kinds::any_inbox::AnyInbox,
    signal::{
        link::exit,
        monitor::{Down, MonitorRef},
        signals::ProcessId,
        trap::Exit,
    },
    supervisor::{error::ChildFault, spec::Ready},
    timer::Timer,
};

/// What a server does after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits for the next message.
    Receive,
    /// It waits for the next message, and calls [`Server::timed_out`] if none comes within this time. A
    /// [read of its state](crate::ServerRef::state) is not a message.
    ReceiveWithin(Duration),
    /// It calls [`Server::proceed`] before it takes any message. That is for work that should not delay the last
    /// answer. A server that returns this for ever takes no message, no exit signal and no
    /// [stop](crate::ServerRef::stop); only a kill ends it.
    Continue,
    /// It calls [`Server::end`], and ends for this reason.
    Stop(ExitReason),
}

/// A process with a state, which answers requests; the head of this module says how. The functions may wait.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{Accept, Answer, Builder, Reply, Server, ServerRef, ServerScope, Step};
///
/// /// A counter that answers how far it is.
/// struct Counter(u64);
///
/// struct Add(u64);
/// struct Total;
///
/// impl Server for Counter {
///     type Info = ();
/// }
///
/// impl Accept<Add> for Counter {
///     async fn accept(&mut self, cast: Add, _: &mut ServerScope<Counter>) -> Step {
///         self.0 += cast.0;
///         Step::Receive
///     }
/// }
///
/// impl Answer<Total> for Counter {
///     type Value = u64;
///
///     async fn answer(&mut self, _: Total, reply: Reply<u64>, _: &mut ServerScope<Counter>) -> Step {
///         let _unheard = reply.send(self.0);
///         Step::Receive
///     }
/// }
///
/// let counter = ServerRef::start(Builder::new(), Counter(40))?;
/// counter.cast(Add(2));
/// assert_eq!(counter.request(Total).await, Ok(42));
/// assert_eq!(counter.state(|counter| counter.0).await, Ok(42));
/// counter.stop().await;
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
pub trait Server: Sized + Send + 'static {
    /// The messages that are no requests or casts: notices, messages of timers.
    type Info: Send + 'static;

    /// The first step. A server that is a [child](crate::ChildSpec::server) is ready when it returns. If it returns
    /// [`Step::Stop`], the child has failed to start for that reason, after its [end](Server::end).
    fn begin(&mut self, scope: &mut ServerScope<Self>) -> impl Future<Output = Step> + Send {
        let _unused = scope;
        async { Step::Receive }
    }

    /// After a [`Step::Continue`].
    fn proceed(&mut self, scope: &mut ServerScope<Self>) -> impl Future<Output = Step> + Send {
        let _unused = scope;
        async { Step::Receive }
    }

    /// After a [`Step::ReceiveWithin`], if no message came.
    fn timed_out(&mut self, scope: &mut ServerScope<Self>) -> impl Future<Output = Step> + Send {
        let _unused = scope;
        async { Step::Receive }
    }

    /// An info came.
    fn info(
        &mut self,
        info: Self::Info,
        scope: &mut ServerScope<Self>,
    ) -> impl Future<Output = Step> + Send {
        let _unused = (info, scope);
        async { Step::Receive }
    }

    /// An exit signal came: servers trap exits. By default the server stops for the same reason, except for
    /// [`Normal`](ExitReason::Normal). It is not called when the unit that spawned the server, linked, ends: then the
    /// server stops, whatever the reason.
    fn exit(
        &mut self,
        exit: Exit,
        scope: &mut ServerScope<Self>,
    ) -> impl Future<Output = Step> + Send {
        let _unused = scope;
        async {
            match exit.reason {
                ExitReason::Normal => Step::Receive,
                reason => Step::Stop(reason),
            }
        }
    }

    /// The last step, unless the server panics or is killed. Nobody is told of its end before this returns.
    fn end(&mut self, reason: &ExitReason) -> impl Future<Output = ()> + Send {
        let _unused = reason;
        async {}
    }
}

/// A server that answers requests `R`.
///
/// ```
/// use weald::process::{Answer, Builder, Reply, Server, ServerRef, ServerScope, Step};
///
/// struct Adder(u64);
/// struct Add(u64);
///
/// impl Server for Adder {
///     type Info = ();
/// }
///
/// impl Answer<Add> for Adder {
///     type Value = u64;
///
///     async fn answer(&mut self, add: Add, reply: Reply<u64>, _: &mut ServerScope<Adder>) -> Step {
///         self.0 += add.0;
///         let _unheard = reply.send(self.0);
///         Step::Receive
///     }
/// }
///
/// weald::block_on(async {
///     let adder = ServerRef::start(Builder::new(), Adder(40)).unwrap();
///     assert_eq!(adder.request(Add(2)).await, Ok(42));
/// });
/// ```
pub trait Answer<R>: Server {
    /// What it answers.
    type Value: Send + 'static;

    /// A request came. The reply may be kept, or passed on, and its holder answers. Calls that are made here have the
    /// deadline of the request.
    fn answer(
        &mut self,
        request: R,
        reply: Reply<Self::Value>,
        scope: &mut ServerScope<Self>,
    ) -> impl Future<Output = Step> + Send;
}

/// A server that takes casts `C`: requests without an answer.
pub trait Accept<C>: Server {
    /// A cast came.
    fn accept(
        &mut self,
        cast: C,
        scope: &mut ServerScope<Self>,
    ) -> impl Future<Output = Step> + Send;
}

/// What a server receives. It is made by [`ServerRef`](crate::ServerRef); a [`Name`](crate::Name) of a server has it as
/// its message.
pub struct ServerMessage<S: Server>(Kind<S>);

enum Kind<S: Server> {
    Info(S::Info),
    Exit(Exit),
    Work(Box<dyn Work<S>>),
    Stop,
}

/// What a server's functions may use of its process.
#[derive(Debug)]
pub struct ServerScope<S: Server> {
    inbox: AnyInbox<ServerMessage<S>>,
    /// The unit that the server ends with, if it was spawned linked.
    parent: Option<ProcessId>,
}

impl<S: Server> ServerScope<S> {
    /// Sends an info to this server once `duration` has passed; see [`Pid::send_after`](crate::Pid::send_after).
    #[track_caller]
    pub fn info_after(&self, duration: Duration, info: S::Info) -> Timer {
        self.inbox
            .send_after(duration, ServerMessage(Kind::Info(info)))
    }

    /// Watches `unit`: its end comes as the info that `convert` makes; see [`Inbox::monitor`](crate::Inbox::monitor).
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> S::Info + Send + 'static,
    ) -> MonitorRef {
        self.inbox
            .monitor(unit, |down| ServerMessage(Kind::Info(convert(down))))
    }

    /// Ends a monitor; see [`Inbox::demonitor`](crate::Inbox::demonitor).
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        self.inbox.demonitor(monitor)
    }
}

/// The life of a server. It traps exits before it can run, so that no exit signal comes too early.
pub(crate) fn serve<S: Server>(
    server: S,
    mut inbox: AnyInbox<ServerMessage<S>>,
    ready: Option<Ready>,
    parent: Option<ProcessId>,
) -> impl Future<Output = ()> + Send {
    inbox.trap_exits(|exit| ServerMessage(Kind::Exit(exit)));
    live(server, ServerScope { inbox, parent }, ready)
}

/// The inbox is dropped before the server.
async fn live<S: Server>(mut server: S, mut scope: ServerScope<S>, ready: Option<Ready>) {
    let mut step = server.begin(&mut scope).await;
    let refused = match step {
        Step::Stop(_) => ready,
        _ => {
            ready.into_iter().for_each(Ready::say);
            None
        }
    };
    let reason = loop {
        step = match step {
            Step::Receive => receive(&mut server, &mut scope, None).await,
            Step::ReceiveWithin(time) => receive(&mut server, &mut scope, Some(time)).await,
            Step::Continue => {
                // A server that continues for ever must not keep its worker for itself.
                yield_now().await;
                server.proceed(&mut scope).await
            }
            Step::Stop(reason) => break reason,
        };
    };
    server.end(&reason).await;
    if let Some(ready) = refused {
        ready.fail(ChildFault::Ended(reason.clone()));
    }
    if reason != ExitReason::Normal {
        exit(reason);
    }
}

/// Takes messages until one says what is next.
async fn receive<S: Server>(
    server: &mut S,
    scope: &mut ServerScope<S>,
    within: Option<Duration>,
) -> Step {
    let deadline = within.and_then(|within| now().checked_add(within));
    loop {
        let message = match deadline {
            Some(deadline) => scope.inbox.receive_until(deadline).await,
            None => Some(scope.inbox.receive().await),
        };
        let step = match message.map(|message| message.0) {
            Some(Kind::Work(work)) => match work.run(server, scope).await {
                Some(step) => step,
                None => continue,
            },
            Some(Kind::Info(info)) => server.info(info, scope).await,
            Some(Kind::Exit(exit)) if exit.is_end_of(scope.parent) => Step::Stop(exit.reason),
            Some(Kind::Exit(exit)) => server.exit(exit, scope).await,
            Some(Kind::Stop) => Step::Stop(ExitReason::Normal),
            None => server.timed_out(scope).await,
        };
        return step;
    }
}

impl<S: Server> fmt::Debug for ServerMessage<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerMessage").finish_non_exhaustive()
    }
}
