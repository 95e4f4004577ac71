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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::combiner::Combiner;
use crate::request::Pending;

/// Groups that one combiner serves for others before it lets them take over.
pub(crate) const GROUPS: usize = 16;

pub(crate) struct Desk(Mutex<Inner>);

struct Inner {
    right: Option<Box<Combiner>>,
    queue: VecDeque<Arc<Pending>>,
}

impl Desk {
    pub(crate) fn new(combiner: Combiner) -> Self {
        Self(Mutex::new(Inner {
            right: Some(Box::new(combiner)),
            queue: VecDeque::new(),
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right, if nobody has it.
    pub(crate) fn take(&self) -> Option<Tenure<'_>> {
        let combiner = self.inner().right.take()?;
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
        let combiner = inner.right.take()?;
        Some(Tenure {
            desk: self,
            combiner: Some(combiner),
            groups: 0,
        })
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

    /// The next group of requests, in the order in which they came. Puts the right back and says `false`
    /// if there is none, or if one has the right for long and others can be woken to take it.
    pub(crate) fn next_group(&mut self, group: &mut VecDeque<Arc<Pending>>) -> bool {
        self.groups += 1;
        let mut inner = self.desk.inner();
        let others_can = || inner.queue.iter().any(|pending| pending.can_be_nudged());
        if inner.queue.is_empty() || (self.groups > GROUPS && others_can()) {
            let gone = self.combiner().take_gone();
            inner.right = self.combiner.take();
            let waiting: Vec<_> = inner.queue.iter().cloned().collect();
            drop(inner);
            waiting.iter().for_each(|pending| pending.nudge());
            drop(gone); // Others commit meanwhile.
            return false;
        }
        std::mem::swap(&mut inner.queue, group);
        true
    }
}

impl Drop for Tenure<'_> {
    fn drop(&mut self) {
        let Some(combiner) = self.combiner.take() else {
            return;
        };
        // Only a panic comes here, for a combiner that ends puts the right back itself.
        let mut inner = self.desk.inner();
        inner.right = Some(combiner);
        let waiting: Vec<_> = inner.queue.iter().cloned().collect();
        drop(inner);
        waiting.iter().for_each(|pending| pending.nudge());
    }
}
