//! The units of a supervisor's children: how one is started, and how one is ended.
//!
//! This is code of the supervisor's process, for `children.rs` alone.

use std::{
    collections::BTreeMap,
    pin::{Pin, pin},
    task::Poll,
};

use weald_kernel::{Unit, catch_panic_message, now, timeout};

use crate::{
    call::{Answered, CallError, answer},
    exit::ExitReason,
    inbox::Inbox,
    signal::{
        link::{send_exit, unlink},
        monitor::monitor_unit,
        signals::{ProcessId, Signals},
        trap::Exit,
    },
    supervisor::{
        error::{ChildFault, Failure},
        spec::{ChildSpec, Message, Readiness, Shutdown, Starting, SupervisorMessage},
    },
};

/// Where a child stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) u64);

/// The units of the children.
pub(crate) struct Units {
    /// Of those that run.
    pub(crate) by_unit: BTreeMap<ProcessId, Place>,
    /// The unit that spawned the supervisor, if a unit did.
    parent: Option<ProcessId>,
    /// Why the supervisor is to end, if it was told so while it waited for a child. It starts none from then on.
    told_to_end: Option<ExitReason>,
}

impl Units {
    pub(crate) fn new(parent: Option<ProcessId>) -> Units {
        Units {
            by_unit: BTreeMap::new(),
            parent,
            told_to_end: None,
        }
    }

    /// Why the supervisor is to end, if it was told so while it waited for a child.
    pub(crate) fn told_to_end(&self) -> Option<&ExitReason> {
        self.told_to_end.as_ref()
    }

    /// Starts a child that does not run.
    pub(crate) async fn launch(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
        spec: &mut ChildSpec,
    ) -> Result<Unit, ChildFault> {
        if self.told_to_end.is_some() {
            return Err(ChildFault::Interrupted);
        }
        let within = spec.ready_within;
        let (reply, ready) = answer(within.and_then(|within| now().checked_add(within)));
        let mut starting = Starting {
            ready: within.map(|_| reply),
        };
        let started = catch_panic_message(|| (spec.start)(&mut starting));
        let is_ready_taken = starting.ready.take().is_none();
        let unit = match started {
            Ok(Ok(unit)) => unit,
            Ok(Err(error)) => return Err(ChildFault::Failed(Failure::new(error))),
            Err(message) => return Err(ChildFault::Panicked(message)),
        };
        let number = ProcessId::of(&unit);
        if number == inbox.pid().id() {
            return Err(ChildFault::Itself);
        }
        if self.by_unit.contains_key(&number) {
            return Err(ChildFault::SharedUnit);
        }
        // The supervisor cannot end before this: it has not waited.
        adopt(inbox, &unit);
        if within.is_some() {
            let readiness = match is_ready_taken {
                true => self.readiness(inbox, ready, number).await,
                false => Err(ChildFault::ReadyNotTaken),
            };
            if let Err(fault) = readiness {
                stop(&unit, how_to_end(&fault, spec.shutdown)).await;
                return Err(fault);
            }
        }
        Ok(unit)
    }

    /// Waits for a child's word, unless the child ends, or the supervisor is told to end: a child that is never ready must
    /// not keep it. The child may have passed the right to say that it is ready on to somebody who lives longer.
    async fn readiness(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
        ready: Answered<Readiness>,
        child: ProcessId,
    ) -> Readiness {
        let parent = self.parent;
        let news = inbox.receive_if(|SupervisorMessage(message)| {
            let is_child = ended(message).is_some_and(|(unit, _)| unit == child);
            is_child || reason_to_end(message, parent).is_some()
        });
        let (mut ready, mut news) = (ready, pin!(news));
        let readiness = std::future::poll_fn(|cx| {
            if let Poll::Ready(word) = Pin::new(&mut ready).poll(cx) {
                return Poll::Ready(Ok(word));
            }
            news.as_mut().poll(cx).map(Err)
        });
        let news = match readiness.await {
            Ok(word) => return word.unwrap_or_else(|error| Err(not_ready(error))),
            Err(SupervisorMessage(news)) => news,
        };
        match ended(&news) {
            Some((unit, reason)) if unit == child => Err(ChildFault::Ended(reason.clone())),
            _ => {
                self.told_to_end = reason_to_end(&news, parent);
                Err(ChildFault::Interrupted)
            }
        }
    }
}

/// The unit whose end a message tells, and the reason, if it may be a child.
pub(crate) fn ended(message: &Message) -> Option<(ProcessId, &ExitReason)> {
    match message {
        Message::Exit(exit) if exit.by_link => exit.from.map(|unit| (unit, &exit.reason)),
        Message::Ended(unit, reason) => Some((*unit, reason)),
        _ => None,
    }
}

/// Why the supervisor is to end because of this message, if it is.
pub(crate) fn reason_to_end(message: &Message, parent: Option<ProcessId>) -> Option<ExitReason> {
    match message {
        Message::Stop => Some(ExitReason::Shutdown),
        Message::Exit(exit) if tells_to_end(exit, parent) => Some(exit.reason.clone()),
        _ => None,
    }
}

/// Whether the exit signal of a unit that is no child ends the supervisor.
fn tells_to_end(exit: &Exit, parent: Option<ProcessId>) -> bool {
    let of_parent = parent.is_some() && exit.from == parent;
    of_parent || (!exit.by_link && exit.reason == ExitReason::Shutdown)
}

/// What is wrong with a child that has not said so.
fn not_ready(error: CallError) -> ChildFault {
    match error {
        CallError::TimedOut => ChildFault::Late,
        CallError::NoReply | CallError::Full => ChildFault::ReadyDropped,
        CallError::Died(reason) => ChildFault::Ended(reason),
    }
}

/// A child that has refused to start, or is ended before it is ready, has its time to end. All others are killed.
fn how_to_end(fault: &ChildFault, shutdown: Shutdown) -> Shutdown {
    match fault {
        ChildFault::Ended(_) | ChildFault::Failed(_) | ChildFault::Interrupted => shutdown,
        _ => Shutdown::Kill,
    }
}

/// Links a unit. If it has ended, its end is told by a message, as a link would; the exit signal of a unit that was
/// linked when it was spawned may have come before.
fn adopt(inbox: &mut Inbox<SupervisorMessage>, unit: &Unit) {
    let own = Signals::current("a supervisor");
    let is_linked = Signals::of(unit).is_some_and(|child| Signals::link(&own, &child));
    if !is_linked {
        let ended = Message::Ended(ProcessId::of(unit), Signals::end_of(unit));
        inbox.pid().send(SupervisorMessage(ended));
    }
}

/// Ends a unit and waits for its end.
pub(crate) async fn stop(unit: &Unit, shutdown: Shutdown) {
    let mut monitor = monitor_unit(Some(unit));
    unlink(unit);
    match shutdown {
        Shutdown::Kill => unit.kill(),
        Shutdown::After(time) => {
            send_exit(unit, &ExitReason::Shutdown);
            if timeout(time, &mut monitor).await.is_ok() {
                return;
            }
            unit.kill();
        }
        Shutdown::Infinity => send_exit(unit, &ExitReason::Shutdown),
    }
    monitor.await;
}
