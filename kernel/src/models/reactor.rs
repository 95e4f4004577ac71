//! Models of the reactor: an event wakes its waiter, and one of the sleeping workers waits in the poller.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize as Count, Ordering as CountOrdering},
    },
    task::{Wake, Waker},
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{sync::Notify, thread};

use crate::{
    queue::sleepers::{Before, Sleepers},
    reactor::{
        poller_lock::PollerLock,
        slot::{Interest, Readiness, SourceSlot, Waiter},
    },
    sys::{AtomicBool, AtomicUsize, Ordering, barrier},
};

/// A waker that ends a wait of the model, and counts its wakes.
struct Woken {
    notify: Notify,
    count: Count,
}

impl Woken {
    fn new() -> Arc<Woken> {
        Arc::new(Woken {
            notify: Notify::new(),
            count: Count::new(0),
        })
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, CountOrdering::Relaxed);
        self.notify.notify();
    }
}

/// A descriptor: its slot, and the bytes that can be read. The system refuses a read of zero bytes.
struct Descriptor {
    slot: SourceSlot,
    bytes: AtomicUsize,
}

impl Descriptor {
    fn new(known: Readiness) -> Arc<Descriptor> {
        let slot = SourceSlot::new();
        slot.begin(known);
        let bytes = AtomicUsize::new(0);
        Arc::new(Descriptor { slot, bytes })
    }

    /// A byte arrives, and later the system reports it.
    fn arrive(&self) {
        self.bytes.fetch_add(1, Ordering::SeqCst);
        let mut wakers = Vec::new();
        self.slot.set_ready(Readiness::READ, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// As `IoSource::poll_as`: waits for at least one byte, and returns how many were read.
    fn read(&self, woken: &Arc<Woken>) -> usize {
        let waker = Waker::from(woken.clone());
        let mut key = None;
        loop {
            let waiter = Waiter {
                interest: Interest::Read,
                key: Some(&mut key),
            };
            match self.slot.ready_or_wait(waiter, || waker.clone()) {
                Err(_waits) => woken.notify.wait(),
                Ok(seen) => match self.bytes.swap(0, Ordering::SeqCst) {
                    0 => self.slot.refused(Interest::Read, seen),
                    bytes => {
                        self.slot.drained(Interest::Read, seen);
                        // As the drop of `Ready`.
                        if let Some(key) = key {
                            self.slot.leave(Interest::Read, key);
                        }
                        return bytes;
                    }
                },
            }
        }
    }
}

/// Two bytes arrive while one thread reads: the reader gets both, however the events, the attempts and the clearing of
/// the readiness interleave. After a lost event the reader would wait for ever, which loom finds.
#[test]
fn a_reader_misses_no_event() {
    for known in [Readiness::NONE, Readiness::READ] {
        loom::model(move || {
            let descriptor = Descriptor::new(known);
            let there = descriptor.clone();
            let peer = thread::spawn(move || {
                there.arrive();
                there.arrive();
            });
            let woken = Woken::new();
            let mut bytes = 0;
            while bytes < 2 {
                bytes += descriptor.read(&woken);
            }
            peer.join().unwrap();
        });
    }
}

/// A wait that is given up leaves no waker behind, and removes no waker of another wait.
#[test]
fn a_wait_that_is_given_up_leaves_the_others() {
    loom::model(|| {
        let descriptor = Descriptor::new(Readiness::NONE);
        let there = descriptor.clone();
        let peer = thread::spawn(move || there.arrive());
        let (given_up, stays) = (Woken::new(), Woken::new());
        let mut key = None;
        let waiter = Waiter {
            interest: Interest::Read,
            key: Some(&mut key),
        };
        let _ready = descriptor
            .slot
            .ready_or_wait(waiter, || Waker::from(given_up));
        let there = descriptor.clone();
        let other = thread::spawn(move || there.read(&stays));
        if let Some(key) = key {
            descriptor.slot.leave(Interest::Read, key);
        }
        assert_eq!(other.join().unwrap(), 1);
        peer.join().unwrap();
        assert!(!descriptor.slot.is_waited_for());
    });
}

/// What the workers share. The poller's notice and an event both end the wait of the worker in the poller; each lasts
/// until it is taken.
struct Shared {
    sleepers: Sleepers<Sleeper>,
    poller_lock: PollerLock,
    has_sources: AtomicBool,
    poller: Notify,
    threads: Vec<Notify>,
    /// Work that every worker sees: how many pieces are left, and how many were done.
    visible: AtomicUsize,
    done: AtomicUsize,
    all: usize,
}

enum Sleeper {
    Parked(usize),
    InPoller,
}

impl Shared {
    fn new(workers: usize, all: usize) -> Arc<Shared> {
        Arc::new(Shared {
            sleepers: Sleepers::new(workers),
            poller_lock: PollerLock::new(),
            has_sources: AtomicBool::new(false),
            poller: Notify::new(),
            threads: (0..workers).map(|_| Notify::new()).collect(),
            visible: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            all,
        })
    }

    /// As `Sleeper::wake` in `search::sleep`.
    fn wake(&self, sleeper: Sleeper) {
        match sleeper {
            Sleeper::Parked(worker) => self.threads[worker].notify(),
            Sleeper::InPoller => self.poller.notify(),
        }
    }

    fn publish(&self) {
        self.visible.fetch_add(1, Ordering::SeqCst);
        if let Some(sleeper) = self.sleepers.take_one() {
            self.wake(sleeper);
        }
    }

    /// As `Reactor::add` and `IoSource::register`: the first source becomes visible like work.
    fn add_source(&self) {
        self.has_sources.store(true, Ordering::SeqCst);
        if let Some(sleeper) = self.sleepers.take_one() {
            self.wake(sleeper);
        }
    }

    fn is_unattended(&self) -> bool {
        self.has_sources.load(Ordering::Relaxed) && !self.poller_lock.is_taken()
    }

    fn take_work(&self) -> bool {
        let take = |left: usize| left.checked_sub(1);
        let order = (Ordering::SeqCst, Ordering::SeqCst);
        self.visible.fetch_update(order.0, order.1, take).is_ok()
    }

    fn is_over(&self) -> bool {
        self.done.load(Ordering::SeqCst) == self.all
    }

    /// An event of the system. Only the worker that waits in the poller sees it and handles it, which makes a job
    /// visible.
    fn set_ready(&self) {
        self.visible.fetch_add(1, Ordering::SeqCst);
        barrier::full();
        self.poller.notify();
    }

    /// As `search::sleep::sleep`.
    fn sleep(&self, worker: usize, before: Before) {
        let poller_guard = match self.has_sources.load(Ordering::Relaxed) {
            true => self.poller_lock.take(),
            false => None,
        };
        let sleeper = match &poller_guard {
            Some(_) => Sleeper::InPoller,
            None => Sleeper::Parked(worker),
        };
        self.sleepers.prepare(worker, sleeper, before);
        let is_needed = poller_guard.is_none() && self.is_unattended();
        if self.visible.load(Ordering::SeqCst) == 0 && !is_needed {
            self.wait(worker, poller_guard.is_some());
        }
        drop(poller_guard);
        self.sleepers.retract(worker);
    }

    /// As `wait_in_poller` and `park` in `search::sleep`.
    fn wait(&self, worker: usize, in_poller: bool) {
        while !self.is_over() && self.sleepers.is_asleep(worker) {
            match in_poller {
                false => self.threads[worker].wait(),
                true => {
                    self.poller.wait();
                    if self.visible.load(Ordering::SeqCst) > 0 {
                        return;
                    }
                }
            }
        }
    }

    /// The end of the model: every worker stops.
    fn end(&self) {
        for (_, sleeper) in self.sleepers.take_all() {
            self.wake(sleeper);
        }
    }

    /// As `WorkerLoop::serve`: works, else searches, else sleeps, until all work is done.
    fn serve(&self, worker: usize) {
        let mut searching = false;
        while !self.is_over() {
            if self.take_work() {
                if std::mem::take(&mut searching)
                    && self.sleepers.end_search()
                    && self.visible.load(Ordering::SeqCst) > 0
                    && let Some(sleeper) = self.sleepers.take_one()
                {
                    self.wake(sleeper);
                }
                if self.done.fetch_add(1, Ordering::SeqCst) + 1 == self.all {
                    self.end();
                }
                continue;
            }
            if !searching {
                searching = self.sleepers.start_search();
            }
            let before = match searching {
                true => Before::Searching,
                false => Before::Running,
            };
            self.sleep(worker, before);
            searching = true;
        }
    }
}

/// A worker sleeps while the first source is registered and an event comes: the worker waits in the poller, or the
/// registration wakes it first. If it parked while the poller had sources, the event would wake no thread.
#[test]
fn the_first_source_brings_a_sleeper_to_the_poller() {
    loom::model(|| {
        let shared = Shared::new(1, 1);
        let there = shared.clone();
        let outside = thread::spawn(move || {
            there.add_source();
            there.set_ready();
        });
        shared.serve(0);
        outside.join().unwrap();
    });
}

/// Work is published for a worker that may be in the poller, about to enter it, or about to leave it.
#[test]
fn a_worker_in_the_poller_is_woken_for_work() {
    loom::model(|| {
        let shared = Shared::new(1, 2);
        shared.has_sources.store(true, Ordering::SeqCst);
        let there = shared.clone();
        let outside = thread::spawn(move || {
            there.publish();
            there.publish();
        });
        shared.serve(0);
        outside.join().unwrap();
    });
}

/// Of two sleeping workers one waits in the poller, whichever fell asleep first: the event wakes it.
#[test]
fn of_two_sleepers_one_is_in_the_poller() {
    loom::model(|| {
        let shared = Shared::new(2, 1);
        shared.has_sources.store(true, Ordering::SeqCst);
        let there = shared.clone();
        let other = thread::spawn(move || there.serve(1));
        shared.set_ready();
        shared.serve(0);
        other.join().unwrap();
    });
}

/// Two workers never hold the poller lock at once.
#[test]
fn the_poller_lock_admits_one() {
    loom::model(|| {
        let poller_lock = Arc::new(PollerLock::new());
        let holders = Arc::new(AtomicUsize::new(0));
        let wait_in_poller = |poller_lock: Arc<PollerLock>, holders: Arc<AtomicUsize>| {
            let Some(poller_guard) = poller_lock.take() else {
                return;
            };
            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
            holders.fetch_sub(1, Ordering::SeqCst);
            drop(poller_guard);
        };
        let (there, holders_there) = (poller_lock.clone(), holders.clone());
        let other = thread::spawn(move || {
            wait_in_poller(there.clone(), holders_there.clone());
            wait_in_poller(there, holders_there);
        });
        wait_in_poller(poller_lock.clone(), holders.clone());
        wait_in_poller(poller_lock, holders);
        other.join().unwrap();
    });
}
