//! What a combiner leaves to be done when others may commit again: those to wake, and the versions to free.
//!
//! To wake a thread is a call of the system, and it may cost the caller its processor at once; a foreign waker
//! may do anything; and to free a version costs as much as to make it. None of that is done by one who has
//! the right to commit.

use std::sync::Arc;
use std::task::Waker;

use crate::request::wake;
use crate::root::Root;

/// Dropped, it is done.
#[derive(Default)]
pub(crate) struct Aftermath {
    wakers: Vec<Waker>,
    /// Mostly one version is let go, and that takes no list.
    last: Option<Arc<Root>>,
    others: Vec<Arc<Root>>,
}

impl Aftermath {
    pub(crate) fn wake_later(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.wakers.extend(wakers);
    }

    pub(crate) fn free_later(&mut self, root: Option<Arc<Root>>) {
        if let Some(root) = root {
            self.others.extend(self.last.replace(root));
        }
    }

    /// Whether somebody waits for it.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.wakers.is_empty()
    }

    /// How many versions wait to be freed.
    pub(crate) fn versions(&self) -> usize {
        usize::from(self.last.is_some()) + self.others.len()
    }
}

impl Drop for Aftermath {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(|waker| wake(Some(waker)));
    }
}
