//! A door with a code lock, as a state machine: it closes itself, and people who ring while it is open are let in at
//! once.
//!
//! `cargo run -p weald-process --example door`

use std::{error::Error, time::Duration};

use weald_kernel::{Runtime, sleep};
use weald_process::{Builder, Machine, MachineRef, MachineScope, Reply, Transition};

struct Door {
    code: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lock {
    Locked,
    Open,
}

enum Event {
    Code(&'static str),
    /// Answered when the door is open.
    Ring(Reply<()>),
}

impl Machine for Door {
    type State = Lock;
    type Event = Event;

    async fn begin(&mut self, _: &mut MachineScope<Door>) -> Lock {
        Lock::Locked
    }

    async fn enter(&mut self, lock: &Lock, _: &mut MachineScope<Door>) {
        println!("the door is {lock:?}");
    }

    async fn handle(
        &mut self,
        lock: &Lock,
        event: Event,
        _: &mut MachineScope<Door>,
    ) -> Transition<Lock, Event> {
        match (lock, event) {
            (Lock::Locked, Event::Code(code)) if code == self.code => Transition::Go(Lock::Open),
            (_, Event::Code(_)) => Transition::Stay,
            (Lock::Locked, ring @ Event::Ring(_)) => Transition::Postpone(ring),
            (Lock::Open, Event::Ring(reply)) => {
                let _gone = reply.send(());
                Transition::Stay
            }
        }
    }

    fn limit(&self, lock: &Lock) -> Option<Duration> {
        (*lock == Lock::Open).then_some(Duration::from_millis(100))
    }

    async fn timed_out(&mut self, _: &Lock, _: &mut MachineScope<Door>) -> Transition<Lock, Event> {
        Transition::Go(Lock::Locked)
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let door = MachineRef::start(Builder::new(), Door { code: "1234" })?;
    door.send(Event::Code("0000"));
    let visitor = door.clone();
    let visitor = weald_kernel::spawn(async move { visitor.call(Event::Ring).await });
    door.send(Event::Code("1234"));
    visitor.await??;
    println!("a visitor is in");
    sleep(Duration::from_millis(300)).await;
    println!("and now the door is {:?}", door.state().await?);
    door.stop().await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    Runtime::builder().build()?.block_on(run())
}

#[test]
fn a_visitor_is_let_in() {
    for seed in 0..100 {
        Runtime::test(seed).block_on(run()).unwrap();
    }
}
