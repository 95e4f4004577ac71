//! Exits: a process ends with its value, by its crash, or killed wherever it is; then its pid is dead.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use tools::{Drops, for_seeds, on_each, runtime, until, watch};
use weald_kernel::{SpawnError, Wait, block_in_place, sleep, spawn, yield_now};
use weald_process::{self as process, Builder, ExitReason, Inbox, SendError};

#[test]
fn a_process_ends_with_its_value_or_its_crash() {
    on_each(|runtime| {
        runtime.block_on(async {
            let value = process::spawn(async |_: Inbox<()>| "value").unwrap();
            assert_eq!(value.await, Ok("value"));
            let crash = process::spawn(async |mut inbox: Inbox<u32>| {
                let n = inbox.receive().await;
                panic!("the message was {n}");
            })
            .unwrap();
            crash.pid().send(6);
            let reason: Result<(), _> = crash.await;
            let reason = reason.unwrap_err();
            let text = reason.to_string();
            let name = "the process crashed: an unnamed job spawned at process/tests/exit.rs:";
            assert!(text.starts_with(name), "{text}");
            assert!(
                text.contains(" panicked at process/tests/exit.rs:"),
                "{text}"
            );
            assert!(text.ends_with(": the message was 6"), "{text}");
            assert_eq!(crash_site(&reason), Some("process/tests/exit.rs"));
            let ExitReason::Crash(crash) = reason else {
                panic!("not a crash but: {reason}");
            };
            assert_eq!(crash.message(), "the message was 6");
            assert_eq!(crash.process().site.file(), "process/tests/exit.rs");
            assert_eq!(ExitReason::Killed.to_string(), "the process was killed");
        });
    });
}

fn crash_site(reason: &ExitReason) -> Option<&str> {
    match reason {
        ExitReason::Crash(crash) => crash.site().map(|site| site.file.as_str()),
        _ => None,
    }
}

#[test]
fn a_crash_harms_no_other_process() {
    on_each(|runtime| {
        runtime.block_on(async {
            let echo = process::spawn(async |mut inbox: Inbox<u32>| {
                let mut sum = 0;
                for _ in 0..100 {
                    sum += inbox.receive().await;
                }
                sum
            })
            .unwrap();
            for n in 0..100 {
                let pid = echo.pid().clone();
                let crash = process::spawn(async move |_: Inbox<()>| {
                    pid.send(n);
                    std::panic::resume_unwind(Box::new("on purpose"))
                });
                let reason: Result<(), _> = crash.unwrap().await;
                assert!(
                    matches!(&reason, Err(ExitReason::Crash(crash)) if crash.message() == "on purpose"),
                    "{reason:?}"
                );
            }
            assert_eq!(echo.await, Ok(4_950));
        });
    });
}

#[test]
fn a_kill_ends_a_parked_process_and_runs_its_destructors() {
    on_each(|runtime| {
        runtime.block_on(async {
            let drops = Drops::default();
            for _ in 0..100 {
                let token = drops.token();
                let process = process::spawn(async move |mut inbox: Inbox<u32>| {
                    let _token = token;
                    inbox.receive().await
                })
                .unwrap();
                yield_now().await;
                process.kill();
                let pid = process.pid().clone();
                assert_eq!(process.await, Err(ExitReason::Killed));
                assert!(!pid.is_alive());
                assert_eq!(pid.try_send(1), Err(SendError::Dead(1)));
            }
            assert_eq!(drops.count(), 100);
        });
    });
}

#[test]
fn a_kill_before_the_first_poll_drops_the_body_unrun() {
    let _watch = watch();
    let runtime = runtime(1);
    let drops = Drops::default();
    let (token, ran) = (drops.token(), Arc::new(AtomicBool::new(false)));
    let runs = ran.clone();
    let ended = runtime.spawn(async move {
        let process = process::spawn(async move |_: Inbox<()>| {
            runs.store(true, Ordering::SeqCst);
            drop(token);
        })
        .unwrap();
        process.kill();
        process.await
    });
    assert_eq!(runtime.block_on(ended).unwrap(), Err(ExitReason::Killed));
    assert_eq!((drops.count(), ran.load(Ordering::SeqCst)), (1, false));
}

#[test]
fn a_kill_ends_a_queued_process_that_has_begun() {
    let _watch = watch();
    let runtime = runtime(1);
    let ended = runtime.spawn(async {
        let process = process::spawn(async |mut inbox: Inbox<u32>| {
            loop {
                inbox.receive().await;
            }
        })
        .unwrap();
        yield_now().await;
        // Queued by the message, killed before it runs.
        process.pid().send(1);
        process.kill();
        process.await
    });
    assert_eq!(
        runtime.block_on(ended).unwrap(),
        Err::<(), _>(ExitReason::Killed)
    );
}

#[test]
fn a_kill_unwinds_a_process_in_wait() {
    on_each(|runtime| {
        runtime.block_on(async {
            let drops = Drops::default();
            let token = drops.token();
            let waits = Arc::new(AtomicBool::new(false));
            let waiting = waits.clone();
            let process = process::spawn(async move |mut inbox: Inbox<u32>| {
                let _token = token;
                waiting.store(true, Ordering::SeqCst);
                inbox.receive().wait()
            })
            .unwrap();
            tools::until_yielding(|| waits.load(Ordering::SeqCst)).await;
            process.kill();
            assert_eq!(process.await, Err(ExitReason::Killed));
            assert_eq!(drops.count(), 1);
        });
    });
}

#[test]
fn a_kill_waits_for_a_process_that_computes_or_blocks() {
    on_each(|runtime| {
        let (go, may_go) = mpsc::channel::<()>();
        let (begins, has_begun) = mpsc::channel();
        let process = runtime.block_on(async {
            process::spawn(async move |mut inbox: Inbox<u32>| {
                begins.send(()).unwrap();
                block_in_place(|| may_go.recv().unwrap());
                inbox.receive().await
            })
            .unwrap()
        });
        has_begun.recv().unwrap();
        process.kill();
        assert!(process.pid().is_alive());
        go.send(()).unwrap();
        assert_eq!(runtime.block_on(process), Err(ExitReason::Killed));
    });
}

#[test]
fn a_kill_of_a_dead_process_and_a_second_kill_do_nothing() {
    on_each(|runtime| {
        runtime.block_on(async {
            let process = process::spawn(async |_: Inbox<()>| 3).unwrap();
            tools::until_yielding(|| process.is_finished()).await;
            process.kill();
            process.kill();
            assert_eq!(process.await, Ok(3));
        });
    });
}

#[test]
fn kills_race_with_messages_and_ends() {
    for_seeds(5, |random| {
        let runtime = runtime(1 + random.below(4));
        let drops = Drops::default();
        for _ in 0..300 {
            let reads = random.below(4);
            let token = drops.token();
            let process = runtime.block_on(async {
                process::spawn(async move |mut inbox: Inbox<tools::Token>| {
                    let _token = token;
                    for _ in 0..reads {
                        drop(inbox.receive().await);
                    }
                    reads
                })
                .unwrap()
            });
            let pid = process.pid().clone();
            let sends = runtime.spawn({
                let (pid, drops) = (pid.clone(), drops.clone());
                async move { (0..4).for_each(|_| pid.send(drops.token())) }
            });
            for _ in 0..random.below(3_000) {
                std::hint::spin_loop();
            }
            pid.kill();
            runtime.block_on(sends).unwrap();
            match runtime.block_on(process) {
                Ok(value) => assert_eq!(value, reads),
                Err(reason) => assert_eq!(reason, ExitReason::Killed),
            }
            assert!(!pid.is_alive());
        }
        assert_eq!(drops.count(), drops.made());
        until(|| runtime.metrics().processes == 0);
    });
}

#[test]
fn a_process_keeps_running_without_its_handle() {
    on_each(|runtime| {
        let (sender, receiver) = mpsc::channel();
        let pid = runtime.block_on(async {
            process::spawn(async move |mut inbox: Inbox<u32>| {
                sender.send(inbox.receive().await).unwrap();
            })
            .unwrap()
            .into_pid()
        });
        pid.send(4);
        assert_eq!(receiver.recv().unwrap(), 4);
        until(|| !pid.is_alive());
    });
}

#[test]
fn a_process_is_named() {
    let _watch = watch();
    let runtime = runtime(1);
    runtime.block_on(async {
        let process = Builder::new()
            .name("teller")
            .spawn(async |_: Inbox<()>| ())
            .unwrap();
        assert_eq!(process.pid().name().name.as_deref(), Some("teller"));
        assert!(process.pid().name().site.file().ends_with("exit.rs"));
        assert!(format!("{:?}", process.pid()).contains("`teller`"));
    });
}

#[test]
fn a_local_process_stays_on_its_thread() {
    on_each(|runtime| {
        runtime.block_on(async {
            let thread = std::thread::current().id();
            let process = process::spawn_local(async move |mut inbox: Inbox<u32>| {
                let rc = std::rc::Rc::new(std::cell::Cell::new(0));
                for _ in 0..100 {
                    rc.set(rc.get() + inbox.receive().await);
                    assert_eq!(std::thread::current().id(), thread);
                }
                rc.get()
            })
            .unwrap();
            let pid = process.pid().clone();
            spawn(async move {
                for n in 0..100 {
                    pid.send(n);
                    yield_now().await;
                }
            })
            .await
            .unwrap();
            assert_eq!(process.await, Ok(4_950));
        });
        let outside =
            std::thread::spawn(|| process::spawn_local(async |_: Inbox<()>| ()).map(drop));
        assert_eq!(outside.join().unwrap(), Err(SpawnError::NoLocalThread));
    });
}

#[test]
fn a_process_that_sleeps_is_killed_before_its_deadline() {
    on_each(|runtime| {
        runtime.block_on(async {
            let process = process::spawn(async |_: Inbox<()>| {
                sleep(std::time::Duration::from_secs(3600)).await;
            })
            .unwrap();
            yield_now().await;
            process.kill();
            assert_eq!(process.await, Err(ExitReason::Killed));
        });
    });
}

/// A panic's payload that panics when it is dropped.
struct Explodes;

impl Drop for Explodes {
    fn drop(&mut self) {
        panic!("the payload's destructor");
    }
}

#[test]
fn a_crash_whose_payload_panics_when_it_is_dropped_does_not_crash_who_joins() {
    on_each(|runtime| {
        let joined = runtime.block_on(runtime.spawn(async {
            let crashes = async |_: Inbox<()>| std::panic::panic_any(Explodes);
            let process: process::Process<_, ()> = process::spawn(crashes).unwrap();
            process.await.unwrap_err()
        }));
        assert!(matches!(joined.unwrap(), ExitReason::Crash(_)));
    });
}
