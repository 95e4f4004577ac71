//! Which workers sleep, and which one is woken: no lost wake-up, and few needless ones.
//!
//! A worker without work *searches* (its victims and the injector), then *sleeps*. The counts of both are
//! one word, so that a thread that made work visible decides with one load.
//!
//! Protocol:
//! - publisher: put the job where others can see it; fence; load the counts; if a worker sleeps and none
//!   searches, wake one sleeper, which counts as searching from then on. The owner of a worker that puts a job into its
//!   own ring takes a light fence, every other publisher a full one.
//! - sleeper: prepare the sleep, which moves it from searching to sleeping; fence; check for visible work once more; if
//!   there is some, retract the sleep, else park. The fence is heavy, because an owner may be about to pass its light
//!   one. For the last worker to fall asleep a full fence is enough, because no owner is awake then: each owner saw its
//!   own ring empty, and passed its own fence, before it slept. An owner that wakes meanwhile takes the lock of the
//!   list after the last sleeper, so it sees that sleeper. And if a thread lost its worker after such a push, the
//!   worker's next owner saw the job in the ring.
//!
//! Why no wake-up is lost: by the two fences, either the publisher sees the sleeper, or the sleeper's last check sees
//! the job. If the publisher saw a searcher instead, there are two cases. The searcher becomes a sleeper, whose last
//! check comes after its move. Or it finds work, and the last searcher to do so looks for more: two full fences ensure
//! that either the publisher sees that the search has ended, or the last searcher sees the job. The publisher executes
//! its full fence only if a worker sleeps.
//!
//! Why few are needless: jobs in the next slot or in a private ring ([`crate::queue::sharing`]) are not visible work,
//! so they wake no worker. Nor do fewer than 16 lazy jobs: the last check ignores these, and their owner wakes a worker
//! for those that stay, or the monitor finds them in one of its rounds. And one searcher at a time is enough, because a
//! searcher that found work wakes the next one if more is left.

use crate::sys::{AtomicUsize, Mutex, Ordering, barrier, lock};

const SEARCHING: usize = 1 << 32;
const SLEEPING: usize = 1;
const SLEEPING_MASK: usize = SEARCHING - 1;

/// The searching and the sleeping workers; an `S` is the means to wake one.
pub(crate) struct Sleepers<S> {
    /// Searching workers in the upper half, sleeping ones in the lower. Every change is SeqCst, and none has to be: the
    /// fences of the protocol order it.
    counts: AtomicUsize,
    sleepers: Mutex<Vec<(usize, S)>>,
    workers: usize,
}

impl<S> Sleepers<S> {
    /// At first, all workers run.
    pub(crate) fn new(workers: usize) -> Sleepers<S> {
        Sleepers {
            counts: AtomicUsize::new(0),
            sleepers: Mutex::new(Vec::with_capacity(workers)),
            workers,
        }
    }

    /// Called after work became visible. Returns the sleeper to wake, if any. Any thread.
    #[inline(always)]
    #[must_use]
    pub(crate) fn take_one(&self) -> Option<S> {
        barrier::full();
        self.take_after_fence()
    }

    /// As [`take_one`](Sleepers::take_one), by the owner of a worker, after it has put a job into its own ring.
    #[inline(always)]
    #[must_use]
    pub(crate) fn take_for_own_ring(&self) -> Option<S> {
        barrier::light();
        self.take_after_fence()
    }

    #[inline(always)]
    fn take_after_fence(&self) -> Option<S> {
        let counts = self.counts.load(Ordering::Relaxed);
        if counts & SLEEPING_MASK == 0 {
            return None;
        }
        self.take_newest()
    }

    #[cold]
    fn take_newest(&self) -> Option<S> {
        // Pairs with the fence in `end_search`: a searcher that is still counted here sees the work
        // when it ends its search.
        barrier::full();
        if self.is_searched() {
            return None;
        }
        let mut sleepers = lock(&self.sleepers);
        if self.is_searched() {
            return None;
        }
        let (_, sleeper) = sleepers.pop()?;
        self.counts
            .fetch_add(SEARCHING - SLEEPING, Ordering::SeqCst);
        Some(sleeper)
    }

    /// Whether any worker slept or searched a moment ago.
    pub(crate) fn are_any_idle(&self) -> bool {
        self.counts.load(Ordering::Relaxed) != 0
    }

    fn is_searched(&self) -> bool {
        self.counts.load(Ordering::Relaxed) >= SEARCHING
    }

    /// Takes the given worker from the list, if it sleeps, for the caller to wake: because of something that concerns
    /// it alone, such as an earlier timer. The worker looks for it once more after it has prepared its sleep. If no
    /// worker sleeps, this takes no lock: the caller may have a low priority, and each thread that falls asleep or
    /// wakes takes the lock.
    #[must_use]
    pub(crate) fn take_sleeper_of(&self, worker: usize) -> Option<S> {
        // Pairs with the fence in `prepare`: this sees the sleeper, or the sleeper's last check sees what the caller
        // did.
        barrier::full();
        if self.sleeping() == 0 {
            return None;
        }
        let mut sleepers = lock(&self.sleepers);
        let place = sleepers.iter().position(|(other, _)| *other == worker)?;
        self.counts
            .fetch_add(SEARCHING - SLEEPING, Ordering::SeqCst);
        Some(sleepers.remove(place).1)
    }

    /// Takes all sleepers, each with its worker, for the caller to wake: because of something that concerns all
    /// (shutdown, trim). They count as searching.
    #[must_use]
    pub(crate) fn take_all(&self) -> Vec<(usize, S)> {
        self.take_all_after(|| ()).1
    }

    /// As [`take_all`](Sleepers::take_all), after `act`, which runs under the lock of the list: a worker that has
    /// prepared its sleep, sees what `act` did, and so does not park, is taken, too.
    #[must_use]
    pub(crate) fn take_all_after<R>(&self, act: impl FnOnce() -> R) -> (R, Vec<(usize, S)>) {
        let mut sleepers = lock(&self.sleepers);
        let acted = act();
        let count = sleepers.len();
        self.counts
            .fetch_add(count * SEARCHING - count * SLEEPING, Ordering::SeqCst);
        (acted, sleepers.drain(..).collect())
    }

    /// The calling worker begins to search, if fewer than half of the workers do. False if it may not.
    pub(crate) fn start_search(&self) -> bool {
        let searching = self.counts.load(Ordering::Relaxed) / SEARCHING;
        if 2 * searching >= self.workers {
            return false;
        }
        self.counts.fetch_add(SEARCHING, Ordering::SeqCst);
        true
    }

    /// The calling worker found work. True if it was the last searcher: it then calls
    /// [`Sleepers::take_one`] if it sees more work.
    #[must_use]
    pub(crate) fn end_search(&self) -> bool {
        let is_last = self.counts.fetch_sub(SEARCHING, Ordering::SeqCst) / SEARCHING == 1;
        // Pairs with the fence in `take_newest`: a publisher that relied on this searcher published
        // before this fence, so the caller sees the work.
        barrier::full();
        is_last
    }

    /// Prepares the sleep of the calling worker: others count it as asleep from now on. It must then check for visible
    /// work once more, and either call [`Sleepers::retract`] or park until [`Sleepers::is_asleep`] is false.
    pub(crate) fn prepare(&self, worker: usize, sleeper: S, from: Before) {
        let mut sleepers = lock(&self.sleepers);
        sleepers.push((worker, sleeper));
        match from {
            Before::Searching => {
                self.counts
                    .fetch_sub(SEARCHING - SLEEPING, Ordering::SeqCst);
            }
            Before::Running => {
                self.counts.fetch_add(SLEEPING, Ordering::SeqCst);
            }
        }
        let is_last = sleepers.len() == self.workers;
        drop(sleepers);
        match is_last {
            true => barrier::full(),
            false => barrier::heavy(),
        }
    }

    /// The calling worker does not sleep, or no longer. It counts as searching from now on, whether it retracted its
    /// sleep or was woken.
    pub(crate) fn retract(&self, worker: usize) {
        let mut sleepers = lock(&self.sleepers);
        let Some(place) = sleepers.iter().position(|(other, _)| *other == worker) else {
            return;
        };
        sleepers.remove(place);
        self.counts
            .fetch_add(SEARCHING - SLEEPING, Ordering::SeqCst);
    }

    /// Whether the calling worker has not been woken yet.
    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        lock(&self.sleepers)
            .iter()
            .any(|(other, _)| *other == worker)
    }

    /// How many workers slept or searched a moment ago.
    pub(crate) fn idle(&self) -> usize {
        let counts = self.counts.load(Ordering::Relaxed);
        (counts & SLEEPING_MASK) + counts / SEARCHING
    }

    /// How many workers slept a moment ago.
    pub(crate) fn sleeping(&self) -> usize {
        self.counts.load(Ordering::Relaxed) & SLEEPING_MASK
    }
}

/// What a worker that is about to sleep did until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It searched, and counts as searching.
    Searching,
    /// It ran jobs; enough other workers searched.
    Running,
}
