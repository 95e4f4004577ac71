//! How many places each address takes up: streams of events, looks into the past, exports. One address cannot take
//! the room of all others, and all of them together have a bound, too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open streams of all addresses, or whatever else one may have only a few of at once. A clone is the same.
#[derive(Clone)]
pub(crate) struct Streams {
    /// How many one address may have.
    most: usize,
    /// How many all may have together.
    most_in_all: usize,
    taken: Arc<Mutex<PlacesTaken>>,
}

/// Invariant: an address without a stream is not in the table, and `in_all` is the sum of the table.
#[derive(Default)]
struct PlacesTaken {
    of: HashMap<IpAddr, usize>,
    in_all: usize,
}

/// Why there is no further one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The address has as many as it may have.
    OfAddress,
    /// All together have as many as they may have.
    OfAll,
}

/// One of them, until it is dropped.
pub(crate) struct Taken(Streams, IpAddr);

impl Streams {
    pub(crate) fn new(most: usize, most_in_all: usize) -> Self {
        let taken = Arc::default();
        Self {
            most,
            most_in_all,
            taken,
        }
    }

    /// Takes a stream, if the address may have one more, and all together, too.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn take(&self, address: IpAddr) -> Result<Taken, Full> {
        let mut all = self.lock();
        let taken = all.of.get(&address).copied().unwrap_or(0);
        if taken >= self.most {
            return Err(Full::OfAddress);
        }
        if all.in_all >= self.most_in_all {
            return Err(Full::OfAll);
        }
        all.of.insert(address, taken + 1);
        all.in_all += 1;
        Ok(Taken(self.clone(), address))
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> usize {
        self.lock().in_all
    }

    fn lock(&self) -> MutexGuard<'_, PlacesTaken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut all = self.0.lock();
        all.in_all -= 1;
        match all.of.get_mut(&self.1) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(all.of.remove(&self.1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_streams_and_gives_them_back() {
        let streams = Streams::new(2, 3);
        let [one, other, third] = [1, 2, 3].map(|n| IpAddr::from([192, 0, 2, n]));
        let taken = [one, one, other].map(|of| streams.take(of).ok().unwrap());
        assert_eq!(streams.take(one).err(), Some(Full::OfAddress));
        // It has none, but there are three in all.
        assert_eq!(streams.take(third).err(), Some(Full::OfAll));
        let [first, second, last] = taken;
        drop(first);
        assert!(streams.take(third).is_ok());
        drop((second, last));
        assert_eq!(streams.count(), 0);
        assert!(streams.lock().of.is_empty());
    }
}
