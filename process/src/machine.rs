//! State machines: processes whose events mean what their state makes of them, as Erlang's `gen_statem`.
//!
//! A machine handles one event at a time; the [`Transition`] that it returns says which state comes next. Invariants:
//! - An event that is postponed is handled again after the next change of state, before all later ones, in its order.
//! - The time limit of a state begins with the state, and ends with it; to stay does not begin it anew.

use std::{
    collections::VecDeque,
    fmt::{self, Debug},
    mem,
    time::{Duration, Instant},
};

use weald_kernel::{AsUnit, SpawnError, Unit, now};

use crate::{
    call::{Call, Reply},
    exit::ExitReason,
    inbox::Inbox,
    pid::Pid,
    signal::{link::exit, monitor::monitor, trap::Exit},
    spawn::Builder,
};

/// What follows an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition<S, E> {
    /// The machine stays in its state. So it does with [`Go`](Transition::Go) to the same state.
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
/// # weald_kernel::Runtime::test(1).block_on(async {
/// use std::time::Duration;
/// use weald_process::{Builder, Machine, MachineRef, Transition};
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
///     async fn begin(&mut self) -> State {
///         State::Locked
///     }
///
///     async fn handle(&mut self, state: &State, Event::Code(code): Event) -> Transition<State, Event> {
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
///     async fn timed_out(&mut self, _: &State) -> Transition<State, Event> {
///         Transition::Go(State::Locked)
///     }
/// }
///
/// let door = MachineRef::start(Builder::new(), Door { code: 1234 })?;
/// door.send(Event::Code(1234));
/// assert_eq!(door.state().await, Ok(State::Open));
/// weald_kernel::sleep(Duration::from_secs(11)).await;
/// assert_eq!(door.state().await, Ok(State::Locked));
/// door.stop().await;
/// # Ok::<(), weald_kernel::SpawnError>(())
/// # }).unwrap();
/// ```
pub trait Machine: Sized + Send + 'static {
    /// The states.
    type State: Clone + PartialEq + Debug + Send + Sync + 'static;
    /// The events. One that wants an answer has a [`Reply`].
    type Event: Send + 'static;

    /// The first state.
    fn begin(&mut self) -> impl Future<Output = Self::State> + Send;

    /// The machine has come to `state`; also to the first one.
    fn enter(&mut self, state: &Self::State) -> impl Future<Output = ()> + Send {
        let _unused = state;
        async {}
    }

    /// An event came, or was postponed in another state.
    fn handle(
        &mut self,
        state: &Self::State,
        event: Self::Event,
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
    ) -> impl Future<Output = Transition<Self::State, Self::Event>> + Send {
        let _unused = state;
        async { Transition::Stay }
    }

    /// The machine ends, unless it panics or is killed: it was stopped, or an exit signal came whose reason is not
    /// [`Normal`](ExitReason::Normal).
    fn end(&mut self, reason: &ExitReason) -> impl Future<Output = ()> + Send {
        let _unused = reason;
        async {}
    }
}

/// What a machine receives. It is made by [`MachineRef`]; a [`Name`](crate::Name) of a machine has it as its message.
pub struct MachineMessage<M: Machine>(Incoming<M>);

enum Incoming<M: Machine> {
    Event(M::Event),
    Exit(Exit),
    State(Reply<M::State>),
    Stop,
}

/// The address of a state machine.
pub struct MachineRef<M: Machine>(Pid<MachineMessage<M>>);

impl<M: Machine> MachineRef<M> {
    /// Starts a machine.
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start(builder: Builder, machine: M) -> Result<MachineRef<M>, SpawnError> {
        let process = builder.spawn(move |inbox| run(machine, inbox))?;
        Ok(MachineRef(process.into_pid()))
    }

    /// The machine that has this pid, such as one that a [`Name`](crate::Name) leads to.
    pub fn of(pid: Pid<MachineMessage<M>>) -> MachineRef<M> {
        MachineRef(pid)
    }

    /// The pid of its process.
    pub fn pid(&self) -> &Pid<MachineMessage<M>> {
        &self.0
    }

    /// Sends an event. Never waits.
    pub fn send(&self, event: M::Event) {
        self.0.send(MachineMessage(Incoming::Event(event)));
    }

    /// Sends an event that wants an answer, and waits for it; as [`Pid::call`].
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    pub fn call<T, F: FnOnce(Reply<T>) -> M::Event>(
        &self,
        event: F,
    ) -> Call<MachineMessage<M>, T, impl FnOnce(Reply<T>) -> MachineMessage<M> + use<M, T, F>> {
        self.0
            .call(|reply| MachineMessage(Incoming::Event(event(reply))))
    }

    /// The state, in its turn.
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    pub fn state(
        &self,
    ) -> Call<MachineMessage<M>, M::State, impl FnOnce(Reply<M::State>) -> MachineMessage<M> + use<M>>
    {
        self.0.call(|reply| MachineMessage(Incoming::State(reply)))
    }

    /// Stops the machine in its turn, with the reason [`Normal`](ExitReason::Normal), and waits for its end.
    pub async fn stop(&self) {
        let down = monitor(&self.0);
        self.0.send(MachineMessage(Incoming::Stop));
        down.await;
    }
}

/// The life of a machine.
async fn run<M: Machine>(mut machine: M, mut inbox: Inbox<MachineMessage<M>>) {
    inbox.trap_exits(|exit| MachineMessage(Incoming::Exit(exit)));
    let mut state = machine.begin().await;
    let mut postponed = VecDeque::new();
    let reason = loop {
        machine.enter(&state).await;
        match until_change(&mut machine, &mut inbox, &state, &mut postponed).await {
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
    inbox: &mut Inbox<MachineMessage<M>>,
    state: &M::State,
    postponed: &mut VecDeque<M::Event>,
) -> Result<M::State, ExitReason> {
    let limit = machine.limit(state);
    let mut deadline = limit.and_then(|limit| now().checked_add(limit));
    let mut again = mem::take(postponed);
    loop {
        let transition = match again.pop_front() {
            Some(event) => machine.handle(state, event).await,
            None => match receive(inbox, deadline).await {
                Some(Incoming::Event(event)) => machine.handle(state, event).await,
                Some(Incoming::State(reply)) => {
                    let _unheard = reply.send(state.clone());
                    Transition::Stay
                }
                Some(Incoming::Exit(exit)) if exit.reason == ExitReason::Normal => Transition::Stay,
                Some(Incoming::Exit(exit)) => Transition::Stop(exit.reason),
                Some(Incoming::Stop) => Transition::Stop(ExitReason::Normal),
                None => {
                    deadline = None;
                    machine.timed_out(state).await
                }
            },
        };
        match transition {
            Transition::Go(next) if next != *state => {
                // What was not handled again yet is younger than what was postponed once more.
                postponed.append(&mut again);
                return Ok(next);
            }
            Transition::Stay | Transition::Go(_) => {}
            Transition::Postpone(event) => postponed.push_back(event),
            Transition::Stop(reason) => return Err(reason),
        }
    }
}

/// The next message; none if none comes before the deadline.
async fn receive<M: Machine>(
    inbox: &mut Inbox<MachineMessage<M>>,
    deadline: Option<Instant>,
) -> Option<Incoming<M>> {
    let message = match deadline {
        Some(deadline) => {
            let left = deadline.saturating_duration_since(now());
            inbox.receive().after(left).await.ok()?
        }
        None => inbox.receive().await,
    };
    Some(message.0)
}

impl<M: Machine> Clone for MachineRef<M> {
    fn clone(&self) -> MachineRef<M> {
        MachineRef(self.0.clone())
    }
}

impl<M: Machine> AsUnit for MachineRef<M> {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}

impl<M: Machine> Debug for MachineRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MachineRef").field(&self.0).finish()
    }
}

impl<M: Machine> Debug for MachineMessage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineMessage").finish_non_exhaustive()
    }
}
