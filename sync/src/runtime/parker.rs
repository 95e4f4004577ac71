//! The parker: an OS thread sleeps until a waker wakes it.
//!
//! - A wake is remembered in one flag until [`Parker::take`] takes it. So a wake that comes before the
//!   thread parks is not lost, and several wakes count as one.
//! - Only the first wake after a take unparks the thread.
//! - The thread's park token belongs to anyone who holds its `Thread`, so a park may end early. Callers
//!   look at the flag again.
//!
//! [`wait`] looks at the flag for a moment before it parks: the wait may take only about a microsecond, and a park with
//! its unpark costs more. By then it has polled with the real waker, so looking only reads the flag and costs no
//! further poll. A wait that is ready at its first poll pays nothing. The look ends with two yields, because the thread
//! that will wake this one may wait for this core. Without them 64 threads that commit to one tree did a fifth less,
//! and their slowest commits took twice as long. The price: on a machine that other programs load, each yield may give
//! them a time slice.

use std::{
    hint,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

/// Lets one thread, which created it, sleep until its waker is woken.
///
/// ```
/// use weald::sync::hooks::Parker;
///
/// let parker = Parker::new();
/// let waker = parker.waker();
/// std::thread::spawn(move || waker.wake());
/// while !parker.take() {
///     parker.park();
/// }
/// ```
#[derive(Debug)]
pub struct Parker {
    thread: Thread,
    woken: AtomicBool,
}

impl Parker {
    /// A parker of the calling thread, without a wake: for a caller that has polled, or polls before its
    /// first [`take`](Parker::take).
    #[must_use]
    pub fn new() -> Arc<Parker> {
        Arc::new(Parker {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        })
    }

    /// A parker of the calling thread that counts as woken: for a loop that begins with
    /// [`take`](Parker::take) and polls each time that returns true.
    #[must_use]
    pub fn woken() -> Arc<Parker> {
        Arc::new(Parker {
            thread: thread::current(),
            woken: AtomicBool::new(true),
        })
    }

    /// A waker that wakes the thread. Each wake unparks the thread unless an earlier wake was not yet taken.
    #[must_use]
    pub fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Whether `waker` came from [`Parker::waker`] of any parker, so that to wake it only unparks a thread. A runtime
    /// that fires wakers need not treat such a waker as user code.
    #[must_use]
    pub fn is_waker(waker: &Waker) -> bool {
        static SAMPLE: OnceLock<Waker> = OnceLock::new();
        // By the functions in the tables: each clone may have a table of its own. If two types of wakers shared their
        // functions, they would do the same.
        waker.vtable() == SAMPLE.get_or_init(|| Parker::new().waker()).vtable()
    }

    /// Takes the wake: whether there was one since the last call. What the waking thread did before is
    /// visible after.
    #[inline]
    #[must_use]
    pub fn take(&self) -> bool {
        // Acquire: pairs with the swap in `wake_by_ref`.
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Whether there is a wake that was not taken.
    #[inline]
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Parks the calling thread, unless there is a wake that was not taken. May return early. Called by the
    /// thread that created the parker.
    pub fn park(&self) {
        self.check_thread();
        if !self.is_woken() {
            thread::park();
        }
    }

    /// As [`park`](Parker::park), for `duration` at most.
    pub fn park_timeout(&self, duration: Duration) {
        self.check_thread();
        if !self.is_woken() {
            thread::park_timeout(duration);
        }
    }

    fn check_thread(&self) {
        debug_assert_eq!(
            self.thread.id(),
            thread::current().id(),
            "a parker parks the thread that created it"
        );
    }

    /// Looks for a wake for about a microsecond, then yields. Returns early if there is one.
    fn look(&self) {
        for round in 0..SPINS {
            for _ in 0..1 << round {
                hint::spin_loop();
            }
            if self.is_woken() {
                return;
            }
        }
        for _ in 0..YIELDS {
            thread::yield_now();
            if self.is_woken() {
                return;
            }
        }
    }
}

/// Rounds of a look; each spins twice as long as the one before.
const SPINS: u32 = 5;
/// How often a look yields after that. More would cost more on a loaded machine than a park does.
const YIELDS: u32 = 2;

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: pairs with the swap in `take`.
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Polls until `poll` is ready; looks for a wake and parks the thread between two polls.
pub(super) fn wait(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
    let parker = Parker::new();
    let waker = parker.waker();
    let mut cx = Context::from_waker(&waker);
    while poll(&mut cx).is_pending() {
        parker.look();
        while !parker.take() {
            parker.park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_park_is_not_lost() {
        let parker = Parker::new();
        assert!(!parker.take());
        parker.waker().wake();
        assert!(parker.is_woken());
        parker.park();
        assert!(parker.take() && !parker.take());
    }

    #[test]
    fn a_waker_of_a_parker_is_recognised_and_so_is_its_clone() {
        struct Other;
        impl Wake for Other {
            fn wake(self: Arc<Self>) {}
        }
        let waker = Parker::new().waker();
        assert!(Parker::is_waker(&waker) && Parker::is_waker(&waker.clone().clone()));
        let other = Waker::from(Arc::new(Other));
        assert!(!Parker::is_waker(&other) && !Parker::is_waker(Waker::noop()));
    }

    #[test]
    fn a_parker_that_counts_as_woken_has_one_wake() {
        let parker = Parker::woken();
        assert!(parker.take() && !parker.take());
    }

    #[test]
    fn a_wake_from_another_thread_ends_the_park() {
        let parker = Parker::new();
        let waker = parker.waker();
        let thread = thread::spawn(move || waker.wake());
        while !parker.take() {
            parker.park();
        }
        thread.join().unwrap();
    }

    #[test]
    fn a_park_with_a_limit_ends_without_a_wake() {
        let parker = Parker::new();
        parker.park_timeout(Duration::from_millis(1));
        assert!(!parker.is_woken());
    }
}
