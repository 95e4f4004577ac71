//! The first poll of a wait with the stack, without a question to the runtime.
//!
//! Most waits are over at their first poll, such as that for a lock that is free. So the runtime keeps beside the unit
//! what it would answer: whether anything stands in the way of a poll by the unit itself
//! ([obstacles](Obstacle)), and what the present poll has noted. While there is no obstacle, the unit's number is the
//! address of a word of the runtime, which tells whether the unit is cancelled, and which is also the data of its
//! waker.

#![allow(unsafe_code)]

use std::{
    mem::ManuallyDrop,
    ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
    task::{RawWaker, RawWakerVTable, Waker},
    thread,
};

use super::Unit;

/// The bit of a unit's word that says that it is cancelled.
pub const CANCELLED: usize = 1 << 50;

/// What the present poll of the unit has noted, as bits. The runtime has others, too.
pub mod notes {
    /// The unit yields when its poll ends.
    pub const YIELDED: u8 = 1 << 1;
    /// A wait with the stack polls what it waits for.
    pub const WAITS: u8 = 1 << 3;
}

/// Why a wait must begin in the general way, with [`begin_first_poll`](crate::hooks::Hooks::begin_first_poll).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle(u8);

impl Obstacle {
    /// The thread is not on a stack that can be suspended. Each thread begins with this obstacle.
    pub const NO_STACK: Obstacle = Obstacle(1 << 0);
    /// The thread ends a unit whose run is over.
    pub const ENDING: Obstacle = Obstacle(1 << 1);
    /// Something is to be kept from what runs during the wait.
    pub const KEPT: Obstacle = Obstacle(1 << 2);

    #[inline(always)]
    pub(super) const fn bit(self) -> u8 {
        self.0
    }
}

/// The functions of the runtime's wakers; null without a runtime.
static WAKERS: AtomicPtr<RawWakerVTable> = AtomicPtr::new(ptr::null_mut());

/// Waits that begin here poll with wakers that have these functions.
pub(crate) fn tell_of_wakers(table: &'static RawWakerVTable) {
    // Release: pairs with the load in `waker_of_first_poll`.
    WAKERS.store(ptr::from_ref(table).cast_mut(), Ordering::Release);
}

impl Unit {
    /// What the present poll has noted.
    #[inline(always)]
    pub fn notes(&self) -> u8 {
        self.notes.get()
    }

    /// Replaces the notes; returns those before.
    ///
    /// # Safety
    /// The caller is the runtime, and takes [`WAITS`](notes::WAITS) back only where the poll that noted it ends, or
    /// while its stack is suspended, or for another run on the thread, behind which it is noted again: a migrating
    /// stack stays on its thread by it.
    #[inline(always)]
    pub unsafe fn set_notes(&self, notes: u8) -> u8 {
        self.notes.replace(notes)
    }

    /// Whether there is this obstacle.
    #[inline(always)]
    pub fn has_obstacle(&self, obstacle: Obstacle) -> bool {
        self.obstacles.get() & obstacle.0 != 0
    }

    /// Notes whether there is this obstacle; returns what was noted before.
    ///
    /// # Safety
    /// The number of a unit that runs without an obstacle is what [`Wakers::new`](crate::hooks::Wakers::new) asks for.
    #[inline(always)]
    pub unsafe fn set_obstacle(&self, obstacle: Obstacle, is_there: bool) -> bool {
        let before = self.obstacles.get();
        let others = before & !obstacle.0;
        self.obstacles.set(match is_there {
            true => others | obstacle.0,
            false => others,
        });
        before & obstacle.0 != 0
    }

    /// Whether there is no obstacle, and the present poll has noted nothing, except perhaps that the unit yields.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.obstacles.get() | self.notes.get() & !notes::YIELDED == 0
    }

    /// If nothing stands in the way, notes that a wait polls, and returns the waker for the poll, and what was noted
    /// before.
    #[inline(always)]
    pub(crate) fn begin_first_poll(&self) -> Option<(ManuallyDrop<Waker>, u8)> {
        let waker = self.waker_of_first_poll()?;
        Some((waker, self.notes.replace(notes::WAITS)))
    }

    /// The unit's waker, if nothing stands in the way of a first poll. For runtimes: nothing is noted.
    #[inline(always)]
    pub fn waker_of_first_poll(&self) -> Option<ManuallyDrop<Waker>> {
        let id = self.id();
        if id == 0 || !self.is_plain() || thread::panicking() {
            return None;
        }
        // Acquire: pairs with the release above.
        // SAFETY: it came from a reference that lives for ever.
        let wakers = unsafe { WAKERS.load(Ordering::Acquire).as_ref() }?;
        let word: *const AtomicUsize = ptr::with_exposed_provenance(id);
        // SAFETY: the runtime's promise, while there is no obstacle. Acquire: what the canceller did before is seen.
        if unsafe { &*word }.load(Ordering::Acquire) & CANCELLED != 0 {
            return None;
        }
        // SAFETY: the runtime's promise: its wakers have these data and functions. It is borrowed, and not dropped.
        let waker = unsafe { Waker::from_raw(RawWaker::new(word.cast(), wakers)) };
        Some(ManuallyDrop::new(waker))
    }

    /// The poll has ended the wait. False if the runtime must be told, because it noted something.
    #[inline(always)]
    pub(crate) fn end_first_poll(&self, before: u8) -> bool {
        let is_common = self.notes.get() == notes::WAITS;
        if is_common {
            self.notes.set(before);
        }
        is_common
    }
}
