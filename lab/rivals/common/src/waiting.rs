//! The workloads of what units wait with: channels, selection, locks, condition variables, barriers.
//!
//! Only `args` reads them, from the same keys in every rival.

use crate::args::Keys;
use crate::report::bad_usage;

/// A workload of waiting with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Waiting {
    /// Senders and one receiver with one channel between them.
    Channel {
        /// How many senders.
        senders: usize,
        /// How many messages each sends.
        messages: usize,
        /// What kind of channel.
        kind: Kind,
    },
    /// One unit receives from whichever of several channels has a message; each has one sender.
    Select {
        /// How many channels: two or eight, because a selection is written out.
        branches: usize,
        /// How many messages each sender sends.
        messages: usize,
        /// What kind of channels.
        kind: Kind,
    },
    /// Units lock a mutex, count, and unlock it.
    Lock {
        /// How many units.
        units: usize,
        /// How often each locks.
        rounds: usize,
        /// What a unit does while it holds the lock, besides counting.
        inside: Inside,
    },
    /// Two units take turns, with one mutex and one condition variable.
    Condvar {
        /// How many round trips.
        rounds: usize,
    },
    /// Units meet at a barrier.
    Barrier {
        /// How many units.
        units: usize,
        /// How often they meet.
        rounds: usize,
    },
    /// How much memory unused things take.
    Footprint {
        /// How many things.
        n: usize,
        /// What things.
        what: Thing,
    },
}

/// What a channel does with a message that no receiver waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has room for this many messages; then senders wait.
    Bounded(usize),
    /// It always has room.
    Unbounded,
    /// It has no room: sender and receiver wait for each other.
    Rendezvous,
}

/// What a unit does while it holds a lock, besides counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Nothing.
    Nothing,
    /// It yields to other units once, so that they find the lock held.
    Yield,
}

/// The things whose memory is measured while they are unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A mutex around nothing.
    Mutex,
    /// A channel of integers with both of its ends.
    Channel(Kind),
}

impl Keys {
    /// The workload of waiting with this name, if it is one.
    pub(crate) fn waiting(&mut self, name: &str) -> Option<Waiting> {
        Some(match name {
            "channel" => Waiting::Channel {
                senders: self.count("senders"),
                messages: self.count("messages"),
                kind: self.kind(),
            },
            "select" => Waiting::Select {
                branches: self.branches(),
                messages: self.count("messages"),
                kind: self.kind(),
            },
            "lock" => Waiting::Lock {
                units: self.count("units"),
                rounds: self.count("rounds"),
                inside: self.inside(),
            },
            "condvar" => Waiting::Condvar {
                rounds: self.count("rounds"),
            },
            "barrier" => Waiting::Barrier {
                units: self.count("units"),
                rounds: self.count("rounds"),
            },
            "footprint" => Waiting::Footprint {
                n: self.count("n"),
                what: self.thing(),
            },
            _ => return None,
        })
    }

    fn kind(&mut self) -> Kind {
        match self.take("kind").as_str() {
            "bounded" => Kind::Bounded(self.count("capacity")),
            "unbounded" => Kind::Unbounded,
            "rendezvous" => Kind::Rendezvous,
            _ => bad_usage("The key `kind` takes `bounded`, `unbounded` or `rendezvous`."),
        }
    }

    fn branches(&mut self) -> usize {
        match self.count("branches") {
            branches @ (2 | 8) => branches,
            _ => bad_usage("The key `branches` takes `2` or `8`."),
        }
    }

    fn inside(&mut self) -> Inside {
        match self.take("inside").as_str() {
            "nothing" => Inside::Nothing,
            "yield" => Inside::Yield,
            _ => bad_usage("The key `inside` takes `nothing` or `yield`."),
        }
    }

    fn thing(&mut self) -> Thing {
        match self.take("what").as_str() {
            "mutex" => Thing::Mutex,
            "bounded" => Thing::Channel(Kind::Bounded(1)),
            "unbounded" => Thing::Channel(Kind::Unbounded),
            "rendezvous" => Thing::Channel(Kind::Rendezvous),
            _ => bad_usage("The key `what` takes `mutex`, `bounded`, `unbounded` or `rendezvous`."),
        }
    }
}
