//! Wakers that panic, with a payload whose destructor panics too: they keep nobody else from being woken.

#[path = "support/tools.rs"]
mod tools;

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tools::{Wait, commit};
use weald_forest::{Clock, Forest, Path, Since, SystemClock, Watch};

/// A payload whose destructor panics, with such a payload too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Self)
    }
}

struct Hostile;

impl Wake for Hostile {
    fn wake(self: Arc<Self>) {
        panic_any(Bomb)
    }
}

struct Told(Sender<()>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn a_commit_is_told_to_every_watch_and_to_its_author_although_a_waker_panics() {
    let forest = Forest::new();
    let tree = forest.create("notes").wait().unwrap();
    let (told, is_told) = channel();
    let sound = Waker::from(Arc::new(Told(told)));
    let wakers = [&sound, &Waker::from(Arc::new(Hostile)), &sound];
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
        let (told, is_told) = channel();
        clock.wake_at(Duration::ZERO, Waker::from(Arc::new(Hostile)));
        clock.wake_at(Duration::ZERO, Waker::from(Arc::new(Told(told))));
        assert_eq!(is_told.recv(), Ok(()), "round {round}");
    }
}
