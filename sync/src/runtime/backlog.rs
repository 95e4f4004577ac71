//! Long queues: the channels that have held many values at once, with how long the oldest value has waited.
//!
//! A channel enters the list when its buffer is about to hold more than `LEAST` values for the first time, and leaves
//! it with its last handle. So a channel that stays short pays nothing, and a long one pays once.
//!
//! A channel counts what is received, but keeps no times. Each look at the list is a *sample*: it notes where the end
//! of each buffer is. A later look finds the latest sample whose end the receivers have not reached: the oldest value
//! was there already, and has waited at least since then. So an age is too low by at most the time between two looks.
//!
//! Locks: the list's, then a channel's. A channel enters under its own lock, so it goes through a queue that nobody
//! holds for long.

#![allow(unsafe_code)]

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    fmt,
    panic::Location,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    time::{Duration, Instant},
};

use super::reason::Name;

/// A channel is listed once it has held more than this many values.
pub(crate) const LEAST: u32 = 64;
/// How many samples of a channel are kept.
const SAMPLES: usize = 32;

/// A channel whose buffer is not empty, and once held more than 64 values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongChannel {
    /// The name that [`set_name`](crate::channel::Receiver::set_name) gave it.
    pub name: Option<&'static str>,
    /// The type of its values.
    pub type_name: &'static str,
    /// Where it was created.
    pub site: &'static Location<'static>,
    /// How many values are in the buffer.
    pub values: usize,
    /// How long the oldest value has waited, at least.
    pub waited: Duration,
}

impl fmt::Display for LongChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "the channel `{name}`")?,
            None => write!(f, "a channel of `{}`", self.type_name)?,
        }
        write!(f, " created at {}", self.site)
    }
}

/// What a look at a channel finds.
pub(crate) struct Look {
    pub(crate) name: Name,
    pub(crate) site: &'static Location<'static>,
    pub(crate) values: u32,
    /// How many values have left the buffer since the channel was created. It wraps.
    pub(crate) taken: u32,
}

/// A channel, without its type of values.
///
/// # Safety
/// **listed**: the code that enters a channel calls [`leave`] with its address before the channel is freed; `leave`
/// waits for a look that is under way. `look` reads only numbers, under the channel's lock, so it may run on any
/// thread, whatever the values are.
pub(crate) struct AnyChannel {
    pub(crate) address: *const (),
    pub(crate) look: unsafe fn(*const ()) -> Look,
    pub(crate) type_name: &'static str,
}

// SAFETY: listed.
unsafe impl Send for AnyChannel {}

/// A listed channel, and the samples of it.
struct LongEntry {
    channel: AnyChannel,
    samples: Samples,
    /// Whether it was named as one that is too long.
    is_named: bool,
}

/// Where the end of the buffer was, and when; the oldest first.
#[derive(Default)]
struct Samples(VecDeque<(u32, Instant)>);

impl Samples {
    /// Adds a sample, and returns how long the oldest value has waited, at least.
    fn add(&mut self, taken: u32, values: u32, now: Instant) -> Duration {
        // The ends that the receivers have reached. A receiver may put its value back: then an end is ahead again.
        let is_ahead = |end: u32| (1..=values).contains(&end.wrapping_sub(taken));
        while self.0.front().is_some_and(|(end, _)| !is_ahead(*end)) {
            self.0.pop_front();
        }
        let end = taken.wrapping_add(values);
        if values > 0 && self.0.back().is_none_or(|(last, _)| *last != end) {
            self.0.push_back((end, now));
        }
        if self.0.len() > SAMPLES {
            // Every second one: ages become coarser, and never too high.
            let mut index = 0;
            self.0.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        let oldest = self.0.front().map(|(_, since)| *since);
        oldest.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

struct LongList {
    channels: HashMap<usize, LongEntry>,
    entering: mpsc::Receiver<AnyChannel>,
}

impl LongList {
    fn admit(&mut self) {
        while let Ok(channel) = self.entering.try_recv() {
            let listed = LongEntry {
                samples: Samples::default(),
                is_named: false,
                channel,
            };
            self.channels.insert(listed.channel.address.addr(), listed);
        }
    }
}

type Registry = (mpsc::Sender<AnyChannel>, Mutex<LongList>);

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let (enter, entering) = mpsc::channel();
        let list = LongList {
            channels: HashMap::new(),
            entering,
        };
        (enter, Mutex::new(list))
    })
}

fn list() -> MutexGuard<'static, LongList> {
    let list = registry().1.lock();
    let mut list = list.unwrap_or_else(PoisonError::into_inner);
    list.admit();
    list
}

/// A channel grows beyond [`LEAST`] for the first time. May be called under its lock.
pub(crate) fn enter(channel: AnyChannel) {
    let entered = registry().0.send(channel);
    debug_assert!(entered.is_ok(), "the list is never dropped");
}

/// The channel at this address, which entered before, is about to be freed. Not under its lock.
pub(crate) fn leave(address: *const ()) {
    list().channels.remove(&address.addr());
}

/// The channels that are not empty and once held more than 64 values, the longest first. Each call is a sample, so
/// frequent calls give better ages. Takes the lock of each of these channels for a moment.
pub fn long_channels() -> Vec<LongChannel> {
    look(|_, _| true)
}

/// Those of the [`long_channels`] that now hold at least `least` values, and that no earlier call has returned.
pub fn take_unnamed(least: usize) -> Vec<LongChannel> {
    look(|values, is_named| {
        let is_new = values >= least && !*is_named;
        *is_named |= is_new;
        is_new
    })
}

fn look(is_wanted: impl Fn(usize, &mut bool) -> bool) -> Vec<LongChannel> {
    let mut found = Vec::new();
    let mut list = list();
    let now = Instant::now();
    for listed in list.channels.values_mut() {
        let channel = &listed.channel;
        // SAFETY: listed: it is on the list, which is locked.
        let look = unsafe { (channel.look)(channel.address) };
        let waited = listed.samples.add(look.taken, look.values, now);
        let values = look.values as usize;
        if values > 0 && is_wanted(values, &mut listed.is_named) {
            found.push(LongChannel {
                name: look.name.text(),
                type_name: channel.type_name,
                site: look.site,
                values,
                waited,
            });
        }
    }
    drop(list);
    found.sort_by_key(|channel| Reverse(channel.values));
    found
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn later(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    #[test]
    fn an_age_is_that_of_the_last_sample_which_the_receivers_have_not_reached() {
        let begin = Instant::now();
        let mut samples = Samples::default();
        let mut age = |taken: u32, values, at| {
            let taken = taken.wrapping_sub(50);
            samples.add(taken, values, later(begin, at)).as_secs()
        };
        assert_eq!(age(0, 100, 0), 0);
        assert_eq!(age(0, 150, 1), 1);
        assert_eq!(age(99, 51, 2), 2);
        // The first of those that came between the first two samples.
        assert_eq!(age(100, 60, 3), 2);
        assert_eq!(age(149, 11, 4), 3);
        assert_eq!(age(150, 10, 5), 2);
        // The last one comes back.
        assert_eq!(age(149, 11, 6), 3);
        assert_eq!(age(160, 0, 7), 0);
        assert_eq!(age(160, 1, 8), 0);
    }

    #[test]
    fn many_samples_make_an_age_coarser_and_never_too_high() {
        let begin = Instant::now();
        let mut samples = Samples::default();
        for second in 0..1_000 {
            // One value comes a second, and none is received.
            let values = u32::try_from(second).unwrap() + 1;
            let age = samples.add(0, values, later(begin, second));
            assert_eq!(age.as_secs(), second);
        }
        for taken in 1..1_000 {
            let age = samples
                .add(taken, 1_000 - taken, later(begin, 1_000))
                .as_secs();
            assert!(age <= 1_000 - u64::from(taken), "{age} at {taken}");
            assert!(samples.0.len() <= SAMPLES);
        }
    }
}
