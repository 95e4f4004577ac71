//! The registry: which process has a name, and that the name is free before anyone learns of the end of its process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
};

use tools::{each_seed, on_each, watch};
use weald_kernel::{Runtime, yield_now};
use weald_process::{
    self as process, Builder, Inbox, Name, NameError, Pid, RegisterError, monitor, registered,
};

static NAME: Name<u32> = Name::new("name");

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

fn waiting() -> Pid<u32> {
    let process = process::spawn(async |mut inbox: Inbox<u32>| inbox.receive().await);
    process.unwrap().into_pid()
}

#[test]
fn a_name_leads_to_its_process_until_that_ends() {
    everywhere(async || {
        assert_eq!(
            NAME.whereis(),
            Err(NameError::NotRegistered("name".to_owned()))
        );
        let pid = waiting();
        NAME.register(&pid).unwrap();
        assert_eq!(NAME.whereis(), Ok(pid.clone()));
        assert_eq!(registered(), ["name"]);
        let down = monitor(&pid);
        NAME.send(1).unwrap();
        down.await;
        assert!(NAME.whereis().is_err());
        assert!(registered().is_empty());
        assert!(NAME.send(2).is_err());
    });
}

#[test]
fn a_name_that_is_taken_and_a_dead_process_are_errors() {
    everywhere(async || {
        let (first, second) = (waiting(), waiting());
        NAME.register(&first).unwrap();
        let taken = RegisterError::Taken("name".to_owned());
        assert_eq!(NAME.register(&second), Err(taken.clone()));
        assert_eq!(NAME.register(&first), Err(taken.clone()));
        let spawned = NAME.spawn(Builder::new(), async |_: Inbox<u32>| panic!("it ran"));
        assert_eq!(spawned.map(process::Process::into_pid), Err(taken));
        assert!(NAME.unregister());
        assert!(!NAME.unregister());
        let down = monitor(&second);
        second.kill();
        down.await;
        let gone = RegisterError::NoProcess("name".to_owned());
        assert_eq!(NAME.register(&second), Err(gone));
        // The failed attempt keeps nothing.
        NAME.register(&first).unwrap();
        first.kill();
    });
}

#[test]
fn a_dead_process_takes_a_name_from_nobody() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (dead, live) = (waiting(), waiting());
            let down = monitor(&dead);
            dead.kill();
            down.await;
            let is_done = Arc::new(AtomicBool::new(false));
            let stops = is_done.clone();
            let tries = std::thread::spawn(move || {
                while !stops.load(Ordering::SeqCst) {
                    let gone = RegisterError::NoProcess("name".to_owned());
                    assert_eq!(NAME.register(&dead), Err(gone));
                }
            });
            for _ in 0..2_000 {
                NAME.register(&live).unwrap();
                assert!(NAME.unregister());
            }
            is_done.store(true, Ordering::SeqCst);
            tries.join().unwrap();
            live.kill();
        });
    });
}

#[test]
fn a_name_for_another_message_type_is_an_error() {
    everywhere(async || {
        let pid = waiting();
        NAME.register(&pid).unwrap();
        let error = Name::<String>::of("name").whereis().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the process registered as `name` takes `u32` and not `alloc::string::String`"
        );
        pid.kill();
    });
}

#[test]
fn a_process_that_is_spawned_with_a_name_has_it_before_it_runs() {
    everywhere(async || {
        let process = NAME.spawn(Builder::new(), async |inbox: Inbox<u32>| {
            NAME.whereis() == Ok(inbox.pid())
        });
        assert_eq!(process.unwrap().await, Ok(true));
        assert!(NAME.whereis().is_err());
    });
}

#[test]
fn a_name_is_free_before_anyone_is_told_and_the_successor_is_found() {
    everywhere(async || {
        let keeper = process::spawn(async |mut inbox: Inbox<bool>| {
            for _ in 0..20 {
                let child = NAME
                    .spawn(Builder::new(), async |mut inbox: Inbox<u32>| {
                        inbox.receive().await
                    })
                    .expect("the name is free when the down is here");
                inbox.monitor(&child, |_down| true);
                while !inbox.receive().await {}
            }
        })
        .unwrap();
        let mut last = None;
        for _ in 0..20 {
            let pid = NAME.registered().await.unwrap();
            assert_ne!(last, Some(pid.clone()), "the old one has ended");
            let down = monitor(&pid);
            pid.send(1);
            down.await;
            last = Some(pid);
        }
        assert_eq!(keeper.await, Ok(()));
    });
}

struct Ignores;

impl Wake for Ignores {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_wait_for_a_name_that_is_dropped_leaves_no_waker() {
    everywhere(async || {
        let ignores = Arc::new(Ignores);
        let waker = Waker::from(ignores.clone());
        {
            let mut waits = [NAME.registered(), NAME.registered()];
            for wait in &mut waits {
                let mut cx = Context::from_waker(&waker);
                assert!(Pin::new(wait).poll(&mut cx).is_pending());
            }
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&ignores), 1);
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("the waker panics on purpose");
    }
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_else_waiting_for_the_name() {
    Runtime::test(1).block_on(async {
        let wakes = Arc::new(Wakes::default());
        let wakers = [Arc::new(Panics).into(), Waker::from(wakes.clone())];
        let mut waits = [NAME.registered(), NAME.registered()];
        for (wait, waker) in waits.iter_mut().zip(&wakers) {
            let mut cx = Context::from_waker(waker);
            assert!(Pin::new(wait).poll(&mut cx).is_pending());
        }
        NAME.register(&waiting()).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn names_of_a_runtime_are_its_own() {
    let _watch = watch();
    let (one, other) = (tools::runtime(1), tools::runtime(1));
    let pid = one.block_on(async {
        let pid = waiting();
        NAME.register(&pid).unwrap();
        pid
    });
    other.block_on(async {
        assert!(NAME.whereis().is_err());
        let own = waiting();
        NAME.register(&own).unwrap();
        own.kill();
    });
    one.block_on(async {
        assert_eq!(NAME.whereis(), Ok(pid.clone()));
        pid.kill();
        while NAME.whereis().is_ok() {
            yield_now().await;
        }
    });
}
