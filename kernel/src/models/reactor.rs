//! Models of the reactor: a report wakes whoever waits for it, and of the workers that sleep one waits in
//! the poller.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize as Count, Ordering as CountOrdering},
    },
    task::{Wake, Waker},
};

use loom::{sync::Notify, thread};

use crate::{
    queue::sleepers::{Before, Sleepers},
    reactor::{
        poller_lock::PollerLock,
        slot::{Interest, Readiness, SourceSlot, Waiter},
    },
    sys::{AtomicBool, AtomicUsize, Ordering, barrier},
};

/// A waker that ends a wait of the model, and counts.
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

/// A descriptor: the slot, and whether the system would refuse.
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
        self.slot.report(Readiness::READ, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// As `IoSource::poll_as` does it: how many bytes were read, after waiting for at least one.
    fn read(&self, woken: &Arc<Woken>) -> usize {
        let waker = Waker::from(woken.clone());
        let mut ticket = None;
        loop {
            let waiter = Waiter {
                interest: Interest::Read,
                ticket: Some(&mut ticket),
            };
            match self.slot.look_or_wait(waiter, &waker) {
                Err(_waits) => woken.notify.wait(),
                Ok(seen) => match self.bytes.swap(0, Ordering::SeqCst) {
                    0 => self.slot.refused(Interest::Read, seen),
                    bytes => {
                        self.slot.drained(Interest::Read, seen);
                        // As the drop of `Ready` does it.
                        if let Some(ticket) = ticket {
                            self.slot.leave(Interest::Read, ticket);
                        }
                        return bytes;
                    }
                },
            }
        }
    }
}

/// Two bytes arrive while one thread reads: it reads both, however the reports, the attempts, and the
/// clearing interleave. A lost report would leave it waiting, which loom finds.
#[test]
fn a_reader_misses_no_report() {
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

/// A wait that is given up leaves nothing, and takes no other one's waker.
#[test]
fn a_wait_that_is_given_up_leaves_the_others() {
    loom::model(|| {
        let descriptor = Descriptor::new(Readiness::NONE);
        let there = descriptor.clone();
        let peer = thread::spawn(move || there.arrive());
        let (given_up, stays) = (Woken::new(), Woken::new());
        let mut ticket = None;
        let waiter = Waiter {
            interest: Interest::Read,
            ticket: Some(&mut ticket),
        };
        let _ready = descriptor.slot.look_or_wait(waiter, &Waker::from(given_up));
        let there = descriptor.clone();
        let other = thread::spawn(move || there.read(&stays));
        if let Some(ticket) = ticket {
            descriptor.slot.leave(Interest::Read, ticket);
        }
        assert_eq!(other.join().unwrap(), 1);
        peer.join().unwrap();
        assert!(!descriptor.slot.is_waited_for());
    });
}

/// What workers share. The poller's notice, and a report, end the wait of whoever is on the seat; both last
/// until they are taken.
struct Shared {
    idle: Sleepers<Sleeper>,
    seat: PollerLock,
    has_sources: AtomicBool,
    poller: Notify,
    threads: Vec<Notify>,
    /// Work that everybody sees: how many pieces are left, and how many were done.
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
            idle: Sleepers::new(workers),
            seat: PollerLock::new(),
            has_sources: AtomicBool::new(false),
            poller: Notify::new(),
            threads: (0..workers).map(|_| Notify::new()).collect(),
            visible: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            all,
        })
    }

    /// As `Sleeper::wake` in `search`.
    fn wake(&self, sleeper: Sleeper) {
        match sleeper {
            Sleeper::Parked(worker) => self.threads[worker].notify(),
            Sleeper::InPoller => self.poller.notify(),
        }
    }

    fn publish(&self) {
        self.visible.fetch_add(1, Ordering::SeqCst);
        if let Some(sleeper) = self.idle.notify() {
            self.wake(sleeper);
        }
    }

    /// As `Reactor::add` and `IoSource::register`: the first source becomes visible as work does.
    fn add_source(&self) {
        self.has_sources.store(true, Ordering::SeqCst);
        if let Some(sleeper) = self.idle.notify() {
            self.wake(sleeper);
        }
    }

    fn is_unattended(&self) -> bool {
        self.has_sources.load(Ordering::Relaxed) && !self.seat.is_taken()
    }

    fn take_work(&self) -> bool {
        let take = |left: usize| left.checked_sub(1);
        let order = (Ordering::SeqCst, Ordering::SeqCst);
        self.visible.fetch_update(order.0, order.1, take).is_ok()
    }

    fn is_over(&self) -> bool {
        self.done.load(Ordering::SeqCst) == self.all
    }

    /// A report of the system: a thread that waits in the poller handles it, which makes a job visible, and
    /// nobody else sees it.
    fn report(&self) {
        self.visible.fetch_add(1, Ordering::SeqCst);
        barrier::full();
        self.poller.notify();
    }

    /// As `search::sleep`.
    fn sleep(&self, worker: usize, before: Before) {
        let poller_guard = match self.has_sources.load(Ordering::Relaxed) {
            true => self.seat.take(),
            false => None,
        };
        let sleeper = match &poller_guard {
            Some(_) => Sleeper::InPoller,
            None => Sleeper::Parked(worker),
        };
        self.idle.announce(worker, sleeper, before);
        let lacks_me = poller_guard.is_none() && self.is_unattended();
        if self.visible.load(Ordering::SeqCst) == 0 && !lacks_me {
            self.wait(worker, poller_guard.is_some());
        }
        drop(poller_guard);
        self.idle.retract(worker);
    }

    /// As `search::wait_in_poller` and `search::park`.
    fn wait(&self, worker: usize, sits: bool) {
        while !self.is_over() && self.idle.is_asleep(worker) {
            match sits {
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

    /// The end of the model: everybody stops.
    fn end(&self) {
        for sleeper in self.idle.notify_all() {
            self.wake(sleeper);
        }
    }

    /// As `Tenure::serve`: works, else searches, else sleeps, until all is done.
    fn serve(&self, worker: usize) {
        let mut searching = false;
        while !self.is_over() {
            if self.take_work() {
                if std::mem::take(&mut searching)
                    && self.idle.end_search()
                    && self.visible.load(Ordering::SeqCst) > 0
                    && let Some(sleeper) = self.idle.notify()
                {
                    self.wake(sleeper);
                }
                if self.done.fetch_add(1, Ordering::SeqCst) + 1 == self.all {
                    self.end();
                }
                continue;
            }
            if !searching {
                searching = self.idle.start_search();
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

/// A worker sleeps while the first source is registered, and a report comes: it is on the seat then, or
/// hears of the source first. If it parked beside a poller with sources, the report would wake nobody.
#[test]
fn the_first_source_brings_a_sleeper_to_the_seat() {
    loom::model(|| {
        let shared = Shared::new(1, 1);
        let there = shared.clone();
        let outside = thread::spawn(move || {
            there.add_source();
            there.report();
        });
        shared.serve(0);
        outside.join().unwrap();
    });
}

/// Work is published for a worker that may be on the seat, about to sit down, or about to leave.
#[test]
fn a_worker_on_the_seat_hears_of_work() {
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

/// Of two workers that sleep one is on the seat, whichever came first and whoever found it taken: the report
/// wakes it.
#[test]
fn of_two_sleepers_one_is_on_the_seat() {
    loom::model(|| {
        let shared = Shared::new(2, 1);
        shared.has_sources.store(true, Ordering::SeqCst);
        let there = shared.clone();
        let other = thread::spawn(move || there.serve(1));
        shared.report();
        shared.serve(0);
        other.join().unwrap();
    });
}

/// Two never sit at once.
#[test]
fn the_seat_is_for_one() {
    loom::model(|| {
        let seat = Arc::new(PollerLock::new());
        let sitting = Arc::new(AtomicUsize::new(0));
        let wait_in_poller = |seat: Arc<PollerLock>, sitting: Arc<AtomicUsize>| {
            let Some(poller_guard) = seat.take() else {
                return;
            };
            assert_eq!(sitting.fetch_add(1, Ordering::SeqCst), 0);
            sitting.fetch_sub(1, Ordering::SeqCst);
            drop(poller_guard);
        };
        let (there, sitting_there) = (seat.clone(), sitting.clone());
        let other = thread::spawn(move || {
            wait_in_poller(there.clone(), sitting_there.clone());
            wait_in_poller(there, sitting_there);
        });
        wait_in_poller(seat.clone(), sitting.clone());
        wait_in_poller(seat, sitting);
        other.join().unwrap();
    });
}
