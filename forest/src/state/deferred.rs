//! Deferred work: the wakes and the frees that a combiner leaves for the moment after it has released the
//! right to commit.
//!
//! Waking a thread is a system call, and may cost the caller its processor at once; a foreign waker may do
//! anything; and freeing a version costs as much as creating it. A thread that holds the right to commit
//! does none of these.

use std::any::Any;
use std::collections::BTreeMap;
use std::task::Waker;

use super::root::RootRef;
use crate::wake::wake;

/// Dropping it does the work.
#[derive(Default)]
pub(crate) struct Deferred {
    /// First, because waiters are woken before versions are freed.
    more: Option<Box<More>>,
    /// Usually one version is let go, and nothing else is to be done.
    last: Option<RootRef>,
}

#[derive(Default)]
struct More {
    wakers: Vec<Waker>,
    others: Vec<RootRef>,
    /// Versions that may take long to free. An author of their tree frees them, if one has an answer with which
    /// they can go.
    large: Vec<RootRef>,
    abandoned: Vec<Box<dyn Any + Send>>,
}

impl Deferred {
    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    pub(crate) fn wake_later(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        let mut wakers = wakers.into_iter();
        if let Some(first) = wakers.next() {
            self.more().wakers.extend([first].into_iter().chain(wakers));
        }
    }

    pub(crate) fn wake_watches(&mut self, wakers: Option<BTreeMap<u64, Waker>>) {
        if let Some(wakers) = wakers {
            self.wake_later(wakers.into_values());
        }
    }

    pub(crate) fn free_later(&mut self, root: Option<RootRef>) {
        if let Some(root) = root
            && let Some(before) = self.last.replace(root)
        {
            self.more().others.push(before);
        }
    }

    pub(crate) fn free_large_later(&mut self, root: RootRef) {
        self.more().large.push(root);
    }

    pub(crate) fn take_large(&mut self) -> Vec<RootRef> {
        let more = self.more.as_mut();
        more.map(|more| std::mem::take(&mut more.large))
            .unwrap_or_default()
    }

    pub(crate) fn drop_later(&mut self, abandoned: Option<impl Any + Send>) {
        if let Some(abandoned) = abandoned {
            self.more().abandoned.push(Box::new(abandoned));
        }
    }

    /// Whether a waiter is to be woken.
    pub(crate) fn is_waited_for(&self) -> bool {
        let more = self.more.as_ref();
        more.is_some_and(|more| !more.wakers.is_empty())
    }

    /// How many versions are to be freed.
    pub(crate) fn versions(&self) -> usize {
        let more = self.more.as_ref();
        usize::from(self.last.is_some())
            + more.map_or(0, |more| more.others.len() + more.large.len())
    }
}

impl Drop for More {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(|waker| wake(Some(waker)));
    }
}
