//! State machines with a bounded mailbox or with urgent events.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/signals.rs"]
mod signals;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt;
use signals::{custom, everywhere};
use tools::{Latch, each_seed};
use weald_kernel::{now, sleep};
use weald_process::{
    BoundedMachineRef, Builder, CallError, ExitReason, Machine, MachineRef, MachineScope,
    MailboxKind, Overflow, Overflowed, Reply, SendError, Transition, monitor,
};

const MS: Duration = Duration::from_millis(1);

/// A door that handles nothing before its latch opens, and notes who went through.
#[derive(Clone, Default)]
struct Door {
    latch: Latch,
    seen: Arc<Mutex<Vec<u32>>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Closed,
    Open,
}

#[derive(Debug)]
enum Event {
    Open,
    /// Postponed while the door is closed.
    Pass(u32),
    /// As `Pass`, with an answer.
    Ask(Reply<usize>),
    /// The number of the machine by its own address.
    Own(Reply<Option<u64>>),
}

impl Machine for Door {
    type State = State;
    type Event = Event;

    async fn begin(&mut self, _: &mut MachineScope<Door>) -> State {
        self.latch.clone().await;
        State::Closed
    }

    async fn handle(
        &mut self,
        state: &State,
        event: Event,
        scope: &mut MachineScope<Door>,
    ) -> Transition<State, Event> {
        match event {
            Event::Open => return Transition::Go(State::Open),
            Event::Own(reply) => {
                let own = scope.bounded_machine();
                let number = own.map(|own| own.pid().id().number());
                let _unheard = reply.send(number);
            }
            event if *state == State::Closed => return Transition::Postpone(event),
            Event::Pass(number) => self.seen.lock().unwrap().push(number),
            Event::Ask(reply) => {
                let _unheard = reply.send(self.seen.lock().unwrap().len());
            }
        }
        Transition::Stay
    }
}

fn room(capacity: u32) -> NonZeroU32 {
    NonZeroU32::new(capacity).unwrap()
}

fn start(kind: MailboxKind) -> (Door, BoundedMachineRef<Door>) {
    let door = Door::default();
    let machine = BoundedMachineRef::start(Builder::new(), kind, door.clone());
    (door, machine.unwrap())
}

fn is_full(sent: Result<(), SendError<Event>>) -> bool {
    matches!(sent, Err(SendError::Full(Event::Pass(_))))
}

#[test]
fn events_find_room_or_are_refused_and_a_postponed_one_keeps_none() {
    everywhere(async || {
        let (door, machine) = start(MailboxKind::bounded(room(1), Overflow::Reject));
        machine.send(Event::Pass(1)).await.unwrap();
        assert!(is_full(machine.send(Event::Pass(2)).await));
        assert!(is_full(machine.try_send(Event::Pass(2))));
        assert!(is_full(machine.try_send_urgent(Event::Pass(2))));
        assert_eq!(machine.call(Event::Ask).await, Err(CallError::Full));
        assert_eq!(machine.call_urgent(Event::Ask).await, Err(CallError::Full));
        // To look at it takes no room.
        let mut state = pin!(machine.state());
        assert!(state.as_mut().now_or_never().is_none());
        door.latch.open();
        // Once the first event is postponed.
        assert_eq!(state.await, Ok(State::Closed));
        assert_eq!(machine.pid().room(), 1);
        machine.try_send(Event::Open).unwrap();
        while machine.pid().room() == 0 {
            weald_kernel::yield_now().await;
        }
        assert_eq!(machine.call(Event::Ask).await, Ok(1));
        let own = machine.call(Event::Own).await;
        assert_eq!(own, Ok(Some(machine.pid().id().number())));
        machine.stop().await;
        assert_eq!(*door.seen.lock().unwrap(), [1]);
        let dead = machine.send(Event::Pass(3)).await;
        assert!(matches!(dead, Err(SendError::Dead(Event::Pass(3)))));
        let gone = CallError::Died(ExitReason::NoProcess);
        assert_eq!(machine.state().await, Err(gone));
    });
}

#[test]
fn events_wait_for_room_and_those_that_wait_learn_of_the_end() {
    everywhere(async || {
        for is_killed in [false, true] {
            let (door, machine) = start(MailboxKind::bounded(room(1), Overflow::Wait));
            machine.send(Event::Open).await.unwrap();
            let mut sent = pin!(machine.send(Event::Pass(1)));
            let mut asked = pin!(machine.call(Event::Ask).into_future());
            let mut state = pin!(machine.state());
            assert!(sent.as_mut().now_or_never().is_none());
            assert!(asked.as_mut().now_or_never().is_none());
            assert!(state.as_mut().now_or_never().is_none());
            match is_killed {
                true => machine.pid().kill(),
                false => door.latch.open(),
            }
            let (sent, asked, state) = futures_util::join!(sent, asked, state);
            match is_killed {
                true => {
                    assert!(matches!(sent, Err(SendError::Dead(Event::Pass(1)))));
                    assert_eq!(asked, Err(CallError::Died(ExitReason::Killed)));
                    assert_eq!(state, Err(CallError::Died(ExitReason::Killed)));
                }
                false => {
                    assert!(sent.is_ok());
                    assert_eq!((asked, state), (Ok(1), Ok(State::Open)));
                    machine.stop().await;
                }
            }
        }
    });
}

#[test]
fn an_event_that_is_too_many_ends_the_machine() {
    everywhere(async || {
        let (_door, machine) = start(MailboxKind::bounded(room(1), Overflow::Crash));
        let down = monitor(&machine);
        machine.send(Event::Open).await.unwrap();
        assert_eq!(machine.call(Event::Ask).await, Err(CallError::Full));
        let ExitReason::Custom(reason) = down.await.reason else {
            panic!("it has another reason");
        };
        let overflowed: &Overflowed = reason.downcast_ref().unwrap();
        assert_eq!(overflowed.capacity, 1);
    });
}

#[test]
fn urgent_events_and_exit_signals_pass_the_others() {
    everywhere(async || {
        for exits in [false, true] {
            let (door, machine) = start(MailboxKind::bounded_priority(room(1), Overflow::Reject));
            machine.send(Event::Open).await.unwrap();
            assert!(is_full(machine.try_send(Event::Pass(1))));
            machine.send_urgent(Event::Pass(2)).await.unwrap();
            assert!(is_full(machine.send_urgent(Event::Pass(3)).await));
            let down = monitor(&machine);
            if exits {
                machine.pid().exit(&custom());
            }
            door.latch.open();
            if exits {
                assert_eq!(down.await.reason, custom());
                assert_eq!(*door.seen.lock().unwrap(), []);
            } else {
                // It came to the closed door, and was postponed.
                machine.stop().await;
                assert_eq!(*door.seen.lock().unwrap(), [2]);
            }
        }
    });
}

#[test]
fn a_deadline_covers_the_wait_for_room_and_an_event_that_was_postponed() {
    each_seed(100, async || {
        let (door, machine) = start(MailboxKind::bounded(room(1), Overflow::Wait));
        machine.send(Event::Pass(1)).await.unwrap();
        let begin = now();
        let late = machine.call(Event::Ask).within(10 * MS).await;
        assert_eq!((late, now() - begin), (Err(CallError::TimedOut), 10 * MS));
        door.latch.open();
        sleep(MS).await;
        let begin = now();
        let late = machine.call(Event::Ask).within(10 * MS).await;
        assert_eq!((late, now() - begin), (Err(CallError::TimedOut), 10 * MS));
        machine.send(Event::Open).await.unwrap();
        assert_eq!(machine.call(Event::Ask).await, Ok(1));
        machine.stop().await;
    });
}

#[test]
fn a_plain_machine_has_no_bounded_address() {
    everywhere(async || {
        let door = Door::default();
        door.latch.open();
        let machine = MachineRef::start(Builder::new(), door).unwrap();
        assert_eq!(machine.call(Event::Own).await, Ok(None));
        machine.stop().await;
    });
}
