//! Waiting until a process has a name.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use weald_kernel::{current_runtime, note_wait, poll_budget};
use weald_sync::reason::{Kind, Reason};

use super::{Entry, Key, Name, NameError, registry};
use crate::pid::Pid;

/// The future of [`Name::registered`].
#[must_use = "a wait does nothing unless it is awaited"]
pub struct Registered<'a, M> {
    name: &'a Name<M>,
    /// Where its waker is, once it has waited.
    waiter: Option<(Key, u64)>,
}

impl<'a, M> Registered<'a, M> {
    pub(super) fn new(name: &'a Name<M>) -> Registered<'a, M> {
        let waiter = None;
        Registered { name, waiter }
    }
}

impl<M: Send + 'static> Future for Registered<'_, M> {
    type Output = Result<Pid<M>, NameError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if poll_budget(cx).is_pending() {
            return Poll::Pending;
        }
        let waker = cx.waker().clone();
        let key = self.name.key(current_runtime());
        let mut registry = registry();
        if registry.entries.get(&key).is_some_and(Entry::is_given) {
            drop(registry);
            // If it is taken back at this moment, the next poll waits again.
            match self.name.whereis() {
                Err(NameError::NotRegistered(_)) => waker.wake(),
                found => return Poll::Ready(found),
            }
            return Poll::Pending;
        }
        let next = registry.next;
        registry.next += 1;
        let unused = self.waiter.replace((key.clone(), next));
        let unused = unused.and_then(|(key, number)| registry.remove_waiter(&key, number));
        registry.waiters.entry(key).or_default().insert(next, waker);
        drop(registry);
        drop(unused);
        note_wait(Reason::unspecified(Kind::Future));
        Poll::Pending
    }
}

impl<M> Drop for Registered<'_, M> {
    fn drop(&mut self) {
        if let Some((key, number)) = self.waiter.take() {
            let waker = registry().remove_waiter(&key, number);
            drop(waker);
        }
    }
}

impl<M> fmt::Debug for Registered<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registered").field(self.name).finish()
    }
}
