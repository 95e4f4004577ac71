//! The workloads of channels, locks and the like.
//!
//! All channels of may are unbounded, and its `select!` starts a coroutine for each branch of each
//! selection, so there is no `select`.

use std::hint::black_box;
use std::sync::Arc;

use common::{
    Inside, Kind, Thing, Waiting, bad_usage, fail, per, print_footprint, print_metrics,
    total_messages,
};
use may::coroutine::yield_now;
use may::sync::mpsc;
use may::sync::{Barrier, Condvar, Mutex};

use crate::check_map_limit;
use crate::team::Team;

pub(crate) fn run(waiting: Waiting) {
    match waiting {
        Waiting::Channel {
            senders,
            messages,
            kind: Kind::Unbounded,
        } => channel(senders, messages),
        Waiting::Lock {
            units,
            rounds,
            inside,
        } => lock(units, rounds, inside),
        Waiting::Condvar { rounds } => condvar(rounds),
        Waiting::Barrier { units, rounds } => barrier(units, rounds),
        Waiting::Footprint { n, what } => footprint(n, what),
        Waiting::Select { .. } => {
            bad_usage("may starts a coroutine for each branch: leave it out.")
        }
        Waiting::Channel { .. } => unbounded_only(),
    }
}

fn unbounded_only() -> ! {
    bad_usage("The channels of may are unbounded: give kind=unbounded.")
}

fn footprint(n: usize, what: Thing) -> ! {
    match what {
        Thing::Mutex => print_footprint(n, || Mutex::new(())),
        Thing::Channel(Kind::Unbounded) => print_footprint(n, mpsc::channel::<u64>),
        Thing::Channel(_) => unbounded_only(),
    }
}

fn channel(senders: usize, messages: usize) {
    check_map_limit(senders);
    let (sender, receiver) = mpsc::channel();
    let mut team = Team::of(senders + 1);
    team.add(move || {
        for _ in 0..senders * messages {
            let value: u64 = receiver.recv().expect("a sender is kept until the end");
            black_box(value);
        }
    });
    for _ in 0..senders {
        let sender = sender.clone();
        team.add(move || {
            for value in 0..messages as u64 {
                sender
                    .send(value)
                    .expect("the receiver waits for all messages");
            }
        });
    }
    let elapsed = team.run();
    print_metrics(&[(
        "ns_per_message",
        per(elapsed, total_messages(senders, messages)),
    )]);
}

fn lock(units: usize, rounds: usize, inside: Inside) {
    check_map_limit(units);
    let count = Arc::new(Mutex::new(0_u64));
    let mut team = Team::of(units);
    for _ in 0..units {
        let count = Arc::clone(&count);
        team.add(move || {
            for _ in 0..rounds {
                let mut count = count.lock().expect("no holder panics");
                if inside == Inside::Yield {
                    yield_now();
                }
                *count += 1;
            }
        });
    }
    let elapsed = team.run();
    if *count.lock().expect("no holder panics") != (units * rounds) as u64 {
        fail("The lock let two in at once: the count is wrong.");
    }
    print_metrics(&[("ns", per(elapsed, total_messages(units, rounds)))]);
}

fn condvar(rounds: usize) {
    let turn = Arc::new((Mutex::new(0), Condvar::new()));
    let mut team = Team::of(2);
    for me in 0..2 {
        let turn = Arc::clone(&turn);
        team.add(move || {
            let (of, changed) = &*turn;
            let mut of = of.lock().expect("no holder panics");
            for _ in 0..rounds {
                while *of != me {
                    of = changed.wait(of).expect("no holder panics");
                }
                *of = 1 - me;
                changed.notify_one();
            }
        });
    }
    let elapsed = team.run();
    print_metrics(&[("ns", per(elapsed, rounds as f64))]);
}

fn barrier(units: usize, rounds: usize) {
    check_map_limit(units);
    let barrier = Arc::new(Barrier::new(units));
    let mut team = Team::of(units);
    for _ in 0..units {
        let barrier = Arc::clone(&barrier);
        team.add(move || {
            for _ in 0..rounds {
                barrier.wait();
            }
        });
    }
    let elapsed = team.run();
    print_metrics(&[("ns", per(elapsed, rounds as f64))]);
}
