//! The keys of `thread`: what a thread of direct-style code and its waits cost.
//!
//! Only `args` reads them. Locks, barriers and condition variables are those of the workloads of waiting, so
//! a rival measures them with the same code.

use crate::args::Keys;
use crate::report::bad_usage;
use crate::waiting::{Inside, Waiting};

/// What is measured of threads.
#[derive(Clone, Copy, Debug)]
pub enum Threading {
    /// One thread creates another and joins it, `n` times.
    CreateJoin {
        /// How many times.
        n: usize,
    },
    /// One thread creates `n` others and then joins all of them.
    CreateAll {
        /// How many.
        n: usize,
    },
    /// `n` threads wait at the same time.
    Parked {
        /// How many.
        n: usize,
    },
    /// Two threads yield to each other.
    Yield {
        /// How often each does.
        n: usize,
    },
    /// The cost of what threads wait with.
    Waiting(Waiting),
}

impl Keys {
    pub(crate) fn threading(&mut self) -> Threading {
        let n = self.count("n");
        let inside = Inside::Nothing;
        match self.take("what").as_str() {
            "create-join" => Threading::CreateJoin { n },
            "create-all" => Threading::CreateAll { n },
            "parked" => Threading::Parked { n },
            "yield" => Threading::Yield { n },
            "lock" => Threading::Waiting(Waiting::Lock {
                units: 1,
                rounds: n,
                inside,
            }),
            "lock-contended" => Threading::Waiting(Waiting::Lock {
                units: self.count("threads"),
                rounds: n,
                inside,
            }),
            "barrier" => Threading::Waiting(Waiting::Barrier {
                units: self.count("threads"),
                rounds: n,
            }),
            "condvar" => Threading::Waiting(Waiting::Condvar { rounds: n }),
            _ => bad_usage("The key `what` takes one of the words in the README."),
        }
    }
}
