//! Wakers that panic, with a payload whose destructor panics too: they keep nobody else from being woken.

#[path = "support/tools.rs"]
mod tools;
#[path = "support/wakers.rs"]
mod wakers;

use std::task::Context;
use std::time::Duration;

use tools::{Wait, commit};
use weald_forest::{Clock, Forest, Path, Since, SystemClock, Watch};

#[test]
fn a_commit_is_told_to_every_watch_and_to_its_author_although_a_waker_panics() {
    let forest = Forest::new();
    let tree = forest.create("notes").wait().unwrap();
    let (sound, is_told) = wakers::sound();
    let wakers = [&sound, &wakers::hostile(), &sound];
    let watches = wakers.map(|waker| {
        let mut watch: Watch = tree.watch(&Path::default(), Since::Now).unwrap();
        let polled = watch.poll_next(&mut Context::from_waker(waker));
        assert!(polled.is_pending());
        watch
    });
    commit(&tree, "name", "value");
    assert_eq!(is_told.try_iter().count(), 2);
    drop(watches);
}

#[test]
fn the_clock_goes_on_waking_after_a_waker_has_panicked() {
    let clock = SystemClock::default();
    for round in 0..3 {
        let (sound, is_told) = wakers::sound();
        clock.wake_at(Duration::ZERO, wakers::hostile());
        clock.wake_at(Duration::ZERO, sound);
        assert_eq!(is_told.recv(), Ok(()), "round {round}");
    }
}
