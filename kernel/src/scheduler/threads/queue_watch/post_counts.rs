//! How many messages have come to mailboxes into which nobody looks: an estimate, for which most sends count nothing.
//!
//! A thread counts its operations anyway ([`weald_sync::unit`]). By that number one in [`EVERY`] of the posts that find
//! others in the mailbox is *counted*, in a table, for its receiver. The samples of [`queue_watch`](super) forget the
//! counted posts to a mailbox that is empty, or was emptied since the last sample. So those that are left are of
//! messages that are still there, and each stands for [`EVERY`] posts.
//!
//! A place of the table is shared by the receivers with the same hash. Like the counters of Misra and Gries (1982), it
//! is given to another receiver when more posts to that one were counted. So a mailbox that grows keeps its place, and
//! an estimate may be too low. It may be too high by what [`is_counted`] says. Neither a lock nor an allocation: a
//! sender must not wait for anybody.

use std::{
    array,
    sync::atomic::{AtomicU64, Ordering},
};

/// One in so many posts is counted.
pub(crate) const EVERY: usize = 1 << 10;
/// Fewer counted posts may be of a few messages, by chance.
const LEAST: u64 = 4;
/// More mailboxes than grow at the same time in most programs. A power of two.
const PLACES: usize = 256;
/// The lowest bits of a place are the number of counted posts, the others the receiver.
const COUNT_BITS: u32 = 20;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// Whether a post is counted, by the number of the thread's operations. A thread may do the same number of operations,
/// its *step*, between any two posts to one receiver. Multiples of the golden ratio (Weyl, 1916) are spread evenly for
/// short steps only: with a step of 4,910 64 were counted of some 4,000 posts. So the higher bits are mixed into the
/// lower ones first. That leaves numbers in a row as even as they are, because it only changes their order, and those
/// far from each other are spread as drawn numbers are. For steps up to 5,000 the 64th counted one is the 65,536th
/// post, give or take a third, in 98 of 100 cases, and comes after half to twice as many in all that were tried.
#[inline(always)]
pub(crate) fn is_counted(operations: u32) -> bool {
    let mixed = operations ^ (operations >> 11);
    mixed.wrapping_mul(0x9e37_79b1) < 1 << (32 - EVERY.trailing_zeros())
}

/// The counted posts of a runtime, by the addresses of the receivers.
pub(crate) struct PostCounts([AtomicU64; PLACES]);

// Relaxed everywhere, and an exchange that fails is not repeated: a count guards nothing, and one post more or less is
// no matter.
impl PostCounts {
    pub(super) fn new() -> PostCounts {
        PostCounts(array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Counts a post to this receiver. Any thread.
    pub(super) fn count(&self, receiver: usize) {
        let (place, key) = self.place(receiver);
        let word = place.load(Ordering::Relaxed);
        let new = match (word >> COUNT_BITS == key, word & COUNT) {
            (true, COUNT) => return,
            (true, _) => word + 1,
            (false, 0) => key << COUNT_BITS | 1,
            (false, _) => word - 1,
        };
        PostCounts::exchange(place, word, new);
    }

    /// An estimate of the messages that have come since the posts to this receiver were forgotten; zero if they are
    /// few.
    pub(super) fn messages(&self, receiver: usize) -> usize {
        let (place, key) = self.place(receiver);
        let word = place.load(Ordering::Relaxed);
        let counts = word & COUNT;
        match word >> COUNT_BITS == key && counts >= LEAST {
            true => {
                usize::try_from(counts).map_or(usize::MAX, |counts| counts.saturating_mul(EVERY))
            }
            false => 0,
        }
    }

    /// The messages that have come are gone.
    pub(super) fn forget(&self, receiver: usize) {
        let (place, key) = self.place(receiver);
        let word = place.load(Ordering::Relaxed);
        if word >> COUNT_BITS == key {
            PostCounts::exchange(place, word, 0);
        }
    }

    fn exchange(place: &AtomicU64, word: u64, new: u64) {
        let relaxed = Ordering::Relaxed;
        let _either = place.compare_exchange(word, new, relaxed, relaxed);
    }

    /// The place of a receiver, and the receiver as the place names it: addresses are multiples of 8 below 2^47.
    fn place(&self, receiver: usize) -> (&AtomicU64, u64) {
        let key = (receiver >> 3) as u64;
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (&self.0[hash as usize % PLACES], key)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Of how many posts this many are counted, if the thread's number begins here and rises by `step` between any two.
    fn posts_of(counts: u32, begin: u32, step: u32) -> u32 {
        let (mut number, mut posts, mut counted) = (begin, 0, 0);
        while counted < counts {
            counted += u32::from(is_counted(number));
            number = number.wrapping_add(step);
            posts += 1;
        }
        posts
    }

    #[test]
    fn one_in_so_many_posts_is_counted_whichever_a_thread_sends_to_one_receiver() {
        let (expected, steps) = (64 * u32::try_from(EVERY).unwrap(), 1..=5_000_u32);
        let is_far = |posts: &&u32| posts.abs_diff(expected) > expected / 3;
        for begin in [0_u32, 3_519_870_697] {
            let posts = steps.clone().map(|step| posts_of(64, begin, step));
            let posts: Vec<u32> = posts.collect();
            let is_right = |posts: &u32| (expected / 2..=2 * expected).contains(posts);
            assert!(posts.iter().all(is_right), "{:?}", posts.iter().min());
            assert!(posts[..64].iter().all(|posts| !is_far(&posts)));
            assert!(posts.iter().filter(is_far).count() <= posts.len() / 50);
        }
    }

    #[test]
    fn a_mailbox_that_grows_keeps_its_place_and_one_that_was_emptied_begins_anew() {
        let counts = PostCounts::new();
        let (grows, key) = (1 << 20, |receiver| {
            counts.place(receiver).0 as *const AtomicU64
        });
        let other = (1..)
            .map(|n| grows + 64 * n)
            .find(|it| key(*it) == key(grows));
        let other = other.unwrap();
        for n in 1..=10 {
            counts.count(other);
            let expected = if n < 4 { 0 } else { n * EVERY };
            assert_eq!(counts.messages(other), expected);
        }
        for _ in 0..100 {
            counts.count(grows);
        }
        assert_eq!(
            (counts.messages(grows), counts.messages(other)),
            (90 * EVERY, 0)
        );
        counts.count(other);
        assert_eq!(counts.messages(grows), 89 * EVERY);
        counts.forget(other);
        assert_eq!(counts.messages(grows), 89 * EVERY);
        counts.forget(grows);
        assert_eq!(counts.messages(grows), 0);
    }
}
