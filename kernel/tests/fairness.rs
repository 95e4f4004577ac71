//! Fairness: jobs that yield take turns, the budget ends long polls, and neither the next slot nor a computing
//! job starves others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use futures_channel::mpsc as channel;
use futures_util::StreamExt;
use tools::{runtime, until, watch};
use weald_kernel::{
    JoinHandle, Mailbox, Runtime, Spawn, Wait, interval, sleep, sleep_until, spawn, yield_now,
};

async fn receive<M>(mailbox: &mut Mailbox<M>) -> M {
    std::future::poll_fn(|cx| mailbox.poll_receive(cx)).await
}

#[test]
fn jobs_that_yield_take_turns() {
    let _watch = watch();
    // Whoever is held up by a busy machine keeps its place.
    let builder = Runtime::builder().workers(1);
    let runtime = builder
        .stuck_after(Duration::from_secs(1000))
        .build()
        .unwrap();
    let turns = Arc::new(Mutex::new(Vec::new()));
    let kept = turns.clone();
    let all = runtime.spawn(async move {
        let jobs: Vec<_> = (0..5)
            .map(|n| {
                let turns = turns.clone();
                spawn(async move {
                    for _ in 0..20 {
                        turns.lock().unwrap().push(n);
                        yield_now().await;
                    }
                })
            })
            .collect();
        for job in jobs {
            job.await.unwrap();
        }
    });
    runtime.block_on(all).unwrap();
    let expected: Vec<_> = (0..20).flat_map(|_| 0..5).collect();
    assert_eq!(*kept.lock().unwrap(), expected);
}

#[test]
fn a_mailbox_that_is_always_full_starves_no_other_job() {
    let _watch = watch();
    let runtime = runtime(1);
    let (ran, received) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (other, counted) = (ran.clone(), received.clone());
    let job = runtime.spawn(async move {
        let (greedy, address) = Spawn::new()
            .spawn_with_mailbox(|mut mailbox: Mailbox<u32>| async move {
                let own = mailbox.address();
                while !ran.load(Ordering::SeqCst) {
                    let message = receive(&mut mailbox).await;
                    received.fetch_add(1, Ordering::SeqCst);
                    own.post(message).unwrap();
                }
            })
            .unwrap();
        address.post(1).unwrap();
        address.post(2).unwrap();
        let starved = spawn(async move { other.store(true, Ordering::SeqCst) });
        greedy.await.unwrap();
        starved.await.unwrap();
    });
    runtime.block_on(job).unwrap();
    // The greedy job had its budget of 128 per poll, and few polls.
    assert!(counted.load(Ordering::SeqCst) <= 3 * 128);
}

#[test]
fn the_builder_sets_the_budget() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .poll_budget(5)
        .build()
        .unwrap();
    let job = runtime.spawn(async {
        let (receiving, address) = Spawn::new()
            .spawn_with_mailbox(|mut mailbox: Mailbox<u32>| async move {
                let others = Arc::new(AtomicUsize::new(0));
                let counts = others.clone();
                let other = spawn(async move {
                    loop {
                        counts.fetch_add(1, Ordering::SeqCst);
                        yield_now().await;
                    }
                });
                let mut seen = Vec::new();
                for _ in 0..20 {
                    receive(&mut mailbox).await;
                    seen.push(others.load(Ordering::SeqCst));
                }
                other.cancel();
                seen
            })
            .unwrap();
        for n in 0..20 {
            address.post(n).unwrap();
        }
        receiving.await.unwrap()
    });
    let seen = runtime.block_on(job).unwrap();
    let mut turns: Vec<_> = seen.chunk_by(|a, b| a == b).map(<[usize]>::len).collect();
    turns.pop();
    assert_eq!(turns, [5, 5, 5]);
}

#[test]
fn two_jobs_that_wake_each_other_starve_no_third() {
    let _watch = watch();
    let runtime = runtime(1);
    let hops = Arc::new(AtomicUsize::new(0));
    let ran = Arc::new(AtomicBool::new(false));
    let (counted, set) = (hops.clone(), ran.clone());
    let job = runtime.spawn(async move {
        // Ping-pong through two channels: each message puts the other job into the next slot.
        let (to_ping, mut ping) = channel::unbounded::<u32>();
        let (to_pong, mut pong) = channel::unbounded::<u32>();
        let pinging = spawn({
            let (ran, hops) = (ran.clone(), hops.clone());
            async move {
                while !ran.load(Ordering::SeqCst) {
                    hops.fetch_add(1, Ordering::SeqCst);
                    to_pong.unbounded_send(0).unwrap();
                    ping.next().await;
                }
            }
        });
        let ponging = spawn(async move {
            while let Some(n) = pong.next().await {
                if to_ping.unbounded_send(n).is_err() {
                    return;
                }
            }
        });
        yield_now().await;
        let third = spawn(async move { set.store(true, Ordering::SeqCst) });
        third.await.unwrap();
        pinging.await.unwrap();
        ponging.await.unwrap();
    });
    runtime.block_on(job).unwrap();
    assert!(counted.load(Ordering::SeqCst) < 1_000);
}

/// Two jobs wake each other, and a third one always yields; the limit is 4. The third runs after the job that came from
/// the ring and the 4 that came from the next slot, however many looks the worker took meanwhile.
#[test]
fn a_row_from_the_next_slot_is_as_long_as_the_builder_says() {
    let _watch = watch();
    let builder = Runtime::builder().workers(1).next_slot_runs(4);
    let runtime = builder.build().unwrap();
    let runs = Arc::new(Mutex::new(Vec::new()));
    let seen = runs.clone();
    let job = runtime.spawn(async move {
        let (to_ping, mut ping) = channel::unbounded::<u32>();
        let (to_pong, mut pong) = channel::unbounded::<u32>();
        let (pings, pongs, thirds) = (seen.clone(), seen.clone(), seen);
        let pinging = spawn(async move {
            for n in 0..1_000 {
                pings.lock().unwrap().push('p');
                to_pong.unbounded_send(n).unwrap();
                ping.next().await;
            }
        });
        let ponging = spawn(async move {
            while let Some(n) = pong.next().await {
                pongs.lock().unwrap().push('p');
                if to_ping.unbounded_send(n).is_err() {
                    return;
                }
            }
        });
        let third = spawn(async move {
            for _ in 0..100 {
                thirds.lock().unwrap().push('t');
                yield_now().await;
            }
        });
        pinging.await.unwrap();
        ponging.await.unwrap();
        third.await.unwrap();
    });
    runtime.block_on(job).unwrap();
    let runs = runs.lock().unwrap();
    let mut rows: Vec<_> = runs.split(|run| *run == 't').map(<[char]>::len).collect();
    // The usual row: where the system stops a thread for long, another one serves its worker, and a row is cut.
    rows.sort_unstable();
    assert_eq!(rows[rows.len() / 2], 5, "{rows:?}");
}

#[test]
fn jobs_from_outside_are_served_while_the_worker_is_busy() {
    let _watch = watch();
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    yield_now().await;
                }
            })
        })
        .collect();
    for n in 0..200 {
        assert_eq!(
            runtime.block_on(runtime.spawn(async move { n })).unwrap(),
            n
        );
    }
    stop.store(true, Ordering::SeqCst);
    busy.into_iter()
        .for_each(|job| runtime.block_on(job).unwrap());
}

#[test]
fn a_computing_job_delays_no_other_while_a_worker_is_idle() {
    let _watch = watch();
    // The monitor would retake a stuck worker only after an hour: what runs was stolen as overdue.
    let hour = Duration::from_secs(3600);
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(hour)
        .build()
        .unwrap();
    for _ in 0..5 {
        let latch = tools::Latch::default();
        let (waits, (ran, has_run)) = (latch.clone(), mpsc::channel());
        let woken = runtime.spawn(async move {
            waits.await;
            ran.send(()).unwrap();
        });
        tools::until(|| latch.waiters() == 1);
        let computing = runtime.spawn(async move {
            // Puts the job into this worker's next slot, which no thief may touch.
            latch.open();
            while has_run.try_recv().is_err() {
                std::hint::spin_loop();
            }
        });
        runtime.block_on(async { (computing.await.unwrap(), woken.await.unwrap()) });
    }
    assert!(runtime.metrics().overdue >= 1, "{:?}", runtime.metrics());
    assert_eq!(runtime.metrics().detached, 0);
}

#[test]
fn a_timer_behind_a_computing_job_is_served_by_an_idle_worker() {
    let _watch = watch();
    let hour = Duration::from_secs(3600);
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(hour)
        .build()
        .unwrap();
    let ticks = Arc::new(AtomicUsize::new(0));
    let counted = ticks.clone();
    let computing = runtime.spawn(async move {
        let ticking = spawn(async move {
            // Armed again and again, on whichever worker runs the job.
            let mut clock = interval(Duration::from_millis(1));
            for _ in 0..20 {
                clock.tick().await;
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        weald_kernel::sleep(Duration::from_millis(1)).await;
        while !ticking.is_finished() {
            std::hint::spin_loop();
        }
    });
    runtime.block_on(computing).unwrap();
    assert_eq!(ticks.load(Ordering::SeqCst), 20);
}

#[test]
fn everything_a_computing_job_has_spawned_or_woken_runs_meanwhile() {
    let _watch = watch();
    let hour = Duration::from_secs(3600);
    // Up to more jobs than fit into a queue of fixed length.
    for count in [10, 300, 1_000, 5_000] {
        let runtime = Runtime::builder()
            .workers(2)
            .stuck_after(hour)
            .build()
            .unwrap();
        let latches: Vec<_> = (0..count).map(|_| tools::Latch::default()).collect();
        let ran = Arc::new(AtomicUsize::new(0));
        for latch in &latches {
            let (waits, ran) = (latch.clone(), ran.clone());
            runtime
                .spawn(async move {
                    waits.await;
                    ran.fetch_add(1, Ordering::SeqCst);
                })
                .detach();
        }
        tools::until(|| latches.iter().all(|latch| latch.waiters() == 1));
        let computing = runtime.spawn(async move {
            for latch in &latches {
                let ran = ran.clone();
                latch.open();
                spawn(async move {
                    ran.fetch_add(1, Ordering::SeqCst);
                })
                .detach();
            }
            while ran.load(Ordering::SeqCst) < 2 * count {
                std::hint::spin_loop();
            }
        });
        runtime.block_on(computing).unwrap();
    }
}

#[test]
fn pinned_jobs_and_others_take_turns_in_proportion_to_their_number() {
    const PINNED: usize = 50;
    const ROUNDS: usize = 100;
    let _watch = watch();
    let builder = Runtime::builder().workers(1);
    let runtime = builder
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap();
    let (turns, left) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(PINNED)),
    );
    let unpinned = {
        let (turns, left) = (turns.clone(), left.clone());
        async move {
            while left.load(Ordering::SeqCst) > 0 {
                turns.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
        }
    };
    let spawned = runtime.spawn(async move {
        let mut jobs = vec![spawn(unpinned)];
        jobs.extend((0..PINNED).map(|_| {
            let left = left.clone();
            spawn(async move {
                (0..ROUNDS).for_each(|_| yield_now().wait());
                left.fetch_sub(1, Ordering::SeqCst);
            })
        }));
        for job in jobs {
            job.await.unwrap();
        }
    });
    runtime.block_on(spawned).unwrap();
    // About as many as each of the others, not as many as all together; some came before all had started.
    let turns = turns.load(Ordering::SeqCst);
    assert!((ROUNDS / 2..4 * ROUNDS).contains(&turns), "{turns}");
}

fn spin(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// More than half of what a ring holds.
const CROWD: usize = 600;

/// Jobs that fill the ring of the only worker, and have 50 µs each before they yield.
struct Crowd {
    stop: Arc<AtomicBool>,
    runs: Arc<AtomicUsize>,
    jobs: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// Each job calls `look` at the begin of each run.
    fn start(runtime: &Runtime, look: impl Fn() + Clone + Send + 'static) -> Crowd {
        let (stop, runs) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let job = |_| {
            let (stop, runs, look) = (stop.clone(), runs.clone(), look.clone());
            runtime.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    runs.fetch_add(1, Ordering::SeqCst);
                    look();
                    spin(Duration::from_micros(50));
                    yield_now().await;
                }
            })
        };
        let jobs = (0..CROWD).map(job).collect();
        until(|| runs.load(Ordering::SeqCst) > CROWD);
        Crowd { stop, runs, jobs }
    }

    fn end(self, runtime: &Runtime) {
        self.stop.store(true, Ordering::SeqCst);
        for job in self.jobs {
            runtime.block_on(job).unwrap();
        }
    }
}

/// The median: the system may take the core at any moment.
fn median(mut counts: Vec<usize>) -> usize {
    counts.sort_unstable();
    counts[counts.len() / 2]
}

#[test]
fn a_job_whose_timer_is_due_waits_for_no_round_of_the_ring() {
    let _watch = watch();
    let runtime = runtime(1);
    let late = Arc::new(AtomicUsize::new(0));
    let due = Arc::new(Mutex::new(None::<Instant>));
    let (counted, deadline) = (late.clone(), due.clone());
    let crowd = Crowd::start(&runtime, move || {
        let is_due = deadline
            .lock()
            .unwrap()
            .is_some_and(|due| due <= Instant::now());
        counted.fetch_add(usize::from(is_due), Ordering::SeqCst);
    });
    let sleeper = runtime.spawn(async move {
        let mut runs = Vec::new();
        for _ in 0..21 {
            let deadline = Instant::now() + Duration::from_millis(1);
            late.store(0, Ordering::SeqCst);
            *due.lock().unwrap() = Some(deadline);
            sleep_until(deadline).await;
            *due.lock().unwrap() = None;
            runs.push(late.load(Ordering::SeqCst));
        }
        median(runs)
    });
    let runs = runtime.block_on(sleeper).unwrap();
    assert!(runs < CROWD / 2, "{runs} runs came first");
    crowd.end(&runtime);
}

#[test]
fn a_job_that_another_thread_wakes_waits_for_no_round_of_the_ring() {
    let _watch = watch();
    let runtime = runtime(1);
    let crowd = Crowd::start(&runtime, || ());
    let runs = crowd.runs.clone();
    let (wakes, mut woken) = channel::unbounded();
    let (answers, answered) = mpsc::channel();
    let job = runtime.spawn(async move {
        while let Some(before) = woken.next().await {
            let _ended = answers.send(runs.load(Ordering::SeqCst) - before);
        }
    });
    let wake = |_| {
        // Until the job waits again: it would take a message that is there already.
        let answered_at = crowd.runs.load(Ordering::SeqCst);
        until(|| crowd.runs.load(Ordering::SeqCst) > answered_at + 1);
        wakes
            .unbounded_send(crowd.runs.load(Ordering::SeqCst))
            .unwrap();
        answered.recv().unwrap()
    };
    // The least: this thread may lose its core between the count and the wake.
    let late = (0..21).map(wake).min().unwrap();
    assert!(late < CROWD / 2, "{late} runs came first");
    drop(wakes);
    runtime.block_on(job).unwrap();
    crowd.end(&runtime);
}

/// At each look a timer is due. This holds by the limit of jobs between two looks: it would fail if a look came after
/// each first job, not without the mechanism of the first job.
#[test]
fn jobs_whose_timers_are_due_starve_no_ring() {
    let _watch = watch();
    let runtime = runtime(1);
    let crowd = Crowd::start(&runtime, || ());
    let stop = crowd.stop.clone();
    let sleeper = |_| {
        let stop = stop.clone();
        runtime.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1)).await;
                spin(Duration::from_millis(2));
            }
        })
    };
    let sleepers: Vec<_> = (0..4).map(sleeper).collect();
    let before = crowd.runs.load(Ordering::SeqCst);
    until(|| crowd.runs.load(Ordering::SeqCst) > before + CROWD);
    crowd.end(&runtime);
    for sleeper in sleepers {
        runtime.block_on(sleeper).unwrap();
    }
}

/// Both timers come due while a third job computes, so one look finds both. The first job's stack waits, so it is
/// pinned.
#[test]
fn a_pinned_job_whose_timer_is_due_runs_before_the_job_of_a_later_timer() {
    let _watch = watch();
    let builder = Runtime::builder().workers(1);
    let builder = builder.stuck_after(Duration::from_secs(3600));
    let runtime = builder.build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (early, late) = (order.clone(), order.clone());
    let all = runtime.spawn(async move {
        let now = Instant::now();
        let [first, second] = [20, 25].map(|after| now + Duration::from_millis(after));
        let pinned = spawn(async move {
            sleep_until(first).wait();
            early.lock().unwrap().push("pinned");
        });
        let other = spawn(async move {
            sleep_until(second).await;
            late.lock().unwrap().push("other");
        });
        // Until both wait.
        yield_now().await;
        yield_now().await;
        spin(Duration::from_millis(40));
        pinned.await.unwrap();
        other.await.unwrap();
    });
    runtime.block_on(all).unwrap();
    assert_eq!(*order.lock().unwrap(), ["pinned", "other"]);
}
