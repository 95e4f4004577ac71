//! State machines that watch others, send themselves events, are told of exits, and are children of a supervisor.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::each_seed;
use weald_kernel::{now, sleep};
use weald_process::{
    self as process, Builder, ChildSpec, Down, Exit, ExitReason, Inbox, Machine, MachineMessage,
    MachineRef, MachineScope, Name, Pid, Shutdown, StartError, Strategy, Supervisor, Transition,
    monitor,
};

const MS: Duration = Duration::from_millis(1);

static NURSE: Name<MachineMessage<Nurse>> = Name::new("nurse");

/// Watches a patient, and reports.
struct Nurse {
    /// How long it takes to get ready.
    dresses: Duration,
    report: Option<Pid<State>>,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Idle,
    Watches,
    Mourns(ExitReason),
    Told(ExitReason),
}

enum Event {
    Watch(Pid<()>),
    Ended(Down),
    Ring,
    Stumble,
}

impl Machine for Nurse {
    type State = State;
    type Event = Event;

    async fn begin(&mut self, scope: &mut MachineScope<Nurse>) -> State {
        sleep(self.dresses).await;
        NURSE.register(scope.machine().pid()).unwrap();
        State::Idle
    }

    async fn enter(&mut self, state: &State, scope: &mut MachineScope<Nurse>) {
        if let Some(report) = &self.report {
            report.send(state.clone());
        }
        if *state == State::Watches {
            scope.send_after(10 * MS, Event::Ring).detach();
        }
    }

    async fn handle(
        &mut self,
        state: &State,
        event: Event,
        scope: &mut MachineScope<Nurse>,
    ) -> Transition<State, Event> {
        match event {
            Event::Watch(patient) => {
                scope.monitor(&patient, Event::Ended);
                let forgotten = scope.monitor(&patient, Event::Ended);
                assert!(scope.demonitor(forgotten));
                Transition::Go(State::Watches)
            }
            Event::Ended(down) => Transition::Go(State::Mourns(down.reason)),
            // Not forgotten over another state.
            Event::Ring if *state == State::Watches => Transition::Postpone(Event::Ring),
            Event::Ring => Transition::Go(State::Idle),
            Event::Stumble => panic!("stumbles"),
        }
    }

    async fn exit(
        &mut self,
        state: &State,
        exit: Exit,
        _: &mut MachineScope<Nurse>,
    ) -> Transition<State, Event> {
        match exit.reason {
            ExitReason::Shutdown => Transition::Stop(ExitReason::Shutdown),
            reason if *state == State::Idle => Transition::Go(State::Told(reason)),
            _ => Transition::Stay,
        }
    }
}

fn on_seeds(test: impl AsyncFn()) {
    each_seed(100, test);
}

fn nurse(report: Option<Pid<State>>) -> Nurse {
    let dresses = Duration::ZERO;
    Nurse { dresses, report }
}

#[test]
fn ends_of_others_and_timers_come_as_events() {
    on_seeds(async || {
        let reader = process::spawn(async |mut inbox: Inbox<State>| {
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(inbox.receive().await);
            }
            (seen, now())
        });
        let reader = reader.unwrap();
        let patient = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await).unwrap();
        let nurse = nurse(Some(reader.pid().clone()));
        let nurse = MachineRef::start(Builder::new(), nurse).unwrap();
        let begin = now();
        nurse.send(Event::Watch(patient.pid().clone()));
        sleep(20 * MS).await;
        assert_eq!(nurse.state().await, Ok(State::Watches));
        let reason = ExitReason::custom("too late");
        patient.exit(&reason);
        let (seen, end) = reader.await.unwrap();
        let mourns = State::Mourns(reason);
        // It rang after 10 ms, was postponed, and came again in the next state.
        assert_eq!(seen, [State::Idle, State::Watches, mourns, State::Idle]);
        assert_eq!(end - begin, 20 * MS);
        nurse.stop().await;
    });
}

#[test]
fn an_exit_signal_means_what_the_state_makes_of_it() {
    on_seeds(async || {
        let nurse = MachineRef::start(Builder::new(), nurse(None)).unwrap();
        // From its first step on it traps exits.
        assert_eq!(nurse.state().await, Ok(State::Idle));
        let news = ExitReason::custom("news");
        nurse.pid().exit(&news);
        assert_eq!(nurse.state().await, Ok(State::Told(news)));
        nurse.pid().exit(&ExitReason::custom("more news"));
        let told = nurse.state().await.unwrap();
        assert_eq!(told, State::Told(ExitReason::custom("news")));
        let down = monitor(&nurse);
        nurse.pid().exit(&ExitReason::Shutdown);
        assert_eq!(down.await.reason, ExitReason::Shutdown);
    });
}

fn child(dresses: Duration) -> ChildSpec {
    ChildSpec::machine("nurse", move || Nurse {
        dresses,
        report: None,
    })
}

#[test]
fn a_machine_is_a_child_that_is_ready_in_its_first_state() {
    on_seeds(async || {
        let begin = now();
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child(50 * MS));
        let supervisor = supervisor.start().await.unwrap();
        assert_eq!(now() - begin, 50 * MS);
        let first = MachineRef::of(NURSE.whereis().unwrap());
        let down = monitor(&first);
        first.send(Event::Stumble);
        assert!(matches!(down.await.reason, ExitReason::Crash(_)));
        let second = MachineRef::of(NURSE.registered().await.unwrap());
        assert_eq!(second.state().await, Ok(State::Idle));
        let down = monitor(&second);
        supervisor.stop().await;
        assert_eq!(down.await.reason, ExitReason::Shutdown);
    });
}

#[test]
fn a_machine_that_is_not_ready_in_time_has_failed_to_start() {
    on_seeds(async || {
        let child = child(50 * MS).ready_within(10 * MS);
        let child = child.shutdown(Shutdown::Kill);
        let started = Supervisor::new(Strategy::OneForOne).child(child).start();
        assert!(matches!(
            started.await.unwrap_err(),
            StartError::Failed { .. }
        ));
        assert!(NURSE.whereis().is_err());
    });
}
