//! The publication list of a forest: it holds the combiner while no thread does, and requests while one does.
//!
//! This is flat combining (D. Hendler, I. Incze, N. Shavit, M. Tzafrir, "Flat combining and the
//! synchronization-parallelism tradeoff", SPAA 2010) with a mutex that is held for a few instructions: a
//! thread that finds the combiner takes it, serves its own request and then those that were queued meanwhile.
//! Unlike in the paper, waiters need not spin: their requests are data, and their wakers are called.
//!
//! - The right to commit is a value: the thread that owns the [`Combiner`] is the combiner.
//! - While the list holds the combiner, one of these is true: the queue is empty; all waiters in it were
//!   woken to take the combiner, or poll by themselves; or the thread that put the combiner there will come
//!   back for it (`lend_combiner`). A waiter that is dropped also takes the combiner, and serves the others.
//! - A thread gives the combiner up after [`GROUPS`] groups even if requests remain, so that its caller is
//!   not kept forever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::combiner::Combiner;
use super::pending::Pending;
use crate::state::forest::ForestState;

/// Groups that one thread serves for others before it lets them take over.
pub(crate) const GROUPS: usize = 16;

pub(crate) struct PublicationList {
    inner: Mutex<Inner>,
    /// Whether the combiner was here when it was last taken or put back. Relaxed everywhere: it is a hint;
    /// only taking the combiner decides.
    looks_free: AtomicBool,
    /// Whether requests came since the queue was last taken; a hint as well.
    looks_queued: AtomicBool,
}

struct Inner {
    combiner: Option<Box<Combiner>>,
    queue: VecDeque<Arc<Pending>>,
}

impl PublicationList {
    pub(crate) fn new(combiner: Combiner) -> Self {
        let inner = Inner {
            combiner: Some(Box::new(combiner)),
            queue: VecDeque::new(),
        };
        Self {
            inner: Mutex::new(inner),
            looks_free: AtomicBool::new(true),
            looks_queued: AtomicBool::new(false),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the combiner seems to be free.
    pub(crate) fn looks_free(&self) -> bool {
        self.looks_free.load(Ordering::Relaxed)
    }

    /// The combiner, if it is free.
    pub(crate) fn take(&self) -> Option<CombinerGuard<'_>> {
        self.guard(&mut self.inner())
    }

    fn guard(&self, inner: &mut Inner) -> Option<CombinerGuard<'_>> {
        let combiner = inner.combiner.take()?;
        self.looks_free.store(false, Ordering::Relaxed);
        Some(CombinerGuard {
            list: self,
            combiner: Some(combiner),
            groups: 0,
        })
    }

    /// Queues a request. Returns the combiner if it has become free; the request is in the queue even then.
    pub(crate) fn queue(&self, pending: Arc<Pending>) -> Option<CombinerGuard<'_>> {
        let mut inner = self.inner();
        inner.queue.push_back(pending);
        self.looks_queued.store(true, Ordering::Relaxed);
        self.guard(&mut inner)
    }
}

/// Owns the combiner for one thread, and puts it back on the list in the end, even after a panic.
pub(crate) struct CombinerGuard<'a> {
    list: &'a PublicationList,
    combiner: Option<Box<Combiner>>,
    groups: usize,
}

impl CombinerGuard<'_> {
    pub(crate) fn combiner(&mut self) -> &mut Combiner {
        self.combiner.as_mut().expect("it is put back at the end")
    }

    /// Serves groups until no request is left, or until others can take over. Each group that ends is
    /// published.
    pub(crate) fn serve_queue(mut self, forest: &ForestState) {
        let mut queue = VecDeque::new();
        loop {
            // A request that comes while a group is served still joins it, because publishing a group may
            // cost more than serving one more request.
            while self.combiner().has_room() && self.take_queue(&mut queue) {
                self.combiner().serve_all(forest, &mut queue);
            }
            self.combiner().end_group(forest);
            if !self.put_back_or_continue() {
                return;
            }
        }
    }

    /// Takes all queued requests, in the order of their arrival; `false`, if there seem to be none.
    fn take_queue(&mut self, queue: &mut VecDeque<Arc<Pending>>) -> bool {
        if !self.list.looks_queued.load(Ordering::Relaxed) {
            return false;
        }
        let mut inner = self.list.inner();
        self.list.looks_queued.store(false, Ordering::Relaxed);
        std::mem::swap(&mut inner.queue, queue);
        !queue.is_empty()
    }

    /// Called after a group. Returns `true` if this thread still has the combiner, and requests to serve.
    /// Otherwise the combiner is put back on the list, because no request is left, or because this thread has
    /// held it for long and others can be woken to take it.
    fn put_back_or_continue(&mut self) -> bool {
        self.groups += 1;
        if self.combiner().should_lend() && !self.lend_combiner() {
            return false;
        }
        let inner = self.list.inner();
        let others_can = || inner.queue.iter().any(|pending| pending.can_be_nudged());
        if inner.queue.is_empty() || (self.groups > GROUPS && others_can()) {
            self.put_back(inner);
            return false;
        }
        true
    }

    /// Lets others take the combiner while this thread does the deferred work, and comes back for it if
    /// requests are queued then. Returns `false` if there are none, or another thread has the combiner.
    fn lend_combiner(&mut self) -> bool {
        let deferred = self.combiner().take_deferred();
        self.list.inner().combiner = self.combiner.take();
        self.list.looks_free.store(true, Ordering::Relaxed);
        drop(deferred);
        let mut inner = self.list.inner();
        if !inner.queue.is_empty()
            && let Some(combiner) = inner.combiner.take()
        {
            self.list.looks_free.store(false, Ordering::Relaxed);
            self.combiner = Some(combiner);
        }
        self.combiner.is_some()
    }

    /// Puts the combiner back, wakes all waiters in the queue to take it, and does the deferred work.
    fn put_back(&mut self, mut inner: MutexGuard<'_, Inner>) {
        let Some(mut combiner) = self.combiner.take() else {
            return;
        };
        let deferred = combiner.take_deferred();
        inner.combiner = Some(combiner);
        self.list.looks_free.store(true, Ordering::Relaxed);
        if inner.queue.is_empty() {
            drop(inner);
        } else {
            let waiting: Vec<_> = inner.queue.iter().cloned().collect();
            drop(inner);
            waiting.iter().for_each(|pending| pending.nudge());
        }
        drop(deferred); // Others commit meanwhile.
    }
}

impl Drop for CombinerGuard<'_> {
    fn drop(&mut self) {
        // It still has the combiner only after a panic; otherwise `put_back_or_continue` has put it back.
        if self.combiner.is_some() {
            let inner = self.list.inner();
            self.put_back(inner);
        }
    }
}
