//! The threads of a journal: how they wait, and how they are woken when there is work.

use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::ahead::LATE;
use crate::core::Core;
use crate::leading::LOOK;
use crate::next_step::{NextStep, State};

impl Core {
    /// Wakes threads of the journal if there is work, unless those that are awake are enough. Foreign wakers are run by
    /// `wakes`.
    pub(crate) fn wake_threads(&self, mut state: MutexGuard<'_, State>) {
        let has_work = state.must_write()
            || state.may_sync()
            || state.leading.wants_watch()
            || state.wants_await();
        let calls = has_work && state.idle > 0 && !state.is_called;
        state.is_called |= calls;
        let prepares = !state.is_preparing && state.must_prepare();
        let ends = state.is_closing;
        drop(state);
        if ends {
            self.threads.notify_all();
        } else if calls {
            self.threads.notify_one();
        }
        if prepares {
            self.preparer.notify_one();
        }
    }

    /// The life of a thread that writes and syncs.
    pub(crate) fn serve(&self) {
        let mut state = self.state();
        loop {
            match state.next(self.settings.silence) {
                NextStep::Stop => break,
                NextStep::Rest(limit) => state = self.rest(state, limit),
                NextStep::Watch => {
                    state.leading.is_watched = true;
                    state = self.rest(state, Some(LOOK));
                    state.leading.is_watched = false;
                }
                NextStep::Await(left) => {
                    state.regroup.is_watched = true;
                    state = self.rest(state, Some(left));
                    state.regroup.is_watched = false;
                }
                NextStep::Gather => {
                    self.wake_threads(state);
                    thread::yield_now();
                    state = self.state();
                    if let Some(step) = state.end_gathering() {
                        state = self.act(state, step);
                    }
                }
                step => state = self.act(state, step),
            }
        }
        drop(state);
        self.threads.notify_all();
    }

    /// Does what was decided, and wakes other threads for the rest that is due.
    fn act<'a>(&'a self, state: MutexGuard<'a, State>, step: NextStep) -> MutexGuard<'a, State> {
        self.wake_threads(state);
        self.carry_out(step);
        self.state()
    }

    /// Waits for a call, at most for this long.
    fn rest<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        state.idle += 1;
        let waited = match limit {
            None => self.threads.wait(state),
            Some(limit) => match self.threads.wait_timeout(state, limit) {
                Ok((state, _)) => Ok(state),
                Err(error) => Err(PoisonError::new(error.into_inner().0)),
            },
        };
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state.is_called = false;
        state
    }

    /// The life of the thread that prepares segments.
    pub(crate) fn serve_preparer(&self) {
        let mut state = self.state();
        while !state.is_closing {
            if state.must_prepare() {
                state.is_preparing = true;
                drop(state);
                self.prepare();
                state = self.state();
            } else if state.log.ahead.is_some() {
                // Its author may be late.
                let waited = self.preparer.wait_timeout(state, LATE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                let waited = self.preparer.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
