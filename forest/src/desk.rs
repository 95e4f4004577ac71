//! The desk of a forest: where the right to commit lies while nobody has it, and requests while somebody has.
//!
//! This is flat combining (Hendler, Incze, Shavit, Tzafrir 2010) with a mutex that is held for a few
//! instructions: whoever finds the right takes it, does its own request and then those of all who came
//! meanwhile. It differs in that those who wait need not spin: their requests are data, and their wakers
//! are called. (A thread that has nothing else to do looks for its answer a few times: see `wait.rs`.)
//!
//! - The right is a value: who has the [`Combiner`] is the combiner.
//! - While it lies here, the queue is empty, or all in the queue were woken to come and take it, or look
//!   again of themselves. Whoever of them is dropped instead takes it too, and serves the others.
//! - A combiner leaves after [`GROUPS`] groups even if more came, so its caller is not kept for ever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::combiner::Combiner;
use crate::request::Pending;

/// Groups that one combiner serves for others before it lets them take over.
pub(crate) const GROUPS: usize = 16;

pub(crate) struct Desk {
    inner: Mutex<Inner>,
    /// Whether the right was here when it was last taken or put back. Relaxed everywhere: it is a guess, and
    /// who relies on the right takes it.
    looks_free: AtomicBool,
    /// Whether requests came since the queue was last taken; a guess as well.
    looks_queued: AtomicBool,
}

struct Inner {
    right: Option<Box<Combiner>>,
    queue: VecDeque<Arc<Pending>>,
}

impl Desk {
    pub(crate) fn new(combiner: Combiner) -> Self {
        let inner = Inner {
            right: Some(Box::new(combiner)),
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

    /// Whether nobody seems to have the right.
    pub(crate) fn looks_free(&self) -> bool {
        self.looks_free.load(Ordering::Relaxed)
    }

    /// The right, if nobody has it.
    pub(crate) fn take(&self) -> Option<Tenure<'_>> {
        self.tenure(&mut self.inner())
    }

    fn tenure(&self, inner: &mut Inner) -> Option<Tenure<'_>> {
        let combiner = inner.right.take()?;
        self.looks_free.store(false, Ordering::Relaxed);
        Some(Tenure {
            desk: self,
            combiner: Some(combiner),
            groups: 0,
        })
    }

    /// Queues up, or gets the right if nobody has it any more; then too the request is in the queue.
    pub(crate) fn queue(&self, pending: Arc<Pending>) -> Option<Tenure<'_>> {
        let mut inner = self.inner();
        inner.queue.push_back(pending);
        self.looks_queued.store(true, Ordering::Relaxed);
        self.tenure(&mut inner)
    }
}

/// The time in which one thread has the right; it lies on the desk again afterwards, also after a panic.
pub(crate) struct Tenure<'a> {
    desk: &'a Desk,
    combiner: Option<Box<Combiner>>,
    groups: usize,
}

impl Tenure<'_> {
    pub(crate) fn combiner(&mut self) -> &mut Combiner {
        self.combiner.as_mut().expect("it is put back at the end")
    }

    /// All requests that wait, in the order in which they came; `false`, if none seem to.
    pub(crate) fn take_queue(&mut self, queue: &mut VecDeque<Arc<Pending>>) -> bool {
        if !self.desk.looks_queued.load(Ordering::Relaxed) {
            return false;
        }
        let mut inner = self.desk.inner();
        self.desk.looks_queued.store(false, Ordering::Relaxed);
        std::mem::swap(&mut inner.queue, queue);
        !queue.is_empty()
    }

    /// Whether there are requests to serve after a group. Else the right is back on the desk; so it is if
    /// one has it for long and others can be woken to take it.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.groups += 1;
        if self.combiner().should_step_aside() && !self.step_aside() {
            return false;
        }
        let inner = self.desk.inner();
        let others_can = || inner.queue.iter().any(|pending| pending.can_be_nudged());
        if inner.queue.is_empty() || (self.groups > GROUPS && others_can()) {
            self.put_back(inner);
            return false;
        }
        true
    }

    /// Lets others have the right while there is something to be done without it. Says `false` if nobody is
    /// in the queue afterwards, or somebody has the right.
    fn step_aside(&mut self) -> bool {
        let after = self.combiner().take_aftermath();
        self.desk.inner().right = self.combiner.take();
        self.desk.looks_free.store(true, Ordering::Relaxed);
        drop(after);
        let mut inner = self.desk.inner();
        if !inner.queue.is_empty()
            && let Some(combiner) = inner.right.take()
        {
            self.desk.looks_free.store(false, Ordering::Relaxed);
            self.combiner = Some(combiner);
        }
        self.combiner.is_some()
    }

    /// Puts the right back, wakes all in the queue to come and take it, and does what is to be done after that.
    fn put_back(&mut self, mut inner: MutexGuard<'_, Inner>) {
        let Some(mut combiner) = self.combiner.take() else {
            return;
        };
        let after = combiner.take_aftermath();
        inner.right = Some(combiner);
        self.desk.looks_free.store(true, Ordering::Relaxed);
        let waiting: Vec<_> = inner.queue.iter().cloned().collect();
        drop(inner);
        waiting.iter().for_each(|pending| pending.nudge());
        drop(after); // Others commit meanwhile.
    }
}

impl Drop for Tenure<'_> {
    fn drop(&mut self) {
        // Only after a panic it has the combiner still, for one that ends puts the right back itself.
        if self.combiner.is_some() {
            let inner = self.desk.inner();
            self.put_back(inner);
        }
    }
}
