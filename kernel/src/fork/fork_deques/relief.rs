//! Relief: one part of a fork that is begun although the quarantine is full, because the thread that forked it waits,
//! and may wait for that very part.
//!
//! While all threads of the quarantine are held, no thief takes a part of a suspect line: its owner runs it. But an
//! owner that waits, or blocks, cannot. If what holds the threads waits for that owner in turn, nothing would ever go
//! on. So the monitor *offers* a relief to one such owner after the other. A thief *takes* it, with the owner's oldest
//! stack job; if the owner has none, but a scope with parts that nobody runs, the monitor takes it for a runner. That
//! job goes before all others in the quarantine, and gets a thread of those that are left for workers. The relief ends
//! when the job begins to run, or is dropped. The next one is offered once the job has ended, waits, or has exceeded
//! the bound, unless there are more workers.
//!
//! A thief may have taken such a part plainly, a moment before the quarantine was full. Then it waits there, and its
//! owner has no offer to expect. So the *queue* of the quarantine has its turn like an owner while a stolen part waits
//! in it: the monitor puts the first of these before all others. Nobody asks whether its owner waits by then.
//!
//! Half of the threads that are left may go this way as fast as the rounds come, as for jobs that are tried. Of the
//! others one goes each second ([`PAUSE`]): a burst of parts that block for a while should not take them all, but parts
//! that block for ever must not stop a fork while there is any thread.
//!
//! The state is [`NONE`], [`TAKEN`], or the number of the fork deque to which a relief is offered, or [`QUEUE`]:
//! - none to offered, and offered to none or to another: the monitor only;
//! - offered to taken: a thief, or the monitor;
//! - offered to the queue, to none: the monitor, which takes it at once;
//! - taken to none: the drop of the one [`Relief`].

use std::time::{Duration, Instant};

use crate::{
    fork::fork_deques,
    scheduler::{services::ThreadsLeft, workers::shared},
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// How long the monitor waits before it gives one of the last threads away, and before the next one.
const PAUSE: Duration = Duration::from_secs(1);

const NONE: usize = usize::MAX;
const TAKEN: usize = usize::MAX - 1;
/// The queue of the quarantine, among the numbers of fork deques: the last in turn.
pub(super) const QUEUE: usize = usize::MAX - 2;

/// The reliefs of a runtime: one at a time.
pub(in crate::fork) struct Reliefs {
    /// Relaxed: it only grants a right. What its holder takes is ordered by the lock of a deque, or of a scope.
    state: AtomicUsize,
    pace: Mutex<Pace>,
}

/// What the monitor remembers.
struct Pace {
    /// The fork deque that had an offer last: the next one is that of another, if there is one.
    last: usize,
    /// Since when an owner has lacked a relief, or when the last one was offered.
    since: Option<Instant>,
}

/// The right to begin one part. Its drop ends the relief.
pub(in crate::fork) struct Relief {
    runtime: u16,
}

impl Drop for Relief {
    fn drop(&mut self) {
        if let Some(shared) = shared::find(self.runtime) {
            let reliefs = fork_deques::of(&shared).reliefs();
            reliefs.state.store(NONE, Ordering::Relaxed);
        }
    }
}

impl Reliefs {
    pub(in crate::fork) fn new() -> Reliefs {
        Reliefs {
            state: AtomicUsize::new(NONE),
            pace: Mutex::new(Pace {
                last: 0,
                since: None,
            }),
        }
    }

    /// Whether a relief is offered to the fork deque with this number. Any thread.
    pub(in crate::fork) fn is_offered_to(&self, number: usize) -> bool {
        self.state.load(Ordering::Relaxed) == number
    }

    /// Whether a job was taken, and has not begun yet. Any thread.
    pub(in crate::fork) fn is_taken(&self) -> bool {
        self.state.load(Ordering::Relaxed) == TAKEN
    }

    /// Takes the relief that is offered to the fork deque with this number. Any thread.
    pub(in crate::fork) fn take(&self, number: usize, runtime: u16) -> Option<Relief> {
        self.replace(number, TAKEN).then_some(Relief { runtime })
    }

    /// The queue has what it was offered: a part in it goes before all others. Called by the monitor.
    pub(super) fn end_offer_to_queue(&self) {
        self.state.store(NONE, Ordering::Relaxed);
    }

    /// Offers a relief to one of the fork deques with the numbers `lacking`, if so many threads are left, and takes an
    /// offer to any other back. Returns the number of the one to which it is offered. Called by the monitor in each
    /// round.
    pub(in crate::fork) fn offer<I: Iterator<Item = usize>>(
        &self,
        left: ThreadsLeft,
        lacking: impl Fn() -> I,
        now: Instant,
    ) -> Option<usize> {
        let mut pace = lock(&self.pace);
        let before = self.state.load(Ordering::Relaxed);
        if before == TAKEN {
            return None;
        }
        // While no thread is left, it is asked only to find out whether the pause is over: this walks over all forks.
        let is_asked = left != ThreadsLeft::None || pace.since.is_some();
        let is_lacked = is_asked && lacking().next().is_some();
        if !is_lacked {
            pace.since = None;
        }
        let is_due = is_lacked
            && match left {
                ThreadsLeft::None => false,
                ThreadsLeft::Last if before == NONE => {
                    now.duration_since(*pace.since.get_or_insert(now)) >= PAUSE
                }
                _ => true,
            };
        let next = is_due.then(|| match lacking().any(|number| number == before) {
            true => Some(before),
            false => {
                let later = lacking().filter(|number| *number > pace.last).min();
                later.or_else(|| lacking().min())
            }
        });
        let next = next.flatten();
        // If a thief has taken it meanwhile, nothing is offered.
        if !self.replace(before, next.unwrap_or(NONE)) {
            return None;
        }
        if let Some(next) = next {
            pace.last = next;
            pace.since = Some(now);
        }
        next
    }

    fn replace(&self, from: usize, to: usize) -> bool {
        let relaxed = Ordering::Relaxed;
        let replaced = self.state.compare_exchange(from, to, relaxed, relaxed);
        replaced.is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn offer(
        reliefs: &Reliefs,
        left: ThreadsLeft,
        lacking: &[usize],
        now: Instant,
    ) -> Option<usize> {
        reliefs.offer(left, || lacking.iter().copied(), now)
    }

    #[test]
    fn each_owner_has_an_offer_in_turn() {
        let (reliefs, now) = (Reliefs::new(), Instant::now());
        for number in [2, 5, 7, 2] {
            assert_eq!(
                offer(&reliefs, ThreadsLeft::Many, &[5, 2, 7], now),
                Some(number)
            );
            // It stays while nobody takes it.
            assert_eq!(
                offer(&reliefs, ThreadsLeft::Many, &[7, 2, 5], now),
                Some(number)
            );
            assert!(reliefs.take(number + 1, 0).is_none());
            let relief = reliefs.take(number, 0);
            assert!(relief.is_some() && reliefs.is_taken());
            assert!(reliefs.take(number, 0).is_none());
            assert_eq!(offer(&reliefs, ThreadsLeft::Many, &[5, 2, 7], now), None);
            drop(relief);
            // No runtime has this number, so nobody has told.
            assert!(reliefs.replace(TAKEN, NONE));
        }
    }

    #[test]
    fn the_queue_of_the_quarantine_has_its_turn_like_an_owner() {
        let (reliefs, now) = (Reliefs::new(), Instant::now());
        for number in [3, 8, QUEUE, 3] {
            let offered = offer(&reliefs, ThreadsLeft::Many, &[8, 3, QUEUE], now);
            assert_eq!(offered, Some(number));
            match number {
                QUEUE => reliefs.end_offer_to_queue(),
                _ => assert!(reliefs.take(number, 0).is_some() && reliefs.replace(TAKEN, NONE)),
            }
        }
    }

    #[test]
    fn an_offer_to_one_that_goes_on_passes_to_the_next() {
        let (reliefs, now) = (Reliefs::new(), Instant::now());
        assert_eq!(offer(&reliefs, ThreadsLeft::Many, &[1, 3], now), Some(1));
        assert_eq!(offer(&reliefs, ThreadsLeft::Many, &[3], now), Some(3));
        assert_eq!(offer(&reliefs, ThreadsLeft::Many, &[], now), None);
        assert!(reliefs.take(3, 0).is_none());
        assert_eq!(offer(&reliefs, ThreadsLeft::None, &[3], now), None);
    }

    #[test]
    fn the_last_threads_go_one_each_second() {
        let (reliefs, begin) = (Reliefs::new(), Instant::now());
        let at = |tenths: u32, lacking: &[usize]| {
            let now = begin + tenths * PAUSE / 10;
            let offered = offer(&reliefs, ThreadsLeft::Last, lacking, now);
            if let Some(number) = offered {
                let taken = reliefs.take(number, 0);
                assert!(taken.is_some() && reliefs.replace(TAKEN, NONE));
            }
            offered
        };
        let answers = [0, 9, 10, 11, 19, 20].map(|tenths| at(tenths, &[4]));
        assert_eq!(answers, [None, None, Some(4), None, None, Some(4)]);
        // Nobody lacked one for a moment.
        assert_eq!(at(21, &[]), None);
        let answers = [30, 39, 40].map(|tenths| at(tenths, &[4]));
        assert_eq!(answers, [None, None, Some(4)]);
    }

    #[test]
    fn the_first_of_the_last_threads_goes_after_a_second_although_an_earlier_burst_lacked_one() {
        let (reliefs, begin) = (Reliefs::new(), Instant::now());
        let at = |seconds: u32, left, lacking: &[usize]| {
            offer(&reliefs, left, lacking, begin + seconds * PAUSE)
        };
        assert_eq!(at(0, ThreadsLeft::Last, &[4]), None);
        // The quarantine has room again.
        assert_eq!(at(1, ThreadsLeft::None, &[]), None);
        assert_eq!(at(10, ThreadsLeft::Last, &[4]), None);
        assert_eq!(at(11, ThreadsLeft::Last, &[4]), Some(4));
    }
}
