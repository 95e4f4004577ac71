//! The deadline of a call to a machine holds for the calls that the machine makes while it handles the event, and for
//! no others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::each_seed;
use weald_kernel::{now, sleep};
use weald_process::{
    self as process, Builder, CallError, Inbox, Machine, MachineRef, MachineScope, Pid, Reply,
    Transition,
};

const MS: Duration = Duration::from_millis(1);

/// Asks somebody else, who never answers.
struct Front {
    behind: Pid<Ask>,
    notes: Pid<Note>,
}

struct Ask(#[allow(dead_code, reason = "it is kept, and never used")] Reply<()>);

/// What became of a call of the machine's own, and when.
type Note = (Result<(), CallError>, Duration);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Closed,
    Open,
}

enum Event {
    Open,
    /// Postponed while it is closed.
    Ask(Reply<()>),
    /// Asks for nobody's sake, within this time.
    AskWithin(Duration),
}

impl Front {
    async fn ask(&self, within: Option<Duration>) {
        let begin = now();
        let call = self.behind.call(Ask);
        let answer = match within {
            Some(within) => call.within(within).await,
            None => call.await,
        };
        self.notes.send((answer, now() - begin));
    }
}

impl Machine for Front {
    type State = State;
    type Event = Event;

    async fn begin(&mut self, _: &mut MachineScope<Front>) -> State {
        State::Closed
    }

    async fn handle(
        &mut self,
        state: &State,
        event: Event,
        _: &mut MachineScope<Front>,
    ) -> Transition<State, Event> {
        match (event, state) {
            (Event::Open, _) => return Transition::Go(State::Open),
            (Event::Ask(reply), State::Closed) => return Transition::Postpone(Event::Ask(reply)),
            (Event::Ask(_reply), State::Open) => self.ask(None).await,
            (Event::AskWithin(within), _) => self.ask(Some(within)).await,
        }
        Transition::Stay
    }
}

#[test]
fn the_deadline_of_a_call_passes_on_also_if_its_event_is_postponed() {
    each_seed(100, async || {
        let silent = process::spawn(async |mut inbox: Inbox<Ask>| {
            let mut kept = Vec::new();
            loop {
                kept.push(inbox.receive().await);
            }
        });
        let behind = silent.unwrap().into_pid() as Pid<Ask>;
        let reader = process::spawn(async |mut inbox: Inbox<Note>| {
            [
                inbox.receive().await,
                inbox.receive().await,
                inbox.receive().await,
            ]
        });
        let reader = reader.unwrap();
        let notes = reader.pid().clone();
        let front = MachineRef::start(Builder::new(), Front { behind, notes }).unwrap();
        // It is postponed for 40 ms, so that 60 are left.
        let caller = front.clone();
        let postponed = process::spawn(async move |_: Inbox<()>| {
            caller.call(Event::Ask).within(100 * MS).await
        });
        sleep(40 * MS).await;
        front.send(Event::Open);
        // At that moment the machine drops the reply, too.
        assert!(postponed.unwrap().await.unwrap().is_err());
        let asked = front.call(Event::Ask).within(20 * MS).await;
        assert!(asked.is_err());
        // An event that is no call has no deadline, whatever came before.
        front.send(Event::AskWithin(500 * MS));
        let late_ones = reader.await.unwrap().map(|(answer, took)| {
            assert_eq!(answer, Err(CallError::TimedOut));
            took
        });
        assert_eq!(late_ones, [60 * MS, 20 * MS, 500 * MS]);
        front.stop().await;
    });
}
