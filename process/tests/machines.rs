//! State machines: changes of state, postponed events, time limits of states, and the end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tools::each_seed;
use weald_kernel::sleep;
use weald_process::{
    Builder, CallError, ExitReason, Machine, MachineRef, MachineScope, Reply, Transition, monitor,
};

const MS: Duration = Duration::from_millis(1);

/// Takes jobs while it is free, one at a time; notes what it does.
#[derive(Clone, Default)]
struct Press(Arc<Mutex<Vec<String>>>);

#[derive(Clone, Debug, PartialEq)]
enum State {
    Free,
    Printing(u32),
    Jammed,
}

enum Event {
    Print(u32),
    Done,
    /// Keeps the press for this long.
    Work(Duration),
    Ask(Reply<u32>),
    Stop(ExitReason),
}

impl Press {
    fn note(&self, what: impl ToString) {
        self.0.lock().unwrap().push(what.to_string());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Machine for Press {
    type State = State;
    type Event = Event;

    async fn begin(&mut self, _: &mut MachineScope<Press>) -> State {
        State::Free
    }

    async fn enter(&mut self, state: &State, _: &mut MachineScope<Press>) {
        self.note(format!("{state:?}"));
    }

    async fn handle(
        &mut self,
        state: &State,
        event: Event,
        _: &mut MachineScope<Press>,
    ) -> Transition<State, Event> {
        match (state, event) {
            (State::Free, Event::Print(sheet)) => Transition::Go(State::Printing(sheet)),
            (_, event @ Event::Print(_)) => Transition::Postpone(event),
            (State::Printing(_), Event::Done) => Transition::Go(State::Free),
            (State::Printing(sheet), Event::Ask(reply)) => {
                let _unheard = reply.send(*sheet);
                Transition::Go(state.clone())
            }
            (_, Event::Stop(reason)) => Transition::Stop(reason),
            (_, Event::Work(time)) => {
                sleep(time).await;
                self.note("worked");
                Transition::Stay
            }
            (_, Event::Done | Event::Ask(_)) => Transition::Stay,
        }
    }

    fn limit(&self, state: &State) -> Option<Duration> {
        matches!(state, State::Printing(_)).then_some(10 * MS)
    }

    async fn timed_out(
        &mut self,
        _: &State,
        _: &mut MachineScope<Press>,
    ) -> Transition<State, Event> {
        Transition::Go(State::Jammed)
    }

    async fn end(&mut self, reason: &ExitReason) {
        self.note(format!("end {reason:?}"));
    }
}

fn on_seeds(test: impl AsyncFn(Press, MachineRef<Press>)) {
    each_seed(100, async || {
        let press = Press::default();
        let machine = MachineRef::start(Builder::new(), press.clone()).unwrap();
        test(press, machine).await;
    });
}

#[test]
fn postponed_events_come_again_in_their_order_before_later_ones() {
    on_seeds(async |press, machine| {
        for sheet in 1..5 {
            machine.send(Event::Print(sheet));
        }
        for _ in 1..5 {
            assert!(machine.call(Event::Ask).await.is_ok());
            machine.send(Event::Done);
        }
        assert_eq!(machine.state().await, Ok(State::Free));
        let expected: Vec<String> = (1..5)
            .flat_map(|n| [format!("Printing({n})"), "Free".to_owned()])
            .collect();
        assert_eq!(press.take()[1..], expected);
        // An event that wants an answer and gets none fails its call.
        assert_eq!(machine.call(Event::Ask).await, Err(CallError::NoReply));
        machine.stop().await;
        assert_eq!(press.take(), ["end Normal"]);
    });
}

#[test]
fn the_time_of_a_state_begins_and_ends_with_it() {
    on_seeds(async |press, machine| {
        machine.send(Event::Print(1));
        sleep(8 * MS).await;
        // To stay does not begin it anew.
        assert_eq!(machine.call(Event::Ask).await, Ok(1));
        machine.send(Event::Done);
        sleep(20 * MS).await;
        assert_eq!(machine.state().await, Ok(State::Free));
        machine.send(Event::Print(2));
        sleep(8 * MS).await;
        assert_eq!(machine.call(Event::Ask).await, Ok(2));
        sleep(4 * MS).await;
        assert_eq!(machine.state().await, Ok(State::Jammed));
        let seen = press.take();
        assert_eq!(
            seen,
            ["Free", "Printing(1)", "Free", "Printing(2)", "Jammed"]
        );
        machine.stop().await;
    });
}

#[test]
fn the_time_of_a_state_is_over_however_many_events_wait() {
    on_seeds(async |press, machine| {
        machine.send(Event::Print(1));
        for _ in 0..20 {
            machine.send(Event::Work(MS));
        }
        sleep(60 * MS).await;
        let seen = press.take();
        let count = |part: &[String]| part.iter().filter(|what| *what == "worked").count();
        let end = seen.iter().position(|what| what == "Jammed").unwrap();
        assert!((1..=10).contains(&count(&seen[..end])), "{seen:?}");
        assert_eq!(count(&seen), 20);
        machine.stop().await;
    });
}

#[test]
fn a_machine_ends_by_its_own_transition_and_by_exit_signals() {
    on_seeds(async |press, machine| {
        let down = monitor(&machine);
        machine.send(Event::Stop(ExitReason::custom(1)));
        assert_eq!(down.await.reason, ExitReason::custom(1));
        assert_eq!(press.take(), ["Free", "end Custom(1)"]);
        let machine = MachineRef::start(Builder::new(), press.clone()).unwrap();
        assert_eq!(machine.state().await, Ok(State::Free));
        machine.pid().exit(&ExitReason::Normal);
        assert_eq!(machine.state().await, Ok(State::Free));
        let down = monitor(&machine);
        machine.pid().exit(&ExitReason::Shutdown);
        assert_eq!(down.await.reason, ExitReason::Shutdown);
        assert_eq!(press.take(), ["Free", "end Shutdown"]);
    });
}
