//! Threads that wait switch to one another without the loop between them: each end, panic and cancel in such a chain
//! reaches its own join, and the order is that of the queue.
//!
//! No test here sees whether a direct switch takes place: no metric counts them, and by design nothing else differs.
//! They would pass without any.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    hint::black_box,
    sync::{Arc, Mutex},
};

use on_workers::on_workers;
use weald_fiber::{self as thread, JoinError};
use weald_kernel::{Wait, fork};

#[test]
fn threads_that_yield_take_turns_in_the_order_of_the_queue() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    on_workers(1, move || {
        let threads: Vec<_> = (0..5)
            .map(|me| {
                let order = order.clone();
                thread::spawn(move || {
                    for _ in 0..100 {
                        order.lock().unwrap().push(me);
                        thread::yield_now();
                    }
                })
            })
            .collect();
        for handle in threads {
            handle.join().unwrap();
        }
    });
    let order = seen.lock().unwrap();
    for me in 0..5 {
        assert_eq!(order.iter().filter(|one| **one == me).count(), 100);
    }
    // Once all have begun, nobody has a second turn before every other has had one.
    for turns in order[50..400].windows(5) {
        let mut turns = turns.to_vec();
        turns.sort_unstable();
        assert_eq!(turns, [0, 1, 2, 3, 4]);
    }
}

/// Forks until it is on a segment, and yields there.
fn yield_on_a_segment(depth: usize) {
    let frame = black_box([depth; 32]);
    match depth {
        0 => thread::yield_now(),
        _ => {
            fork::join(|| yield_on_a_segment(depth - 1), || ());
        }
    }
    black_box(frame);
}

// The kernel checks in debug builds that it knows the stack on which the next thread resumes.
#[test]
fn threads_that_yielded_on_segments_yield_on_their_own_stacks() {
    on_workers(1, || {
        let yields = || {
            yield_on_a_segment(2_000);
            (0..100).for_each(|_| thread::yield_now());
        };
        let threads = [thread::spawn(yields), thread::spawn(yields)];
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn each_end_in_a_chain_of_switches_reaches_its_own_join() {
    on_workers(1, || {
        let threads: Vec<_> = (0..30_usize)
            .map(|me| {
                thread::spawn(move || {
                    for round in 0.. {
                        thread::yield_now();
                        match (round == me, me % 3) {
                            (false, _) => {}
                            (true, 0) => return me,
                            (true, 1) => std::panic::resume_unwind(Box::new(me)),
                            (true, _) => thread::exit(me),
                        }
                    }
                    unreachable!("it ends in one of its rounds")
                })
            })
            .collect();
        for (me, handle) in threads.into_iter().enumerate() {
            match handle.join() {
                Ok(ended) => assert!(ended == me && me % 3 != 1),
                Err(JoinError::Panicked(panic)) => {
                    assert_eq!(*panic.into_payload().downcast::<usize>().unwrap(), me);
                    assert_eq!(me % 3, 1);
                }
                Err(other) => panic!("{other}"),
            }
        }
    });
}

#[test]
fn a_cancel_in_a_chain_of_switches_unwinds_the_thread_that_it_is_for() {
    on_workers(1, || {
        let dropped = Arc::new(Mutex::new(Vec::new()));
        struct Tells(usize, Arc<Mutex<Vec<usize>>>);
        impl Drop for Tells {
            fn drop(&mut self) {
                self.1.lock().unwrap().push(self.0);
            }
        }
        let threads: Vec<_> = (0..10_usize)
            .map(|me| {
                let tells = Tells(me, dropped.clone());
                thread::spawn(move || {
                    let _tells = tells;
                    loop {
                        thread::yield_now();
                    }
                })
            })
            .collect();
        thread::yield_now();
        for (me, handle) in threads.into_iter().enumerate() {
            handle.cancel();
            let ended: Result<(), _> = handle.join();
            assert!(matches!(ended, Err(JoinError::Cancelled)));
            assert_eq!(*dropped.lock().unwrap(), (0..=me).collect::<Vec<_>>());
        }
    });
}

#[test]
fn what_a_thread_waits_for_is_its_own_after_others_have_run_in_its_place() {
    on_workers(1, || {
        let (sender, receiver) = weald_sync::channel::bounded::<usize>(1);
        let receives = thread::spawn(move || {
            (0..1000)
                .map(|_| receiver.receive().wait().unwrap())
                .sum::<usize>()
        });
        let others: Vec<_> = (0..3)
            .map(|_| thread::spawn(|| (0..500).for_each(|_| thread::yield_now())))
            .collect();
        for number in 0..1000 {
            sender.send(number).wait().unwrap();
        }
        assert_eq!(receives.join().unwrap(), 499_500);
        for other in others {
            other.join().unwrap();
        }
    });
}
