//! Nodes that were taken out of a queue, and how all of them are woken when they are dropped.
//!
//! A single one runs next. Several go behind all others, in the order in which they waited, whatever their wakers are.
//!
//! # Safety
//! *Taken* and *lent*, as at the head of [`super`].

use std::{array, mem, ptr, task::Waker};

use weald_kernel::wake_all;

use super::Node;
use crate::ending::may_lend;

/// Nodes whose queue's lock is no longer needed. Dropping them wakes all.
#[must_use = "a thread that was taken out of its queue must be woken"]
pub(crate) struct Taken {
    first: *const Node,
    /// Whether all their wakers were lent.
    are_lent: bool,
}

impl Taken {
    pub(crate) const NONE: Taken = Taken::of(ptr::null(), true);

    /// The nodes from `first` on.
    pub(super) const fn of(first: *const Node, are_lent: bool) -> Taken {
        Taken { first, are_lent }
    }

    /// Notes something for the first of them.
    pub(crate) fn note(&self, note: u32) {
        if let Some(first) = self.first() {
            first.note.set(note);
        }
    }

    /// What the first of them has noted.
    pub(crate) fn noted(&self) -> Option<u32> {
        self.first().map(|first| first.note.get())
    }

    /// These and `more`, which is one.
    pub(crate) fn with(self, mut more: Taken) -> Taken {
        if let Some(node) = more.first() {
            node.next.set(self.first);
            more.are_lent &= self.are_lent;
            mem::forget(self);
        }
        more
    }

    fn first(&self) -> Option<&Node> {
        // SAFETY: *taken*.
        unsafe { self.first.as_ref() }
    }

    /// Takes the first out of these.
    fn pop(&mut self) -> Option<&'static Node> {
        // SAFETY: *taken*; used until it is marked.
        let node = unsafe { self.first.as_ref() }?;
        self.first = node.next.get();
        Some(node)
    }
}

impl Drop for Taken {
    #[inline(always)]
    fn drop(&mut self) {
        match self.first() {
            None => {}
            // The thread that was woken last runs next, but several run in their order.
            Some(first) if first.next.get().is_null() => first.wake(),
            Some(_) => self.wake_several(),
        }
    }
}

impl Taken {
    #[inline(never)]
    fn wake_several(&mut self) {
        match self.are_lent && may_lend() {
            true => wake_lent(self),
            false => wake_in_batches(self),
        }
    }
}

/// Wakes nodes of which no waker has a count.
fn wake_lent(nodes: &mut Taken) {
    let mut former = None::<&Node>;
    let next = || {
        if let Some(former) = former.take() {
            former.mark_woken();
        }
        let node = nodes.pop()?;
        former = Some(node);
        node.lent_waker()
    };
    // SAFETY: it reads and writes nodes; a waker is valid until its node is marked.
    unsafe { wake_all(next) };
}

/// How many nodes are in a batch.
const BATCH: usize = 16;

/// Whom a batch wakes.
enum Entry {
    /// Its node is marked after it has been used.
    Lent(&'static Node),
    /// Its node is marked.
    Counted(Waker),
}

/// Wakes nodes whose wakers may have counts. In each batch the nodes of these are marked before any waker is used:
/// after a shutdown one waiter may run on top of this frame, and look at the node of the next.
#[cold]
#[inline(never)]
fn wake_in_batches(nodes: &mut Taken) {
    while !nodes.first.is_null() {
        let batch: [Option<Entry>; BATCH] = array::from_fn(|_| nodes.pop().and_then(entry_of));
        let mut entries = batch.iter().flatten();
        let mut former = None::<&Node>;
        let next = || {
            if let Some(former) = former.take() {
                former.mark_woken();
            }
            match entries.next()? {
                Entry::Counted(waker) => Some(waker),
                Entry::Lent(node) => {
                    former = Some(node);
                    node.lent_waker()
                }
            }
        };
        // SAFETY: it reads and writes nodes and the batch; a lent waker is valid until its node is marked, a counted
        // one until the batch is dropped.
        unsafe { wake_all(next) };
    }
}

/// None: its wait had no waker, and is over.
fn entry_of(node: &'static Node) -> Option<Entry> {
    match node.is_lent() && may_lend() {
        true => Some(Entry::Lent(node)),
        false => node.mark_before_wake().map(Entry::Counted),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        sync::{Arc, Mutex, atomic::Ordering::Relaxed},
        task::Wake,
    };

    use super::*;
    use crate::queue::{Queue, WOKEN};

    /// Which of the nodes were marked when the waker with this number was used.
    type Log = Mutex<Vec<(usize, Vec<bool>)>>;

    struct Recorder {
        number: usize,
        nodes: Nodes,
        log: Arc<Log>,
    }

    #[derive(Clone, Copy)]
    struct Nodes(&'static [Node]);

    // SAFETY: the tests use them on one thread.
    unsafe impl Send for Nodes {}
    // SAFETY: as above.
    unsafe impl Sync for Nodes {}

    impl Nodes {
        fn marks(self) -> Vec<bool> {
            let state = |node: &Node| node.state.load(Relaxed);
            self.0.iter().map(|node| state(node) == WOKEN).collect()
        }
    }

    impl Wake for Recorder {
        fn wake(self: Arc<Self>) {
            let entry = (self.number, self.nodes.marks());
            self.log.lock().unwrap().push(entry);
        }
    }

    /// Wakes nodes at once that have lent wakers where `lent` says so. Returns what each waker saw.
    fn wake_together(lent: &[bool]) -> Vec<(usize, Vec<bool>)> {
        let nodes: Vec<_> = lent.iter().map(|_| Node::new(0)).collect();
        let nodes = Nodes(nodes.leak());
        let (queue, log) = (Queue::new(), Arc::new(Log::default()));
        let waker_of = |number| {
            let log = Arc::clone(&log);
            Waker::from(Arc::new(Recorder { number, nodes, log }))
        };
        let wakers: Vec<_> = (0..lent.len()).map(waker_of).collect();
        let mut locked = queue.lock();
        for ((node, waker), &lent) in nodes.0.iter().zip(&wakers).zip(lent) {
            match lent {
                // SAFETY: *lent*: the wakers stay until all have been woken.
                true => unsafe { node.lend_waker(waker) },
                false => node.set_waker(waker),
            }
            locked.push(node);
        }
        let taken = locked.take_all();
        drop(locked);
        drop(taken);
        assert!(nodes.marks().iter().all(|&marked| marked));
        std::mem::take(&mut log.lock().unwrap())
    }

    #[test]
    fn waiters_of_both_kinds_are_woken_in_their_order() {
        let lent = [true, false, true, false, false, true];
        let seen = wake_together(&lent);
        let order: Vec<_> = seen.iter().map(|&(number, _)| number).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        for (number, marks) in seen {
            for (other, &lent) in lent.iter().enumerate() {
                // One with a count before the first wake, one that was lent after its own.
                assert_eq!(marks[other], !lent || other < number);
            }
        }
    }

    #[test]
    fn lent_nodes_are_marked_each_after_its_wake() {
        for (number, marks) in wake_together(&[true; 3]) {
            let before: Vec<_> = (0..3).map(|other| other < number).collect();
            assert_eq!(marks, before);
        }
    }

    #[test]
    fn more_than_a_batch_are_woken_in_their_order() {
        let seen = wake_together(&[false; BATCH * 2 + 1]);
        for (turn, (number, marks)) in seen.into_iter().enumerate() {
            assert_eq!(number, turn);
            let batch_end = (number / BATCH + 1) * BATCH;
            assert!(
                marks[..batch_end.min(marks.len())]
                    .iter()
                    .all(|&marked| marked)
            );
        }
    }
}
