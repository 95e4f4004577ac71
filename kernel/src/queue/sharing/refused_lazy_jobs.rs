//! Lazy jobs that the system has refused what they need, such as a stack: a list of the runtime, in the order in which
//! jobs were to be made of them.
//!
//! A try costs a call of the system, and it is in vain for all of them if it is for the oldest. So one worker at a time
//! tries, at its look, the oldest first and up to the first that is refused. After a try for nothing there is a pause.
//!
//! Nobody is forgotten: while there are some, a worker is awake, or sleeps no longer than the pause. A worker that
//! falls asleep looks for them after it has prepared its sleep, and whoever adds the first wakes a sleeper then
//! ([`sleepers`](crate::queue::sleepers)); a worker that finds other work wakes the next one. What a worker takes out
//! for a try stays counted, because that worker may compute for long after it has put it back.
//!
//! # Safety
//! *Linked*, *alive*: as in [`lazy_jobs`](crate::queue::sharing::lazy_jobs).

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::{
    queue::sharing::lazy_jobs::{LazyJob, LazyJobs, REFUSED, TakenLazyJobs, make_one},
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// The pause after a first try for nothing. Each further one doubles it.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

pub(crate) struct RefusedLazyJobs {
    /// How many are in the list, or were taken out for a try. Written under the lock; read without it as a hint, which
    /// the fences of [`Sleepers`](crate::queue::sleepers::Sleepers) order.
    count: AtomicUsize,
    inner: Mutex<RefusedList>,
}

struct RefusedList {
    list: LazyJobs,
    pause: Duration,
    /// When the next try may begin. None: at once.
    not_before: Option<Instant>,
}

impl RefusedLazyJobs {
    pub(crate) fn new() -> RefusedLazyJobs {
        RefusedLazyJobs {
            count: AtomicUsize::new(0),
            inner: Mutex::new(RefusedList {
                list: LazyJobs::new(),
                pause: PAUSE,
                not_before: None,
            }),
        }
    }

    /// Whether there are some. Any thread, a moment old.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn count(&self, by: isize) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        self.count
            .store(count.wrapping_add_signed(by), Ordering::Relaxed);
        count == 0
    }

    /// Adds some behind all others. True if there was none: then the caller wakes a sleeper. Any thread.
    ///
    /// # Safety
    /// *Alive*; the caller has taken them out.
    #[must_use]
    pub(crate) unsafe fn add(&self, refused: TakenLazyJobs) -> bool {
        let mut inner = lock(&self.inner);
        let mut added = 0;
        for lazy in refused {
            // SAFETY: *alive*.
            let lazy = unsafe { &*lazy };
            // SAFETY: the caller's promise.
            unsafe { inner.list.link_last(lazy, REFUSED) };
            added += 1;
        }
        self.count(added)
    }

    /// Takes one out, if it is here. Any thread.
    pub(crate) fn remove(&self, lazy: &LazyJob) -> bool {
        let mut inner = lock(&self.inner);
        let is_here = lazy.is_refused();
        if is_here {
            // SAFETY: it is here.
            unsafe { inner.list.remove(lazy) };
            self.count(-1);
        }
        is_here
    }

    /// When the next try is due. None: there is nothing to try.
    pub(crate) fn next_try(&self, now: Instant) -> Option<Instant> {
        self.is_any()
            .then(|| lock(&self.inner).not_before.unwrap_or(now))
    }

    /// Tries again, unless another one does, or has tried a moment ago. By a worker, outside of any lock.
    ///
    /// # Safety
    /// The caller may call what makes jobs of them.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn retry(&self, now: Instant) {
        let mut has_made = false;
        let Some(mut lazy) = self.begin(now) else {
            return;
        };
        loop {
            // SAFETY: the caller's promise; it was taken out.
            let is_made = unsafe { make_one(lazy) };
            has_made |= is_made;
            let mut inner = lock(&self.inner);
            if is_made {
                self.count(-1);
            } else {
                // SAFETY: *alive*: nothing was made of it.
                let lazy = unsafe { &*lazy };
                // SAFETY: as above; it was taken out.
                unsafe { inner.list.link_first(lazy, REFUSED) };
            }
            let next = is_made.then(|| self.take_first(&mut inner)).flatten();
            match next {
                Some(next) => lazy = next,
                None => return inner.end(now, has_made),
            }
        }
    }

    /// Begins a try: takes the oldest out. The others do not try meanwhile.
    fn begin(&self, now: Instant) -> Option<*const LazyJob> {
        let mut inner = lock(&self.inner);
        if inner.not_before.is_some_and(|next| now < next) {
            return None;
        }
        inner.not_before = Some(now + inner.pause);
        self.take_first(&mut inner)
    }

    /// It stays counted until a job was made of it: whoever falls asleep meanwhile must not sleep for long.
    fn take_first(&self, inner: &mut RefusedList) -> Option<*const LazyJob> {
        inner.list.take_oldest(1).0.next()
    }
}

impl RefusedList {
    /// A try has ended. If it has made some, it is worth another one soon: what these use may be free by then.
    fn end(&mut self, began: Instant, has_made: bool) {
        (self.pause, self.not_before) = match has_made {
            true => (PAUSE, None),
            false => (
                (self.pause * 2).min(LONGEST_PAUSE),
                Some(began + self.pause),
            ),
        };
    }
}
