//! When wakers run, and when none may.
//!
//! The threads of a journal, and authors that write (`lead.rs`), wake the units that wait for a level. A waker is
//! foreign code, and may have a handle of the forest for a moment. If the user drops the last other handle just then,
//! the waker's handle becomes the last one, and the journal would be closed later, on that thread. So the drop of the
//! last handle waits until no waker runs, and lets none begin meanwhile (`without`). Then the journal is closed when
//! the drop returns.
//!
//! A waker may also close the journal. Then it waits for the journal's threads, which may have wakers to run, and it
//! does not count as running meanwhile (`uncounted`). Otherwise the drop would wait for that waker, the waker for the
//! threads, and the threads for the drop.

use std::cell::Cell;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// The journal whose wakers this thread runs; null, if it runs none.
    static WAKES: Cell<*const Wakes> = const { Cell::new(ptr::null()) };
}

/// Whether this thread runs wakers of some journal.
fn is_waking() -> bool {
    !WAKES.get().is_null()
}

#[derive(Default)]
pub(crate) struct Wakes {
    state: Mutex<Running>,
    changed: Condvar,
}

#[derive(Default)]
struct Running {
    /// How many threads run wakers.
    threads: usize,
    is_held: bool,
}

/// This thread runs wakers until it is dropped, even if something panics.
struct Waking;

impl Waking {
    fn of(wakes: &Wakes) -> Self {
        WAKES.set(wakes);
        Self
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        WAKES.set(ptr::null());
    }
}

/// Ends what it began, even if something panics.
struct End<'a>(&'a Wakes, fn(&mut Running));

impl Drop for End<'_> {
    fn drop(&mut self) {
        let Self(wakes, end) = self;
        end(&mut wakes.state());
        wakes.changed.notify_all();
    }
}

impl Wakes {
    fn state(&self) -> MutexGuard<'_, Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, mut until: impl FnMut(&Running) -> bool) -> MutexGuard<'a, Running> {
        let waits = |state: &mut Running| !until(state);
        let state = self.changed.wait_while(self.state(), waits);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs wakers.
    pub(crate) fn run(&self, wake: impl FnOnce()) {
        // A waker that makes others due waits for nobody.
        if is_waking() {
            return wake();
        }
        self.wait(|state| !state.is_held).threads += 1;
        let _end = End(self, |state| state.threads -= 1);
        let _waking = Waking::of(self);
        wake();
    }

    /// Waits for other threads, which may have wakers to run. If this thread runs some itself, it does not count
    /// meanwhile.
    pub(crate) fn uncounted<T>(&self, wait: impl FnOnce() -> T) -> T {
        if !ptr::eq(WAKES.get(), self) {
            return wait();
        }
        self.state().threads -= 1;
        self.changed.notify_all();
        // This does not wait for `without` to end, because its drop may need what `wait` has taken.
        let _again = End(self, |state| state.threads += 1);
        wait()
    }

    /// Does something while no wakers run, unless this thread runs them itself.
    pub(crate) fn without(&self, act: impl FnOnce()) {
        if is_waking() {
            return act();
        }
        self.wait(|state| !state.is_held).is_held = true;
        let _end = End(self, |state| state.is_held = false);
        drop(self.wait(|state| state.threads == 0));
        act();
    }

    /// Whether a caller waits in [`without`](Self::without), or is past that wait.
    #[cfg(test)]
    pub(crate) fn is_held(&self) -> bool {
        self.state().is_held
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_is_done_without_wakers_waits_for_those_that_run_and_lets_none_begin() {
        let wakes = &Wakes::default();
        std::thread::scope(|scope| {
            let ((begun, is_begun), (go_on, goes_on)) = (channel(), channel::<()>());
            let (done, is_done) = channel();
            scope.spawn(move || {
                wakes.run(|| {
                    begun.send(()).unwrap();
                    goes_on.recv().unwrap();
                    // A waker that wakes others.
                    wakes.run(|| ());
                    wakes.without(|| ());
                });
            });
            is_begun.recv().unwrap();
            let early = done.clone();
            scope.spawn(move || wakes.without(|| done.send("without").unwrap()));
            while !wakes.is_held() {
                std::thread::yield_now();
            }
            scope.spawn(move || wakes.run(|| early.send("woken").unwrap()));
            assert!(is_done.try_recv().is_err());
            go_on.send(()).unwrap();
            assert_eq!(is_done.recv(), Ok("without"));
            assert_eq!(is_done.recv(), Ok("woken"));
        });
        assert_eq!(wakes.state().threads, 0);
    }

    #[test]
    fn a_thread_runs_no_wakers_any_more_after_a_panic() {
        let wakes = Wakes::default();
        let panics = AssertUnwindSafe(|| wakes.run(|| panic!("a defect")));
        assert!(catch_unwind(panics).is_err());
        assert!(!is_waking());
        assert_eq!(wakes.state().threads, 0);
    }
}
