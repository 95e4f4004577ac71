//! What a receiver has taken out of the state word: its messages, and the flags that were set beside them.

use super::{SEEN, Word};
use crate::job::state::Link;

/// The messages that a receiver took, and what the word said of them.
#[derive(Clone, Copy)]
pub(crate) struct TakenMessages(pub(super) Word);

impl TakenMessages {
    /// The messages, newest first.
    #[inline(always)]
    pub(crate) fn messages(self) -> *mut Link {
        self.0.messages()
    }

    /// Whether a sample has seen some of them.
    pub(crate) fn was_seen(self) -> bool {
        self.0.has(SEEN)
    }
}
