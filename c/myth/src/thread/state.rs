//! The state of a thread in one word: that others need its block, that one waits for its end, that it shall end.

use std::{
    cell::Cell,
    ptr,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::{queue::Node, sys::AtomicU32};

/// Its creator has stored its handle.
pub(crate) const STORED: u32 = 1;
/// Nobody will join it.
pub(crate) const DETACHED: u32 = 2;
/// Its code has ended.
pub(crate) const ENDED: u32 = 4;
/// Whoever sets the last of these frees it.
const HOLDS: u32 = STORED | DETACHED | ENDED;
/// Its code has begun.
pub(crate) const BEGUN: u32 = 8;
/// It was asked to end.
const CANCELLED: u32 = 16;
/// It does not want to know.
const CANCEL_DISABLED: u32 = 32;
/// Its joiner waits by a node, and is woken by its end.
const JOINING: u32 = 64;
/// Somebody joins it, and uses its block until then. Never taken back.
const AWAITED: u32 = 128;

/// What whoever has ended a thread owes.
#[must_use]
pub(crate) enum AfterEnd {
    /// Nothing: another one frees the block, perhaps by now.
    Nothing,
    /// To free the block.
    Free,
    /// To take and to wake this node, as the last access to the block.
    Wake(*const Node),
    /// To keep the block until the runtime has ended.
    Keep,
}

/// The word, and the node of a joiner.
pub(crate) struct State {
    word: AtomicU32,
    /// Valid while `JOINING` is set: in the frame of the joiner's wait.
    joiner: Cell<*const Node>,
}

impl State {
    pub(crate) fn new(bits: u32) -> State {
        State {
            word: AtomicU32::new(bits),
            joiner: Cell::new(ptr::null()),
        }
    }

    /// Adds the ends of holds. True if it was the last one, so that the caller frees the block.
    pub(crate) fn set(&self, bits: u32) -> bool {
        // Each passes on what it did, and the last one sees it all.
        (self.word.fetch_or(bits, AcqRel) | bits) & HOLDS == HOLDS
    }

    pub(crate) fn has(&self, bit: u32) -> bool {
        self.bits() & bit != 0
    }

    pub(crate) fn bits(&self) -> u32 {
        self.word.load(Acquire)
    }

    pub(super) fn cancel(&self) {
        self.word.fetch_or(CANCELLED, Release);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.bits() & (CANCELLED | CANCEL_DISABLED) == CANCELLED
    }

    pub(super) fn disable_cancel(&self, disable: bool) -> bool {
        let before = match disable {
            true => self.word.fetch_or(CANCEL_DISABLED, AcqRel),
            false => self.word.fetch_and(!CANCEL_DISABLED, AcqRel),
        };
        before & CANCEL_DISABLED != 0
    }

    /// Its code begins, as a job.
    pub(super) fn begin(&self) {
        self.word.fetch_or(BEGUN, Relaxed);
    }

    /// Its code has ended. While the runtime ends (`is_last`), others may still ask for a thread that nobody joins, so
    /// its block stays.
    pub(crate) fn end(&self, is_last: bool) -> AfterEnd {
        let is_kept = |bits: u32| is_last && bits & (AWAITED | DETACHED) == 0;
        let with_end = |bits: u32| match is_kept(bits) {
            true => bits | DETACHED,
            false => bits | ENDED,
        };
        // One exchange: whoever sees the end may free the block. Pairs with those of the joiner below.
        let mut bits = self.bits();
        while let Err(now) = self
            .word
            .compare_exchange_weak(bits, with_end(bits), AcqRel, Acquire)
        {
            bits = now;
        }
        match with_end(bits) {
            _ if is_kept(bits) => AfterEnd::Keep,
            _ if bits & JOINING != 0 => AfterEnd::Wake(self.joiner.get()),
            bits if bits & HOLDS == HOLDS => AfterEnd::Free,
            _ => AfterEnd::Nothing,
        }
    }

    /// Somebody begins to join it, and may have to wait. False if it is detached, or is kept because nobody joins it:
    /// then nobody can.
    #[must_use]
    pub(crate) fn note_joiner(&self) -> bool {
        // One exchange, which pairs with that of `end`: this sees that it is kept, or the end sees the joiner.
        self.word.fetch_or(AWAITED, AcqRel) & DETACHED == 0
    }

    /// Its joiner waits by `node` from now on. False if it has ended.
    pub(crate) fn begin_join(&self, node: &Node) -> bool {
        self.joiner.set(node);
        // Pairs with the exchange in `end`: this sees the end, or the end sees the node.
        self.word.fetch_or(JOINING | AWAITED, AcqRel) & ENDED == 0
    }

    /// A wait that has begun by `node` is given up, and nobody joins the thread any longer. True if the caller frees
    /// the block.
    pub(crate) fn give_join_up(&self, node: &Node) -> bool {
        // Pairs with the exchange in `end`.
        if self.word.fetch_and(!JOINING, AcqRel) & ENDED != 0 {
            // The end has taken the node.
            node.until_woken();
        }
        self.set(DETACHED)
    }
}
