//! The receptor: spawn, spawn with reply, send, set handler; an unknown id is an error; a crash ends one thread only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/blocker.rs"]
mod blocker;
#[path = "../../kernel/tests/support/tickers.rs"]
mod tickers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use blocker::Blocker;
use tickers::Tickers;
use tools::{on_each, runtime, until, watch};
use weald_kernel::{sleep, yield_now};
use weald_process::receptor::{Id, Receptor, ReceptorError};

/// The next message, without blocking the OS thread.
async fn next<T>(receiver: &mpsc::Receiver<T>) -> T {
    loop {
        match receiver.try_recv() {
            Ok(message) => return message,
            Err(_) => sleep(Duration::from_millis(1)).await,
        }
    }
}

#[test]
fn spawn_runs_the_closure_once_with_the_next_id() {
    on_each(|runtime| {
        runtime.block_on(async {
            let receptor = Receptor::<()>::start().unwrap();
            let (sender, ran) = mpsc::channel();
            for _ in 0..10 {
                let sender = sender.clone();
                receptor.spawn(move |thread| sender.send(thread.id().number()).unwrap());
            }
            let mut ids = Vec::new();
            while ids.len() < 10 {
                ids.push(next(&ran).await);
            }
            ids.sort_unstable();
            assert_eq!(ids, (0..10).collect::<Vec<_>>());
            drop(sender);
            receptor.end();
        });
    });
}

#[test]
fn spawn_with_reply_returns_the_id_and_can_send_it_to_another_thread() {
    on_each(|runtime| {
        runtime.block_on(async {
            let receptor = Receptor::<Id>::start().unwrap();
            let (sender, seen) = mpsc::channel();
            let listener = receptor
                .spawn_with_id(move |thread| {
                    thread.set_handler(move |id: Id| sender.send(id).unwrap());
                })
                .await
                .unwrap();
            assert_eq!(listener.number(), 0);
            let there = receptor.clone();
            receptor.spawn_and_tell(|_| (), move |id| there.send(listener, id));
            assert_eq!(next(&seen).await.number(), 1);
            assert_eq!(receptor.spawn_with_id(|_| ()).await.unwrap().number(), 2);
            receptor.end();
        });
    });
}

#[test]
fn messages_of_a_thread_reach_its_handler_in_order_and_the_handler_can_be_replaced() {
    on_each(|runtime| {
        runtime.block_on(async {
            let receptor = Receptor::<u32>::start().unwrap();
            let (sender, seen) = mpsc::channel();
            let (first, second) = (sender.clone(), sender);
            let id = receptor
                .spawn_with_id(move |thread| {
                    thread.set_handler(move |n| first.send(("first", n)).unwrap());
                })
                .await
                .unwrap();
            for n in 0..100 {
                receptor.send(id, n);
            }
            let set = receptor.set_handler(id, move |n| second.send(("second", n)).unwrap());
            set.await.unwrap();
            receptor.try_send(id, 100).await.unwrap();
            for n in 0..100 {
                assert_eq!(next(&seen).await, ("first", n));
            }
            assert_eq!(next(&seen).await, ("second", 100));
            receptor.end();
        });
    });
}

#[test]
fn an_unknown_id_is_an_error_and_nothing_else() {
    on_each(|runtime| {
        runtime.block_on(async {
            let receptor = Receptor::<u32>::start().unwrap();
            // This thread sets no handler, so it is gone once it has run.
            let gone = receptor.spawn_with_id(|_| ()).await.unwrap();
            while receptor.try_send(gone, 1).await.is_ok() {
                yield_now().await;
            }
            let unknown = Err(ReceptorError::UnknownId(gone));
            assert_eq!(receptor.try_send(gone, 1).await, unknown);
            assert_eq!(receptor.set_handler(gone, drop).await, unknown);
            let alive = receptor.spawn_with_id(|thread| thread.set_handler(drop));
            let alive = alive.await.unwrap();
            assert_eq!(receptor.try_send(alive, 1).await, Ok(()));
            assert_eq!(receptor.end_thread(alive).await, Ok(()));
            while receptor.try_send(alive, 1).await.is_ok() {
                yield_now().await;
            }
            receptor.end();
        });
    });
}

#[test]
fn a_crash_ends_its_thread_alone() {
    on_each(|runtime| {
        runtime.block_on(async {
            let receptor = Receptor::<u32>::start().unwrap();
            let (sender, seen) = mpsc::channel();
            let crashing = receptor
                .spawn_with_id(|thread| thread.set_handler(|n| panic!("the message was {n}")))
                .await
                .unwrap();
            let alive = receptor
                .spawn_with_id(move |thread| {
                    thread.set_handler(move |n| sender.send(n).unwrap());
                })
                .await
                .unwrap();
            receptor.spawn(|_| panic!("this one fails at once"));
            receptor.send(crashing, 6);
            while receptor.try_send(crashing, 7).await.is_ok() {
                yield_now().await;
            }
            receptor.send(alive, 8);
            assert_eq!(next(&seen).await, 8);
            receptor.end();
        });
    });
}

#[test]
fn the_threads_of_a_receptor_end_with_it() {
    on_each(|runtime| {
        runtime.block_on(async {
            let receptor = Receptor::<u32>::start().unwrap();
            let (sender, seen) = mpsc::channel::<u32>();
            let id = receptor
                .spawn_with_id(move |thread| {
                    thread.set_handler(move |n| sender.send(n).unwrap());
                })
                .await
                .unwrap();
            receptor.end();
            while receptor.try_send(id, 1).await != Err(ReceptorError::Ended) {
                yield_now().await;
            }
            while seen.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
                yield_now().await;
            }
        });
    });
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a destructor");
    }
}

/// A receptor with a thread that counts its messages, and one that has ended.
async fn with_a_witness() -> (Receptor<Option<Bomb>>, Id, Id, mpsc::Receiver<()>) {
    let receptor = Receptor::<Option<Bomb>>::start().unwrap();
    let (sender, seen) = mpsc::channel();
    let witness = |thread: &weald_process::receptor::Itself<_>| {
        thread.set_handler(move |message| {
            std::mem::forget(message);
            sender.send(()).unwrap();
        });
    };
    let witness = receptor.spawn_with_id(witness).await.unwrap();
    let gone = receptor.spawn_with_id(|_| ()).await.unwrap();
    while receptor.try_send(gone, None).await.is_ok() {
        yield_now().await;
    }
    (receptor, witness, gone, seen)
}

#[test]
fn destructors_that_panic_leave_the_receptor_alive() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (receptor, witness, gone, seen) = with_a_witness().await;
            let unknown = receptor.try_send(gone, Some(Bomb)).await;
            assert_eq!(unknown, Err(ReceptorError::UnknownId(gone)));
            receptor.send(gone, Some(Bomb));
            let bomb = Bomb;
            let holds_a_bomb = move |_| {
                let _held = &bomb;
            };
            let unknown = receptor.set_handler(gone, holds_a_bomb).await;
            assert_eq!(unknown, Err(ReceptorError::UnknownId(gone)));
            let bomb = Bomb;
            receptor.spawn_and_tell(
                |_| (),
                move |_| {
                    let _held = &bomb;
                },
            );
            receptor.try_send(witness, None).await.unwrap();
            next(&seen).await;
        });
    });
}

#[test]
fn destructors_that_panic_while_a_thread_crashes_end_that_thread_alone() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (receptor, witness, _, seen) = with_a_witness().await;
            let (start, started) = mpsc::channel();
            let (go_on, gone_on) = mpsc::channel::<()>();
            let bomb = Bomb;
            let crashes = move |thread: &weald_process::receptor::Itself<_>| {
                thread.set_handler(move |_| {
                    let _held = &bomb;
                    start.send(()).unwrap();
                    gone_on.recv().unwrap();
                    panic!("a handler");
                });
            };
            let crashes = receptor.spawn_with_id(crashes).await.unwrap();
            receptor.send(crashes, None);
            next(&started).await;
            // Queued behind the message that crashes the thread; the crash drops both at once.
            receptor.try_send(crashes, Some(Bomb)).await.unwrap();
            receptor.try_send(crashes, Some(Bomb)).await.unwrap();
            go_on.send(()).unwrap();
            while receptor.try_send(crashes, None).await.is_ok() {
                yield_now().await;
            }
            receptor.try_send(witness, None).await.unwrap();
            next(&seen).await;
        });
    });
}

#[test]
fn a_receptor_ends_with_destructors_that_panic() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (receptor, witness, _, _seen) = with_a_witness().await;
            let held = Arc::new(());
            for _ in 0..3 {
                let beside_a_bomb = (Bomb, held.clone());
                let holds_a_bomb = move |_| {
                    let _held = &beside_a_bomb;
                };
                let keeps =
                    |thread: &weald_process::receptor::Itself<_>| thread.set_handler(holds_a_bomb);
                receptor.spawn_with_id(keeps).await.unwrap();
            }
            receptor.end();
            while receptor.try_send(witness, None).await != Err(ReceptorError::Ended) {
                yield_now().await;
            }
            until(|| Arc::strong_count(&held) == 1);
        });
    });
}

/// More of them than there are workers. The ticks are counted, and so is what another thread of the receptor hears,
/// while they block.
#[test]
fn threads_that_block_hold_up_no_other_thread_of_their_receptor_and_no_job() {
    for workers in [1, 2] {
        let _watch = watch();
        let runtime = runtime(workers);
        let tickers = Tickers::start(&runtime, 50);
        let blocker = Blocker::default();
        let (sender, heard) = mpsc::channel();
        let receptor = runtime.block_on(async {
            let receptor = Receptor::<u32>::start().unwrap();
            for _ in 0..4 {
                let blocker = blocker.clone();
                receptor.spawn(move |_| blocker.block());
            }
            receptor
        });
        until(|| blocker.begun() == 4);
        runtime.block_on(async {
            let hears = receptor.spawn_with_id(move |thread| {
                thread.set_handler(move |n| sender.send(n).unwrap());
            });
            let hears = hears.await.unwrap();
            for n in 0..100 {
                receptor.send(hears, n);
            }
        });
        assert!(heard.iter().take(100).eq(0..100));
        tickers.tick(100);
        blocker.open();
        runtime.block_on(async { receptor.end() });
        tickers.end(&runtime);
    }
}
