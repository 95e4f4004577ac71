//! Since when mailboxes have messages that nobody has taken.
//!
//! A job's state has a bit, `SEEN`, for the message that is the oldest now; a list here has the time of that bit.
//! - A sample finds messages without the bit: it sets the bit, and only then reads the clock and notes the time, in
//!   place of any former one ([`check`](UnreadTimes::check)). All of that happens under the lock of the samples, and a
//!   job is read by the samples of one runtime only.
//! - A sample finds messages with the bit: the time in the list is that of the bit.
//! - The receiver clears the bit in the exchange by which it takes the messages. So a message that is posted later has
//!   no bit, and never gets the time of one that was taken.
//! - A receiver that took messages with the bit may ask for their time ([`since`](UnreadTimes::since)). It gets the
//!   lock after the sample that set the bit. If a sample has read it again by then, the time is that of later messages.
//!
//! So the oldest message is never younger than the time says, and the age that is told is never too high. It is too low
//! by at most the time between two samples. The model is in `models::unread`.

use std::collections::HashMap;

use crate::job::{state::State, transition::Unread};

/// The times of unread mailboxes, by the addresses of their jobs. `T` is an instant; in a model, a count.
pub(crate) struct UnreadTimes<T> {
    /// What the last sample has found.
    last: HashMap<usize, T>,
    /// What the sample under way has found so far.
    under_way: HashMap<usize, T>,
}

impl<T> Default for UnreadTimes<T> {
    fn default() -> UnreadTimes<T> {
        UnreadTimes {
            last: HashMap::new(),
            under_way: HashMap::new(),
        }
    }
}

impl<T: Copy> UnreadTimes<T> {
    /// A sample checks the mailbox of the job at this address. Returns since when it is unread, if it is.
    pub(crate) fn check(
        &mut self,
        address: usize,
        state: &State,
        now: impl FnOnce() -> T,
    ) -> Option<T> {
        let since = match state.see_messages() {
            Unread::Nothing => return None,
            // After the bit was set: the messages are not younger than this.
            Unread::New => now(),
            Unread::Seen => self.since(address).unwrap_or_else(now),
        };
        self.under_way.insert(address, since);
        Some(since)
    }

    /// Since when the mailbox of the job at this address is unread, according to the sample that saw it last.
    pub(crate) fn since(&self, address: usize) -> Option<T> {
        // One sample may read a job twice, if blocks came or went meanwhile.
        let found = self.under_way.get(&address);
        found.or_else(|| self.last.get(&address)).copied()
    }

    /// The sample under way has read all jobs.
    pub(crate) fn end_sample(&mut self) {
        self.last = std::mem::take(&mut self.under_way);
    }

    /// The sample under way is given up, and another one begins. Messages that it has found for the first time are in
    /// no other list.
    pub(crate) fn restart_sample(&mut self) {
        self.last.extend(self.under_way.drain());
    }
}
