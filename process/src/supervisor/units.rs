//! The units of a supervisor's children: how one is started, and how one is ended.
//!
//! This is code of the supervisor's process, for `children.rs` alone.

use std::{collections::BTreeMap, pin::Pin, task::Poll};

use weald_kernel::{Mark, Unit, catch_panic_message, now, timeout};

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
    /// Behind the messages that were looked at while the supervisor waited for a child. Those before it were handled:
    /// an order to end is taken when it is seen, and the end of a child is told only after its start.
    seen: Mark,
    /// Why the supervisor must end: it was told to while it waited for a child, or the runtime takes no new jobs. It
    /// starts no child from then on.
    told_to_end: Option<ExitReason>,
}

impl Units {
    pub(crate) fn new(parent: Option<ProcessId>) -> Units {
        Units {
            by_unit: BTreeMap::new(),
            parent,
            seen: Mark::oldest(),
            told_to_end: None,
        }
    }

    /// Why the supervisor must end, if it was told to while it waited for a child.
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
        let started = catch_panic_message(|| spec.start.value_mut()(&mut starting));
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

    /// No child starts any more: the supervisor ends, unless some run, which may end by themselves.
    pub(crate) fn end_if_none_runs(&mut self) {
        if self.by_unit.is_empty() {
            self.told_to_end.get_or_insert(ExitReason::Shutdown);
        }
    }

    /// Waits until a child says that it is ready, or ends, or the supervisor is told to end: a child that is never
    /// ready must not keep the supervisor. (The child may have passed the right to say so to a unit that lives longer.)
    async fn readiness(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
        ready: Answered<Readiness>,
        child: ProcessId,
    ) -> Readiness {
        let parent = self.parent;
        let is_news = |SupervisorMessage(message): &SupervisorMessage| {
            let is_child = ended(message).is_some_and(|(unit, _)| unit == child);
            is_child || reason_to_end(message, parent).is_some()
        };
        let mut ready = ready;
        let mut news = inbox.receive_since(&mut self.seen, is_news);
        let readiness = std::future::poll_fn(|cx| {
            if let Poll::Ready(word) = Pin::new(&mut ready).poll(cx) {
                return Poll::Ready(Ok(word));
            }
            Pin::new(&mut news).poll(cx).map(Err)
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

/// The fault of a child that has not said that it is ready.
fn not_ready(error: CallError) -> ChildFault {
    match error {
        CallError::TimedOut => ChildFault::Late,
        CallError::NoReply | CallError::Full | CallError::Itself => ChildFault::ReadyDropped,
        CallError::Died(reason) => ChildFault::Ended(reason),
    }
}

/// A child that has refused to start, or is ended before it is ready, gets its time to end. All others are killed.
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

/// If the supervisor is killed while it ends a unit, this kills the unit, which no longer has a link that would end it.
struct KillAtDrop<'a>(&'a Unit);

impl Drop for KillAtDrop<'_> {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Ends a unit and waits for its end.
pub(crate) async fn stop(unit: &Unit, shutdown: Shutdown) {
    // A child that ends in this way is a supervisor: it ends its own children, and then itself.
    let _kill = (shutdown != Shutdown::Infinity).then(|| KillAtDrop(unit));
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

#[cfg(test)]
mod tests {
    use weald_kernel::{Runtime, SpawnError, yield_now};

    use super::*;
    use crate::spawn::{spawn, spawn_link};

    fn spec() -> ChildSpec {
        let spec = ChildSpec::new("child", |starting| {
            let ready = starting.ready();
            let child = spawn_link(async |_: Inbox<()>| {
                // So that the supervisor looks at its messages before the child is ready.
                yield_now().await;
                ready.say();
                std::future::pending::<()>().await;
            })?;
            Ok::<_, SpawnError>(child.into_pid())
        });
        spec.ready_within(std::time::Duration::MAX)
    }

    #[test]
    fn what_waits_for_a_supervisor_is_looked_at_once_however_many_children_start() {
        const MESSAGES: usize = 10;
        let looks = Runtime::test(1).block_on(async {
            let supervisor = spawn(async |mut inbox: Inbox<SupervisorMessage>| {
                let (own, mut units) = (inbox.pid(), Units::new(None));
                let mut looks = Vec::new();
                for _ in 0..3 {
                    for _ in 0..MESSAGES {
                        let no_news = Message::Ended(own.id(), ExitReason::Normal);
                        own.send(SupervisorMessage(no_news));
                    }
                    let before = inbox.len();
                    let launched = units.launch(&mut inbox, &mut spec()).await;
                    assert!(launched.is_ok_and(|unit| !unit.has_ended()));
                    let mut left = 0;
                    let none = inbox.take_since(&mut units.seen, |_| {
                        left += 1;
                        false
                    });
                    assert!(none.is_none());
                    looks.push((before, left));
                }
                looks
            });
            supervisor.unwrap().await
        });
        let seen = [1, 2, 3].map(|round| (round * MESSAGES, 0));
        assert_eq!(looks.unwrap(), seen);
    }
}
