//! Time limits without a runtime: what wakes for one of them does not delay the others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use weald_sync::{Wait, after};

const MILLISECOND: Duration = Duration::from_millis(1);

/// All tests use the same few threads: one after the other.
static THREADS: Mutex<()> = Mutex::new(());

/// A waker of another executor: tells that it is woken, and blocks until its latch opens.
struct Blocks {
    begun: Sender<()>,
    latch: Mutex<Receiver<()>>,
}

impl Wake for Blocks {
    fn wake(self: Arc<Blocks>) {
        self.begun.send(()).unwrap();
        _ = self.latch.lock().unwrap().recv();
    }
}

/// A wait for a moment, polled once with a waker that blocks.
struct BlockedWait {
    wait: Pin<Box<dyn Future<Output = ()>>>,
    /// Dropped, it opens the latch.
    _latch: Sender<()>,
}

fn wait_and_block(begun: &Sender<()>) -> BlockedWait {
    let (opens, latch) = mpsc::channel();
    let blocks = Blocks {
        begun: begun.clone(),
        latch: Mutex::new(latch),
    };
    let waker = Waker::from(Arc::new(blocks));
    // One whose first poll comes too late, because its thread has lost its core, has stored no waker.
    let wait = loop {
        let mut wait = Box::pin(after(MILLISECOND).into_future());
        let polled = wait.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            break wait;
        }
    };
    BlockedWait {
        wait,
        _latch: opens,
    }
}

/// Panics if `act` takes very long.
fn ends(act: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        act();
        done.send(()).unwrap();
    });
    is_done
        .recv_timeout(Duration::from_secs(60))
        .expect("it waits for a waker that blocks");
    thread.join().unwrap();
}

#[test]
fn a_waker_that_blocks_delays_no_other_time_limit() {
    let _alone = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, begun) = mpsc::channel();
    let mut blocked: Vec<_> = (0..3).map(|_| wait_and_block(&begin)).collect();
    // Those behind the first one begin, too.
    for _ in &blocked {
        begun.recv().unwrap();
    }
    ends(|| after(MILLISECOND).wait());
    assert!(blocked[0].wait.as_mut().poll(&mut noop()).is_ready());
}

#[test]
fn more_wakers_that_block_than_there_are_threads_delay_no_thread() {
    let _alone = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, begun) = mpsc::channel();
    let blocked: Vec<_> = (0..100).map(|_| wait_and_block(&begin)).collect();
    for _ in 0..64 {
        begun.recv().unwrap();
    }
    ends(|| after(MILLISECOND).wait());
    assert!(begun.try_recv().is_err(), "as many as there are threads");
    // Those that wait for a thread are called, although their waits are gone.
    drop((begin, blocked));
    assert_eq!(begun.iter().count(), 36);
}

fn noop() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
