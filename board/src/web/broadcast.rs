//! The events of one board, rendered once for all readers of its live updates.
//!
//! - The newest events are in a ring, each with the version that it made. A reader has the version that it was told
//!   last, and takes what is after it.
//! - If a reader is so slow that the ring no longer has its next event, it learns that, and reads on its own until it
//!   has caught up. So a slow reader costs neither memory nor the time of others.
//! - No waker is called, cloned or dropped under the lock: it may be anybody's.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use axum::body::Bytes;
use weald::forest::Version;
use weald::sync::IVar;

/// How many events the ring has. That is more than a late process adds at once, because otherwise all readers would
/// lose their place.
const KEPT: usize = 2_048;
/// How many of them a reader takes at once.
const AT_ONCE: usize = 64;

/// The events of a board, for any number of readers.
pub(crate) struct Broadcast {
    ring: Mutex<Ring>,
    /// Full once the board is followed (`true`), or will never be (`false`).
    begun: IVar<bool>,
}

struct Ring {
    /// The ring has all events after this version.
    base: Version,
    /// The version of the newest event.
    newest: Version,
    events: VecDeque<(Version, Bytes)>,
    is_over: bool,
    /// Each reader's, in the place that it was given.
    wakers: Vec<Option<Waker>>,
    /// Places that readers have given back.
    free: Vec<usize>,
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Events, up to this one.
    Events(Version, Bytes),
    /// Nothing yet; it will be woken.
    Nothing,
    /// Its next event is gone from the ring.
    Gone,
    /// No more events come.
    Over,
}

impl Broadcast {
    /// One that has all events after a version.
    pub(crate) fn after(base: Version) -> Self {
        let ring = Ring {
            base,
            newest: base,
            events: VecDeque::new(),
            is_over: false,
            wakers: Vec::new(),
            free: Vec::new(),
        };
        Self {
            ring: Mutex::new(ring),
            begun: IVar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The board is followed: what happens from now on is told.
    pub(crate) fn begin(&self) {
        // If it has ended already, that stays.
        let _is_over = self.begun.put(true);
    }

    /// Waits until the board is followed. `false` if that failed.
    pub(crate) async fn has_begun(&self) -> bool {
        *self.begun.get().await
    }

    /// A place for a further reader.
    pub(crate) fn join(&self) -> usize {
        let mut state = self.lock();
        state.free.pop().unwrap_or_else(|| {
            state.wakers.push(None);
            state.wakers.len() - 1
        })
    }

    /// Gives a reader's place back.
    pub(crate) fn leave(&self, place: usize) {
        let mut state = self.lock();
        let waker = state.wakers[place].take();
        state.free.push(place);
        drop(state);
        drop(waker);
    }

    /// The version of the newest event.
    pub(crate) fn newest(&self) -> Version {
        self.lock().newest
    }

    /// Whether the ring has all events after a version.
    pub(crate) fn has_all_after(&self, version: Version) -> bool {
        self.lock().base <= version
    }

    /// Whether no more events come.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Tells all readers of an event.
    pub(crate) fn tell(&self, version: Version, event: Bytes) {
        let mut state = self.lock();
        if state.events.len() == KEPT
            && let Some((gone, _)) = state.events.pop_front()
        {
            state.base = gone;
        }
        state.events.push_back((version, event));
        state.newest = version;
        wake(state);
    }

    /// No more events come.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        wake(state);
        // If it had begun, that stays. Those that wait find that it is over.
        let _has_begun = self.begun.put(false);
    }

    /// The events after a version, for the reader at a place.
    pub(crate) fn read(&self, place: usize, after: Version, waker: &Waker) -> Told {
        let state = self.lock();
        if let Some(told) = state.find(after) {
            return told;
        }
        let is_known = |known: &Waker| known.will_wake(waker);
        if state.wakers[place].as_ref().is_some_and(is_known) {
            return Told::Nothing;
        }
        drop(state);
        let waker = waker.clone();
        let mut state = self.lock();
        let old = state.wakers[place].replace(waker);
        // It may have come meanwhile.
        let told = state.find(after).unwrap_or(Told::Nothing);
        drop(state);
        drop(old);
        told
    }
}

impl Ring {
    fn find(&self, after: Version) -> Option<Told> {
        if after < self.base {
            return Some(Told::Gone);
        }
        let first = self
            .events
            .partition_point(|(version, _)| *version <= after);
        let mut found = self.events.range(first..).take(AT_ONCE);
        match (found.len(), found.next()) {
            (1, Some((version, event))) => Some(Told::Events(*version, event.clone())),
            (_, Some((version, event))) => {
                let (mut last, mut all) = (*version, event.to_vec());
                for (version, event) in found {
                    last = *version;
                    all.extend_from_slice(event);
                }
                Some(Told::Events(last, all.into()))
            }
            (_, None) => self.is_over.then_some(Told::Over),
        }
    }
}

fn wake(mut state: MutexGuard<'_, Ring>) {
    let wakers: Vec<Waker> = state.wakers.iter_mut().filter_map(Option::take).collect();
    drop(state);
    for waker in wakers {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn version(number: usize) -> Version {
        Version {
            incarnation: 1,
            number: number as u64,
        }
    }

    fn tell(all: &Broadcast, number: usize) {
        all.tell(version(number), format!("{number};").into());
    }

    #[test]
    fn each_reader_is_told_everything_once_and_woken_once() {
        let all = Broadcast::after(version(1));
        let counts: [Arc<Count>; 2] = Default::default();
        let wakers = counts.each_ref().map(|count| Waker::from(count.clone()));
        let places = [all.join(), all.join()];
        for (place, waker) in places.iter().zip(&wakers) {
            assert_eq!(all.read(*place, version(1), waker), Told::Nothing);
            // Asked again, it is woken once all the same.
            assert_eq!(all.read(*place, version(1), waker), Told::Nothing);
        }
        for number in [2, 5, 6] {
            tell(&all, number);
        }
        let woken = counts.each_ref().map(|it| it.0.load(Ordering::Relaxed));
        assert_eq!(woken, [1, 1]);
        let told = all.read(places[0], version(1), &wakers[0]);
        assert_eq!(told, Told::Events(version(6), "2;5;6;".into()));
        let told = all.read(places[1], version(5), &wakers[1]);
        assert_eq!(told, Told::Events(version(6), "6;".into()));
        assert_eq!(all.read(places[1], version(6), &wakers[1]), Told::Nothing);
        all.end();
        assert_eq!(all.read(places[1], version(6), &wakers[1]), Told::Over);
    }

    #[test]
    fn a_reader_waits_until_the_board_is_followed_and_learns_if_it_never_is() {
        let mut cx = Context::from_waker(Waker::noop());
        let all = Broadcast::after(version(1));
        let mut waiting = pin!(all.has_begun());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        all.begin();
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(true));
        all.end();
        assert_eq!(pin!(all.has_begun()).poll(&mut cx), Poll::Ready(true));

        let never = Broadcast::after(version(1));
        let mut waiting = pin!(never.has_begun());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        never.end();
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(false));
    }

    #[test]
    fn a_slow_reader_learns_that_its_next_event_is_gone() {
        let all = Broadcast::after(version(1));
        let place = all.join();
        for number in 2..=KEPT + 3 {
            tell(&all, number);
        }
        assert_eq!(all.read(place, version(2), Waker::noop()), Told::Gone);
        let Told::Events(last, _) = all.read(place, version(3), Waker::noop()) else {
            panic!("the ring has them");
        };
        assert_eq!(last, version(3 + AT_ONCE));
    }

    #[test]
    fn the_place_of_a_reader_that_left_is_used_again() {
        let all = Broadcast::after(version(1));
        let places = [all.join(), all.join()];
        assert_eq!(
            all.read(places[0], version(1), Waker::noop()),
            Told::Nothing
        );
        all.leave(places[0]);
        assert_eq!(all.join(), places[0]);
        assert!(all.lock().wakers.iter().all(Option::is_none));
    }
}
