//! A value of the state word, and what is read from it and changed in it. For the transitions only.

use std::ptr;

use crate::job::state::{LONG, Link, SEEN};

/// The bits of a message's address: user space ends below 2^47, and nodes are aligned to 8.
pub(super) const MESSAGES: usize = (1 << 48) - 8;

/// A value of the word.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Word(pub(super) *mut Link);

impl Word {
    pub(super) fn has(self, flags: usize) -> bool {
        self.0.addr() & flags != 0
    }

    pub(super) fn with(self, flags: usize) -> Word {
        Word(self.0.map_addr(|a| a | flags))
    }

    pub(super) fn without(self, flags: usize) -> Word {
        Word(self.0.map_addr(|a| a & !flags))
    }

    pub(super) fn messages(self) -> *mut Link {
        self.0.map_addr(|a| a & MESSAGES)
    }

    /// Without messages, and without the flags that say something about them.
    pub(super) fn without_messages(self) -> Word {
        let flags = self.0.addr() & !(MESSAGES | SEEN | LONG);
        Word(ptr::without_provenance_mut(flags))
    }

    /// The same flags over another stack of messages.
    pub(super) fn over(self, messages: *mut Link) -> Word {
        Word(messages.map_addr(|a| a | (self.0.addr() & !MESSAGES)))
    }
}
