//! State that a child hands over to its successor, however the child ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::{each_seed, on_each, watch};
use weald_kernel::{Runtime, catch_panic};
use weald_process::{
    self as process, ChildSpec, ExitReason, Handover, Inbox, Name, Reply, Strategy, Supervisor,
    monitor,
};

static KEEPER: Name<Request> = Name::new("keeper");

enum Request {
    Add(u32),
    /// The sum, and whether it was left by a panic.
    Get(Reply<(u32, bool)>),
    Crash,
    Return,
    /// Unwinds, and is no panic, though one was caught before.
    Exit,
    Discard,
}

fn keeper(place: &Handover<u32>) -> ChildSpec {
    let place = place.clone();
    ChildSpec::process("keeper", move |mut inbox: Inbox<Request>| {
        let mut sum = place.claim(|| 100).unwrap();
        KEEPER.register(&inbox.pid()).unwrap();
        async move {
            loop {
                match inbox.receive().await {
                    Request::Add(number) => *sum += number,
                    Request::Get(reply) => drop(reply.send((*sum, sum.was_left_by_panic()))),
                    Request::Crash => panic!("on purpose"),
                    Request::Return => return,
                    Request::Exit => {
                        let _survived = catch_panic(|| panic!("on purpose"));
                        process::exit(ExitReason::Shutdown)
                    }
                    Request::Discard => return sum.discard(),
                }
            }
        }
    })
}

async fn end_with(request: Request) {
    let keeper = KEEPER.registered().await.unwrap();
    let down = monitor(&keeper);
    keeper.send(Request::Add(1));
    keeper.send(request);
    down.await;
}

async fn get() -> (u32, bool) {
    let keeper = KEEPER.registered().await.unwrap();
    keeper.call(Request::Get).await.unwrap()
}

#[test]
fn a_successor_gets_what_was_left_however_the_child_ended() {
    let _watch = watch();
    let test = async || {
        let place = Handover::new();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(usize::MAX, Duration::from_secs(1))
            .child(keeper(&place))
            .start()
            .await
            .unwrap();
        assert_eq!(get().await, (100, false));
        end_with(Request::Crash).await;
        assert_eq!(get().await, (101, true));
        end_with(Request::Return).await;
        assert_eq!(get().await, (102, false));
        let victim = KEEPER.registered().await.unwrap();
        let down = monitor(&victim);
        victim.kill();
        down.await;
        assert_eq!(get().await, (102, false));
        end_with(Request::Exit).await;
        assert_eq!(get().await, (103, false));
        assert!(place.claim(|| 0).is_err());
        end_with(Request::Discard).await;
        assert_eq!(get().await, (100, false));
        supervisor.stop().await;
        assert_eq!(*place.claim(|| 0).unwrap(), 100);
    };
    each_seed(100, test);
    on_each(|runtime| runtime.block_on(test()));
}

#[test]
fn a_first_state_that_panics_gives_the_claim_back() {
    let place = Handover::<u32>::new();
    let runtime = Runtime::test(1);
    runtime.block_on(async {
        let broken = catch_panic(|| place.claim(|| panic!("on purpose")));
        assert!(broken.is_none());
        assert_eq!(*place.claim(|| 7).unwrap(), 7);
    });
}
