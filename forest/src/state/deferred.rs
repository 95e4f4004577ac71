//! Deferred work: the wakes and the frees that a combiner leaves for the moment after it has released the
//! right to commit.
//!
//! Waking a thread is a system call, and may cost the caller its processor at once; a foreign waker may do
//! anything; and freeing a version costs as much as creating it. A thread that holds the right to commit
//! does none of these.

use std::any::Any;
use std::task::Waker;

use super::root::RootRef;
use crate::wake::wake;

/// Dropping it does the work.
#[derive(Default)]
pub(crate) struct Deferred {
    wakers: Vec<Waker>,
    /// Usually one version is let go, and a single version takes no list.
    last: Option<RootRef>,
    others: Vec<RootRef>,
    /// Versions that may take long to free. An author of their tree frees them, if one has an answer with which
    /// they can go.
    large: Vec<RootRef>,
    abandoned: Vec<Box<dyn Any + Send>>,
}

impl Deferred {
    pub(crate) fn wake_later(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.wakers.extend(wakers);
    }

    pub(crate) fn free_later(&mut self, root: Option<RootRef>) {
        if let Some(root) = root {
            self.others.extend(self.last.replace(root));
        }
    }

    pub(crate) fn free_large_later(&mut self, root: RootRef) {
        self.large.push(root);
    }

    pub(crate) fn take_large(&mut self) -> Vec<RootRef> {
        std::mem::take(&mut self.large)
    }

    pub(crate) fn drop_later(&mut self, abandoned: Option<impl Any + Send>) {
        if let Some(abandoned) = abandoned {
            self.abandoned.push(Box::new(abandoned));
        }
    }

    /// Whether a waiter is to be woken.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.wakers.is_empty()
    }

    /// How many versions are to be freed.
    pub(crate) fn versions(&self) -> usize {
        usize::from(self.last.is_some()) + self.others.len() + self.large.len()
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(|waker| wake(Some(waker)));
    }
}
