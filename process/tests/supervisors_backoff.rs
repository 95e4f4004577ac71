//! The pauses before a child is started again, to the millisecond: the test runtime's time advances only when nothing
//! can run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use children::{HOUR, MS};
use tools::watch;
use weald_kernel::{Runtime, now, sleep};
use weald_process::{Backoff, ChildSpec, Inbox, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);
const IDS: [&str; 10] = [
    "worker 0", "worker 1", "worker 2", "worker 3", "worker 4", "worker 5", "worker 6", "worker 7",
    "worker 8", "worker 9",
];
/// How long the starts of a child last, one after the other. All later ones last for ever.
const LIVES: [Duration; 9] = [
    Duration::ZERO,
    Duration::ZERO,
    Duration::ZERO,
    Duration::ZERO,
    Duration::ZERO,
    // Not longer than `LONGEST`, so the pauses stay long.
    Duration::from_secs(700),
    // Longer: they begin anew.
    Duration::from_secs(900),
    Duration::ZERO,
    Duration::ZERO,
];
const FIRST: Duration = Duration::from_secs(100);
const LONGEST: Duration = Duration::from_secs(800);
/// The pause after each of those, without the jitter, in seconds.
const PAUSES: [u32; LIVES.len()] = [100, 200, 400, 800, 800, 800, 100, 200, 400];
/// A sleep ends within a tick after its time, and two follow each other.
const TICKS: Duration = Duration::from_millis(2);

type Times = Arc<Mutex<Vec<Instant>>>;

/// A child that crashes after each of its lives, and the times of its starts.
fn child(id: &'static str) -> (ChildSpec, Times) {
    let times = Times::default();
    let started = times.clone();
    let spec = ChildSpec::process(id, move |_: Inbox<()>| {
        let mut started = started.lock().unwrap();
        let life = LIVES.get(started.len()).copied();
        started.push(now());
        async move {
            sleep(life.unwrap_or(1_000 * HOUR)).await;
            panic!("on purpose")
        }
    });
    (spec, times)
}

/// The pauses of each child.
fn pauses(seed: u64, backoff: Option<Backoff>) -> Vec<Vec<Duration>> {
    let (specs, times): (Vec<ChildSpec>, Vec<Times>) = IDS.into_iter().map(child).unzip();
    Runtime::test(seed).block_on(async {
        let mut supervisor = Supervisor::new(Strategy::OneForOne).intensity(usize::MAX, HOUR);
        for spec in specs {
            supervisor = supervisor.child(match backoff {
                Some(backoff) => spec.backoff(backoff),
                None => spec,
            });
        }
        let supervisor = supervisor.start().await.unwrap();
        sleep(10 * HOUR).await;
        supervisor.stop().await;
    });
    let of_one = |times: &Times| {
        let times = times.lock().unwrap();
        assert_eq!(times.len(), LIVES.len() + 1, "each crash has its restart");
        let between = times.windows(2).zip(LIVES);
        between.map(|(two, life)| two[1] - two[0] - life).collect()
    };
    times.iter().map(of_one).collect()
}

#[test]
fn pauses_double_up_to_the_longest_and_begin_anew_with_at_most_a_quarter_of_jitter() {
    let _watch = watch();
    let backoff = Backoff {
        first: FIRST,
        longest: LONGEST,
    };
    for seed in 0..20 {
        for (child, pauses) in IDS.iter().zip(pauses(seed, Some(backoff))) {
            for (pause, least) in pauses.iter().zip(PAUSES) {
                let least = least * SECOND;
                let most = least + least / 4 + TICKS;
                assert!((least..=most).contains(pause), "{child}: {pauses:?}");
            }
        }
    }
}

#[test]
fn children_that_crash_together_are_started_one_by_one() {
    let _watch = watch();
    let backoff = Backoff {
        first: FIRST,
        longest: LONGEST,
    };
    for seed in 0..5 {
        let pauses = pauses(seed, Some(backoff));
        for crash in 0..LIVES.len() {
            let least = PAUSES[crash] * SECOND;
            let jitters: BTreeSet<Duration> = pauses.iter().map(|all| all[crash] - least).collect();
            let apart = |(one, next): (&Duration, &Duration)| *next - *one > TICKS;
            assert!(
                jitters.iter().zip(jitters.iter().skip(1)).all(apart),
                "{jitters:?}"
            );
            assert_eq!(jitters.len(), IDS.len(), "{jitters:?}");
            // They spread over more than half of the quarter.
            let spread = *jitters.last().unwrap() - *jitters.first().unwrap();
            assert!(spread > least / 8, "after crash {crash}: {jitters:?}");
        }
    }
}

#[test]
fn the_jitter_of_a_child_changes_from_crash_to_crash_and_not_from_run_to_run() {
    let _watch = watch();
    let backoff = Backoff {
        first: FIRST,
        longest: FIRST,
    };
    let tick = |pause: &Duration| pause.as_millis() / 10;
    let of_run = |seed| -> Vec<Vec<u128>> {
        let pauses = pauses(seed, Some(backoff));
        pauses
            .iter()
            .map(|all| all.iter().map(tick).collect())
            .collect()
    };
    let first = of_run(0);
    // Of the first five crashes, none follows a long life.
    for pauses in &first {
        let different: BTreeSet<&u128> = pauses[..5].iter().collect();
        assert_eq!(different.len(), 5, "{pauses:?}");
    }
    for seed in 1..10 {
        for (before, now) in first.iter().flatten().zip(of_run(seed).iter().flatten()) {
            assert!(before.abs_diff(*now) <= 1, "{before} {now}");
        }
    }
}

#[test]
fn without_a_backoff_a_child_is_started_again_at_once() {
    let _watch = watch();
    for seed in 0..50 {
        for pauses in pauses(seed, None) {
            assert!(pauses.iter().all(|pause| *pause <= MS), "{pauses:?}");
        }
    }
}
