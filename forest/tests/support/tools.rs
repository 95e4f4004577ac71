//! What several tests need: a clock that is set by hand, single polls, seeds.

#![allow(dead_code, reason = "each test uses some of it")]

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use weald_forest::{Attributes, Clock, Edit, Forest, NodeId, TreeHandle};

/// Waits with the thread; any executor's `block_on` would do.
pub(crate) trait Wait: IntoFuture + Sized {
    fn wait(self) -> Self::Output {
        pollster::block_on(self)
    }
}

impl<F: IntoFuture> Wait for F {}

/// A clock that stays still until it is advanced.
#[derive(Default)]
pub(crate) struct ManualClock(Mutex<(Duration, Vec<(Duration, Waker)>)>);

impl ManualClock {
    pub(crate) fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut state = self.0.lock().unwrap();
            state.0 += by;
            let now = state.0;
            let (due, later) = state.1.drain(..).partition(|(at, _)| *at <= now);
            state.1 = later;
            let due: Vec<(Duration, Waker)> = due;
            due.into_iter().map(|(_, waker)| waker).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + self.uptime()
    }

    fn uptime(&self) -> Duration {
        self.0.lock().unwrap().0
    }

    fn wake_at(&self, deadline: Duration, waker: Waker) {
        self.0.lock().unwrap().1.push((deadline, waker));
    }
}

/// A future that is polled by hand.
pub(crate) struct ByHand<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> ByHand<T> {
    pub(crate) fn new<F>(future: F) -> Self
    where
        F: IntoFuture<Output = T, IntoFuture: Send + 'static>,
    {
        Self(Box::pin(future.into_future()))
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.0
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    pub(crate) fn ready(&mut self) -> T {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future is still pending"),
        }
    }
}

/// A tree whose root has this many children.
pub(crate) fn with_children(forest: &Forest, count: usize) -> (TreeHandle, Vec<NodeId>) {
    let tree = forest.create("tree").wait().unwrap();
    let mut edit = tree.edit();
    let root = edit.root();
    let children = (0..count).map(|_| edit.append(root, Attributes::new()).unwrap());
    let children = children.collect();
    edit.commit().wait().unwrap();
    (tree, children)
}

/// An edit that puts one attribute of the root.
pub(crate) fn put(tree: &TreeHandle, name: &str, value: &str) -> Edit {
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_attribute(root, name, value).unwrap();
    edit
}

/// Commits one attribute of the root.
pub(crate) fn commit(tree: &TreeHandle, name: &str, value: &str) -> weald_forest::Committed {
    put(tree, name, value).commit().wait().unwrap()
}

pub(crate) fn value_of(tree: &TreeHandle, name: &str) -> Option<String> {
    tree.view().tree().root().get_str(name).map(str::to_owned)
}

/// Numbers that look random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Runs `round` with growing seeds for `WEALD_SOAK` seconds, or briefly if it is not set.
pub(crate) fn soak(round: impl Fn(&mut Random)) {
    let seconds = std::env::var("WEALD_SOAK")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = Instant::now() + seconds.map_or(Duration::from_millis(50), Duration::from_secs);
    for seed in 1.. {
        round(&mut Random(seed));
        if Instant::now() >= end {
            return;
        }
    }
}
