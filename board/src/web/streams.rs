//! How many streams of events each address has open, or how often it looks into the past at once, so that one address
//! cannot take the room of all others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The open streams of all addresses, or whatever else one may have only a few of at once.
///
/// Invariant: an address without a stream is not in the table.
pub(crate) struct Streams {
    /// How many one address may have.
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl Streams {
    pub(crate) fn new(most: usize) -> Self {
        let taken = Mutex::default();
        Self { most, taken }
    }

    /// Takes a stream, if the address may have one more.
    pub(crate) fn take(&self, of: IpAddr) -> bool {
        let mut all = self.lock();
        let taken = all.get(&of).copied().unwrap_or(0);
        let is_free = taken < self.most;
        if is_free {
            all.insert(of, taken + 1);
        }
        is_free
    }

    /// Gives a stream back.
    pub(crate) fn give_back(&self, of: IpAddr) {
        let mut all = self.lock();
        match all.get_mut(&of) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(all.remove(&of)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, until it is dropped.
pub(crate) struct Taken<'a>(&'a Streams, IpAddr);

impl<'a> Taken<'a> {
    pub(crate) fn take(streams: &'a Streams, of: IpAddr) -> Option<Self> {
        streams.take(of).then_some(Self(streams, of))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.give_back(self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_streams_and_gives_them_back() {
        let (streams, [one, other]) = (
            Streams::new(2),
            [1, 2].map(|n| IpAddr::from([192, 0, 2, n])),
        );
        assert!(streams.take(one) && streams.take(one) && !streams.take(one));
        assert!(streams.take(other));
        streams.give_back(one);
        assert!(streams.take(one) && !streams.take(one));
        for of in [one, one, other] {
            streams.give_back(of);
        }
        assert!(streams.lock().is_empty());
    }
}
