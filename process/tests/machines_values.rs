//! The states of a machine are the user's values: their clones and comparisons run in the machine, which is named if
//! one blocks, and which a panic ends. Nobody else is hurt.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/blocker.rs"]
mod blocker;
#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tickers.rs"]
mod tickers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use blocker::Blocker;
use reports::{collect_reports, reports};
use tickers::Tickers;
use tools::{on_each, runtime, until, watch};
use weald_kernel::{spawn, yield_now};
use weald_process::{
    Builder, CallError, ExitReason, Machine, MachineRef, MachineScope, Transition,
};

/// What a state does while it is cloned or compared.
#[derive(Clone)]
enum Act {
    Block(Blocker),
    Panic,
}

/// A state, with what its clone does, and its comparison.
struct State {
    cloned: Option<Act>,
    compared: Option<Act>,
}

fn act(act: Option<&Act>) {
    match act {
        None => {}
        Some(Act::Block(blocker)) => blocker.block(),
        Some(Act::Panic) => panic!("on purpose"),
    }
}

impl Clone for State {
    fn clone(&self) -> State {
        act(self.cloned.as_ref());
        State {
            cloned: self.cloned.clone(),
            compared: self.compared.clone(),
        }
    }
}

impl PartialEq for State {
    fn eq(&self, _: &State) -> bool {
        act(self.compared.as_ref());
        false
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a state")
    }
}

struct Drawer;

impl Machine for Drawer {
    type State = State;
    type Event = State;

    async fn begin(&mut self, _: &mut MachineScope<Drawer>) -> State {
        State {
            cloned: None,
            compared: None,
        }
    }

    async fn handle(
        &mut self,
        _: &State,
        next: State,
        _: &mut MachineScope<Drawer>,
    ) -> Transition<State, State> {
        Transition::Go(next)
    }
}

fn start(name: &'static str) -> MachineRef<Drawer> {
    MachineRef::start(Builder::new().name(name), Drawer).unwrap()
}

/// Makes the machine clone its state.
fn clone_with(machine: &MachineRef<Drawer>, cloned: Act) {
    machine.send(State {
        cloned: Some(cloned),
        compared: None,
    });
}

/// Makes the machine compare its next state with its own.
fn compare_with(machine: &MachineRef<Drawer>, compared: Act) {
    machine.send(State {
        cloned: None,
        compared: Some(compared),
    });
}

#[test]
fn a_state_whose_code_blocks_holds_up_its_machine_only_and_that_is_named() {
    collect_reports();
    type Begin = fn(&MachineRef<Drawer>, Act);
    let cases: [(&str, Begin); 2] = [
        ("a machine that clones", clone_with),
        ("a machine that compares", compare_with),
    ];
    for (name, begin) in cases {
        let _watch = watch();
        let runtime = runtime(1);
        let tickers = Tickers::start(&runtime, 20);
        let blocker = Blocker::default();
        let (machine, other) = runtime.block_on(async { (start(name), start("another machine")) });
        let asks = runtime.block_on(async {
            begin(&machine, Act::Block(blocker.clone()));
            let machine = machine.clone();
            (spawn(async move { machine.state().await.map(drop) }),)
        });
        until(|| blocker.begun() == 1);
        tickers.tick(20);
        assert!(runtime.block_on(async { other.state().await }).is_ok());
        let quoted = format!("`{name}` spawned at process/tests/machines_values.rs:");
        until(|| !reports("weald::monitor", &quoted).is_empty());
        blocker.open();
        assert_eq!(runtime.block_on(asks.0).unwrap(), Ok(()));
        runtime.block_on(async {
            machine.stop().await;
            other.stop().await;
        });
        tickers.end(&runtime);
    }
}

#[test]
fn a_state_whose_code_panics_ends_its_machine_and_the_caller_learns_of_it() {
    on_each(|runtime| {
        runtime.block_on(async {
            for begin in [clone_with, compare_with] {
                let (machine, other) = (start("fails"), start("another machine"));
                begin(&machine, Act::Panic);
                let asked = machine.state().await.map(drop);
                let Err(CallError::Died(reason)) = asked else {
                    panic!("{asked:?}");
                };
                match reason {
                    ExitReason::Crash(crash) => assert_eq!(crash.message(), "on purpose"),
                    // It had ended before the call.
                    other => assert_eq!(other, ExitReason::NoProcess),
                }
                assert!(other.state().await.is_ok());
                other.stop().await;
                yield_now().await;
            }
        });
    });
}
