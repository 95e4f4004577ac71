//! State machines: processes that handle an event according to their state, as Erlang's `gen_statem`.
//!
//! A machine handles one event at a time; the [`Transition`] that it returns says which state comes next. Invariants:
//! - An event that is postponed is handled again after the next change of state, before all later ones, in its order.
//! - The time limit of a state begins and ends with the state; staying does not begin it anew. When the time is over,
//!   that is handled before any further event.
//! - Notices of monitors and messages of timers come as events, which the machine's [scope](MachineScope) makes.

pub(crate) mod address;
pub(crate) mod bounded;
mod message;

use std::{collections::VecDeque, fmt::Debug, mem, time::Duration};

pub use message::MachineMessage;
use message::{Incoming, Pending};
use weald_kernel::{AsUnit, now, wanted_by};

use crate::{
    exit::ExitReason,
    kinds::any_inbox::AnyInbox,
    signal::{
        link::exit,
        monitor::{Down, MonitorRef},
        signals::ProcessId,
        trap::Exit,
    },
    supervisor::spec::Ready,
    timer::Timer,
};

/// What follows an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition<S, E> {
    /// The machine stays in its state; [`Go`](Transition::Go) to the state that it is in does the same.
    Stay,
    /// It goes to this state.
    Go(S),
    /// It stays, and handles the event again after the next change of state.
    Postpone(E),
    /// It ends for this reason.
    Stop(ExitReason),
}

/// A process with a state, in the sense of automata; the head of this module says how.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use std::time::Duration;
/// use weald::process::{Builder, Machine, MachineRef, MachineScope, Transition};
///
/// /// A door with a lock, which closes itself.
/// struct Door { code: u32 }
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum State { Locked, Open }
///
/// enum Event { Code(u32) }
///
/// impl Machine for Door {
///     type State = State;
///     type Event = Event;
///
///     async fn begin(&mut self, _: &mut MachineScope<Door>) -> State {
///         State::Locked
///     }
///
///     async fn handle(
///         &mut self,
///         state: &State,
///         Event::Code(code): Event,
///         _: &mut MachineScope<Door>,
///     ) -> Transition<State, Event> {
///         match state {
///             State::Locked if code == self.code => Transition::Go(State::Open),
///             _ => Transition::Stay,
///         }
///     }
///
///     fn limit(&self, state: &State) -> Option<Duration> {
///         (*state == State::Open).then_some(Duration::from_secs(10))
///     }
///
///     async fn timed_out(
///         &mut self,
///         _: &State,
///         _: &mut MachineScope<Door>,
///     ) -> Transition<State, Event> {
///         Transition::Go(State::Locked)
///     }
/// }
///
/// let door = MachineRef::start(Builder::new(), Door { code: 1234 })?;
/// door.send(Event::Code(1234));
/// assert_eq!(door.state().await, Ok(State::Open));
/// weald::sleep(Duration::from_secs(11)).await;
/// assert_eq!(door.state().await, Ok(State::Locked));
/// door.stop().await;
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
pub trait Machine: Sized + Send + 'static {
    /// The states.
    type State: Clone + PartialEq + Debug + Send + Sync + 'static;
    /// The events. One that wants an answer has a [`Reply`](crate::Reply).
    type Event: Send + 'static;

    /// The first state. A machine that is a [child](crate::ChildSpec::machine) is ready when this returns. To refuse,
    /// it calls [`exit`](crate::exit()): then the child has failed to start for that reason, and [`end`](Machine::end)
    /// is not called.
    fn begin(&mut self, scope: &mut MachineScope<Self>)
    -> impl Future<Output = Self::State> + Send;

    /// The machine has come to `state`; also to the first one.
    fn enter(
        &mut self,
        state: &Self::State,
        scope: &mut MachineScope<Self>,
    ) -> impl Future<Output = ()> + Send {
        let _unused = (state, scope);
        async {}
    }

    /// An event came, or was postponed in another state. If it came by a [call](crate::MachineRef::call), calls that
    /// are made here have the deadline of that call.
    fn handle(
        &mut self,
        state: &Self::State,
        event: Self::Event,
        scope: &mut MachineScope<Self>,
    ) -> impl Future<Output = Transition<Self::State, Self::Event>> + Send;

    /// How long the machine may be in `state` until [`timed_out`](Machine::timed_out) is called.
    fn limit(&self, state: &Self::State) -> Option<Duration> {
        let _unused = state;
        None
    }

    /// The time of `state` is over. If the machine stays, its time is not limited any longer.
    fn timed_out(
        &mut self,
        state: &Self::State,
        scope: &mut MachineScope<Self>,
    ) -> impl Future<Output = Transition<Self::State, Self::Event>> + Send {
        let _unused = (state, scope);
        async { Transition::Stay }
    }

    /// An exit signal came: machines trap exits. By default the machine stops for the same reason, except for
    /// [`Normal`](ExitReason::Normal). It is not called when the unit that spawned the machine, linked, ends: then the
    /// machine stops, whatever the reason.
    fn exit(
        &mut self,
        state: &Self::State,
        exit: Exit,
        scope: &mut MachineScope<Self>,
    ) -> impl Future<Output = Transition<Self::State, Self::Event>> + Send {
        let _unused = (state, scope);
        async {
            match exit.reason {
                ExitReason::Normal => Transition::Stay,
                reason => Transition::Stop(reason),
            }
        }
    }

    /// The machine ends, unless it panics or is killed.
    fn end(&mut self, reason: &ExitReason) -> impl Future<Output = ()> + Send {
        let _unused = reason;
        async {}
    }
}

/// What a machine's functions may use of its process.
#[derive(Debug)]
pub struct MachineScope<M: Machine> {
    inbox: AnyInbox<MachineMessage<M>>,
    /// The unit that the machine ends with, if it was spawned linked.
    parent: Option<ProcessId>,
}

impl<M: Machine> MachineScope<M> {
    /// Sends an event to this machine once `duration` has passed; see [`Pid::send_after`](crate::Pid::send_after).
    #[track_caller]
    pub fn send_after(&self, duration: Duration, event: M::Event) -> Timer {
        self.inbox
            .send_after(duration, MachineMessage::event(event))
    }

    /// Watches `unit`: its end comes as the event that `convert` makes; see [`Inbox::monitor`](crate::Inbox::monitor).
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M::Event + Send + 'static,
    ) -> MonitorRef {
        self.inbox
            .monitor(unit, |down| MachineMessage::event(convert(down)))
    }

    /// Ends a monitor; see [`Inbox::demonitor`](crate::Inbox::demonitor).
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        self.inbox.demonitor(monitor)
    }
}

/// The life of a machine. It traps exits before it can run, so that no exit signal comes too early.
pub(crate) fn run<M: Machine>(
    machine: M,
    mut inbox: AnyInbox<MachineMessage<M>>,
    ready: Option<Ready>,
    parent: Option<ProcessId>,
) -> impl Future<Output = ()> + Send {
    inbox.trap_exits(|exit| MachineMessage(Incoming::Exit(exit)));
    live(machine, MachineScope { inbox, parent }, ready)
}

/// The inbox is dropped before the machine.
async fn live<M: Machine>(mut machine: M, mut scope: MachineScope<M>, ready: Option<Ready>) {
    let mut state = machine.begin(&mut scope).await;
    if let Some(ready) = ready {
        ready.say();
    }
    let mut postponed = VecDeque::new();
    let reason = loop {
        machine.enter(&state, &mut scope).await;
        match until_change(&mut machine, &mut scope, &state, &mut postponed).await {
            Ok(next) => state = next,
            Err(reason) => break reason,
        }
    };
    machine.end(&reason).await;
    if reason != ExitReason::Normal {
        exit(reason);
    }
}

/// Handles events in one state. Returns the next state, or the reason of the end.
async fn until_change<M: Machine>(
    machine: &mut M,
    scope: &mut MachineScope<M>,
    state: &M::State,
    postponed: &mut VecDeque<Pending<M>>,
) -> Result<M::State, ExitReason> {
    let limit = machine.limit(state);
    let mut deadline = limit.and_then(|limit| now().checked_add(limit));
    let mut again = mem::take(postponed);
    loop {
        // Until when the caller of this event waits.
        let mut wanted_until = None;
        // However many events there are, the time is over when it is over.
        let is_over = deadline.is_some_and(|deadline| deadline <= now());
        let incoming = match again.pop_front() {
            Some(pending) if is_over => {
                again.push_front(pending);
                None
            }
            Some(pending) => Some(Incoming::Event(pending)),
            None if is_over => None,
            None => {
                let message = match deadline {
                    Some(deadline) => scope.inbox.receive_until(deadline).await,
                    None => Some(scope.inbox.receive().await),
                };
                message.map(|message| message.0)
            }
        };
        let transition = match incoming {
            Some(Incoming::Event(pending)) => {
                wanted_until = pending.deadline;
                let handled = machine.handle(state, pending.event, scope);
                wanted_by(wanted_until, handled).await
            }
            Some(Incoming::State(reply)) => {
                let _unheard = reply.send(state.clone());
                Transition::Stay
            }
            Some(Incoming::Exit(exit)) if exit.is_end_of(scope.parent) => {
                Transition::Stop(exit.reason)
            }
            Some(Incoming::Exit(exit)) => machine.exit(state, exit, scope).await,
            Some(Incoming::Stop) => Transition::Stop(ExitReason::Normal),
            None => {
                deadline = None;
                machine.timed_out(state, scope).await
            }
        };
        match transition {
            Transition::Go(next) if next != *state => {
                // Events that were not handled again yet are younger than those that were postponed
                // once more.
                postponed.append(&mut again);
                return Ok(next);
            }
            Transition::Stay | Transition::Go(_) => {}
            Transition::Postpone(event) => postponed.push_back(Pending {
                event,
                deadline: wanted_until,
            }),
            Transition::Stop(reason) => return Err(reason),
        }
    }
}
