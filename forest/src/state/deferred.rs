//! Deferred work: the wakes and the frees that a combiner leaves for the moment after it has released the
//! right to commit.
//!
//! Waking a thread is a system call, and may cost the caller its processor at once; a foreign waker may do
//! anything; and freeing a version costs as much as creating it. A thread that holds the right to commit
//! does none of these.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use super::root::Root;

/// Dropping it does the work.
#[derive(Default)]
pub(crate) struct Deferred {
    wakers: Vec<Waker>,
    /// Usually one version is let go, and a single version takes no list.
    last: Option<Arc<Root>>,
    others: Vec<Arc<Root>>,
}

impl Deferred {
    pub(crate) fn wake_later(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.wakers.extend(wakers);
    }

    pub(crate) fn free_later(&mut self, root: Option<Arc<Root>>) {
        if let Some(root) = root {
            self.others.extend(self.last.replace(root));
        }
    }

    /// Whether a waiter is to be woken.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.wakers.is_empty()
    }

    /// How many versions are to be freed.
    pub(crate) fn versions(&self) -> usize {
        usize::from(self.last.is_some()) + self.others.len()
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(|waker| wake(Some(waker)));
    }
}

/// Wakes, and catches the panic of a foreign waker, so that the others are still woken.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}
