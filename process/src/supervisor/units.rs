//! The units of a supervisor's children: how one is started, and how one is ended.
//!
//! This is code of the supervisor's process, for `children.rs` alone.

use std::collections::BTreeMap;

use weald_kernel::{Unit, catch_panic_message, now, timeout};

use crate::{
    call::{CallError, answer},
    exit::ExitReason,
    inbox::Inbox,
    signal::{
        link::{send_exit, unlink},
        monitor::monitor_unit,
        signals::{ProcessId, Signals},
    },
    supervisor::{
        error::{ChildFault, Failure},
        spec::{ChildSpec, Message, Shutdown, Starting},
    },
};

/// Where a child stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) u64);

/// The units of the children.
#[derive(Default)]
pub(crate) struct Units {
    /// Of those that run.
    pub(crate) by_unit: BTreeMap<ProcessId, Place>,
    /// Of the child that is not ready yet: a supervisor that gives the start up ends it, too.
    pub(crate) starting: Option<Unit>,
}

impl Units {
    /// Starts a child that does not run.
    pub(crate) async fn launch(
        &mut self,
        inbox: &mut Inbox<Message>,
        spec: &mut ChildSpec,
    ) -> Result<Unit, ChildFault> {
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
            self.starting = Some(unit.clone());
            let fault = match is_ready_taken {
                true => ready.await.unwrap_or_else(|error| Err(not_ready(error))),
                false => Err(ChildFault::ReadyNotTaken),
            };
            if let Err(fault) = fault {
                stop(&unit, how_to_end(&fault, spec.shutdown)).await;
                self.starting = None;
                return Err(fault);
            }
            self.starting = None;
        }
        Ok(unit)
    }
}

/// What is wrong with a child that has not said so.
fn not_ready(error: CallError) -> ChildFault {
    match error {
        CallError::TimedOut => ChildFault::Late,
        CallError::NoReply | CallError::Full => ChildFault::ReadyDropped,
        CallError::Died(reason) => ChildFault::Ended(reason),
    }
}

/// A child that has refused to start has its time to end. All others are killed.
fn how_to_end(fault: &ChildFault, shutdown: Shutdown) -> Shutdown {
    match fault {
        ChildFault::Ended(_) | ChildFault::Failed(_) => shutdown,
        _ => Shutdown::Kill,
    }
}

/// Links a unit. If it has ended, its end is told by a message, as a link would; the exit signal of a unit that was
/// linked when it was spawned may have come before.
fn adopt(inbox: &mut Inbox<Message>, unit: &Unit) {
    let own = Signals::current("a supervisor");
    let is_linked = Signals::of(unit).is_some_and(|child| Signals::link(&own, &child));
    if !is_linked {
        let ended = Message::Ended(ProcessId::of(unit), Signals::end_of(unit));
        inbox.pid().send(ended);
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
