//! An answer: one value, from a unit that gives it to one that waits for it, in one block that both share.
//!
//! Steps: the sender puts the value in, and exchanges the word for [`GIVEN`] ([`AnswerState::give`]), which also takes
//! the waker that stands in the word; it wakes that. The receiver peeks ([`AnswerState::peek`]), and takes the value.
//! The end that comes last frees the block, and the word says which end that is; so there is neither a count nor a
//! lock.
//!
//! Invariants:
//! - The word is the receiver's waker ([`waker::into_word`]), or null for none, until an end gives or goes; then it is
//!   [`GIVEN`] or [`GONE`]. Whoever exchanges a waker for something else owns that waker.
//! - The value is the sender's until the word is `GIVEN`, and the receiver's from then on, unless it was `GONE` before.
//! - The receiver is told: the exchange that gives takes the waker that the receiver has put in last, or the receiver's
//!   exchange fails, because the value is there.
//! - A waker is the receiver's code: its panic is not the sender's, which may be unwinding.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    fmt,
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::{self, NonNull},
    task::{Context, Poll, Waker},
};

use weald_sync::reason::Reason;

use crate::{
    api::sync_hooks::note_wait,
    memory::Owned,
    scheduler::workers::waker,
    sys::{AtomicPtr, Ordering},
};

/// The value is there, or there will be none, and the sender is gone. No waker has this word, nor the next one.
const GIVEN: *mut () = ptr::without_provenance_mut(8);
/// The receiver is gone.
const GONE: *mut () = ptr::without_provenance_mut(16);

/// The word, apart from what it guards, so that a model can explore it.
pub(crate) struct AnswerState(AtomicPtr<()>);

/// What the end that gives or goes now owns.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owns {
    /// The block: the other end is gone.
    Block,
    /// The word of the receiver's waker, or null. The block is the other end's.
    Waker(*mut ()),
}

/// What the receiver sees.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerPeek {
    /// Nothing yet; the waker in the word.
    Empty(*mut ()),
    /// The value and the block are the receiver's.
    Given,
}

impl AnswerState {
    /// Nothing is given; the word of the receiver's waker, or null.
    pub(crate) fn new(waker: *mut ()) -> AnswerState {
        AnswerState(AtomicPtr::new(waker))
    }

    /// The sender has put the value in. Unless it gets the block, it may not touch that any longer.
    #[inline(always)]
    pub(crate) fn give(&self) -> Owns {
        // Release: pairs with the acquires in `peek`, `replace` and `leave`. Acquire: with the releases in the last
        // two.
        match self.0.swap(GIVEN, Ordering::AcqRel) {
            word if word == GONE => Owns::Block,
            waker => Owns::Waker(waker),
        }
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> AnswerPeek {
        match self.0.load(Ordering::Acquire) {
            word if word == GIVEN => AnswerPeek::Given,
            waker => AnswerPeek::Empty(waker),
        }
    }

    /// The receiver replaces the waker `before`, which is its own then, by `waker`. False if the value is there.
    #[must_use]
    pub(crate) fn replace(&self, before: *mut (), waker: *mut ()) -> bool {
        // Release: pairs with the acquire in `give`, so that the sender sees what the waker points to. Acquire: as in
        // `peek`.
        self.0
            .compare_exchange(before, waker, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The receiver goes. Unless it gets the block, it may not touch that any longer.
    pub(crate) fn leave(&self) -> Owns {
        // Release: pairs with the acquire in `give`. Acquire: with the release there.
        match self.0.swap(GONE, Ordering::AcqRel) {
            word if word == GIVEN => Owns::Block,
            waker => Owns::Waker(waker),
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed) == GONE
    }
}

/// # Safety
/// *State*: the word says who owns the waker, which side may touch the value, and which one frees the block; each side
/// exists once. *Note*: it is written before there are two sides, and only read after that.
struct Block<T, N> {
    state: AnswerState,
    value: UnsafeCell<Option<T>>,
    note: N,
}

/// The right to give the value. Dropped, it gives none.
///
/// It is as safe to unwind as its note, which it lends:
///
/// ```compile_fail,E0277
/// use std::{cell::Cell, panic::UnwindSafe};
///
/// fn unwinds(_: impl UnwindSafe) {}
///
/// let count = Cell::new(0);
/// // After a panic, what the note has made of `count` could be seen.
/// unwinds(weald_kernel::answer::<(), _>(&count, None).0);
/// ```
///
/// ```
/// # use std::panic::{RefUnwindSafe, UnwindSafe};
/// # fn unwinds(_: impl UnwindSafe + RefUnwindSafe) {}
/// # let count = std::cell::Cell::new(0);
/// # unwinds(weald_kernel::answer::<(), _>(&count, None).1);
/// # unwinds(weald_kernel::answer::<(), _>(0, None).0);
/// ```
pub struct AnswerSender<T, N>(NonNull<Block<T, N>>);

/// The right to the value. Dropped, it gives the value up.
pub struct AnswerReceiver<T, N>(Option<NonNull<Block<T, N>>>);

// SAFETY: *state*: values and wakers move between threads; *note*: the sender reads it and either side drops it.
unsafe impl<T: Send, N: Send> Send for AnswerSender<T, N> {}
// SAFETY: as above; a shared sender gives access to the note alone.
unsafe impl<T: Send, N: Send + Sync> Sync for AnswerSender<T, N> {}
// SAFETY: as above.
unsafe impl<T: Send, N: Send> Send for AnswerReceiver<T, N> {}
// SAFETY: as above; a shared receiver gives access to nothing.
unsafe impl<T: Send, N: Send> Sync for AnswerReceiver<T, N> {}

/// The two sides of an answer. The sender can read `note`; `waker` is woken by the answer, until the receiver is polled
/// with another one. One block of the slab.
///
/// Dropping a wait for the value loses nothing; dropping the receiver gives the value up.
///
/// ```
/// use std::future::poll_fn;
/// use weald::sync::reason::{Kind, Reason};
///
/// # weald_kernel::Runtime::test(1).block_on(async {
/// let (sender, mut receiver) = weald_kernel::answer("a note", None);
/// let answers = weald_kernel::spawn(async move {
///     assert_eq!(*sender.note(), "a note");
///     sender.send(42)
/// });
/// let reason = Reason::unspecified(Kind::Oneshot);
/// assert_eq!(poll_fn(|cx| receiver.poll_receive(cx, reason)).await, Some(42));
/// assert_eq!(answers.await.unwrap(), Ok(()));
/// # });
/// ```
///
/// # Panics
/// Without memory.
pub fn answer<T, N>(note: N, waker: Option<Waker>) -> (AnswerSender<T, N>, AnswerReceiver<T, N>) {
    let block = Owned::new(Block {
        state: AnswerState::new(waker.map_or(ptr::null_mut(), waker::into_word)),
        value: UnsafeCell::new(None),
        note,
    });
    let block = block.into_raw();
    (AnswerSender(block), AnswerReceiver(Some(block)))
}

/// Frees the block and returns the value.
///
/// # Safety
/// The block is the caller's, and not used after this.
unsafe fn free<T, N>(block: NonNull<Block<T, N>>) -> Option<T> {
    // SAFETY: the caller's promise; the block came from `into_raw`.
    let block = unsafe { Owned::from_raw(block) }.into_inner();
    block.value.into_inner()
}

impl<T, N> AnswerSender<T, N> {
    /// Gives the value, and wakes the receiver. Never waits; callable from any thread.
    ///
    /// # Errors
    /// Returns the value if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let sender = ManuallyDrop::new(self);
        sender.end(Some(value)).map_or(Ok(()), Err)
    }

    /// Gives `value`. Returns it if the receiver is gone. The sender is used up.
    fn end(&self, value: Option<T>) -> Option<T> {
        // SAFETY: *state*: the block lives until this side gives it away, below.
        let block = unsafe { self.0.as_ref() };
        // SAFETY: *state*: the value is this side's.
        unsafe { *block.value.get() = value };
        match block.state.give() {
            // SAFETY: *state*: the block is this side's.
            Owns::Block => unsafe { free(self.0) },
            Owns::Waker(word) => {
                if !word.is_null() {
                    // SAFETY: *state*: the waker is this side's.
                    unsafe { waker::wake_word(word) };
                }
                None
            }
        }
    }

    /// What was noted when the answer was made.
    pub fn note(&self) -> &N {
        // SAFETY: *note*; the block lives as long as this side.
        unsafe { &self.0.as_ref().note }
    }

    /// Whether the receiver still waits.
    pub fn is_wanted(&self) -> bool {
        // SAFETY: the block lives as long as this side.
        !unsafe { self.0.as_ref() }.state.is_gone()
    }
}

impl<T, N> Drop for AnswerSender<T, N> {
    fn drop(&mut self) {
        let _none = self.end(None);
    }
}

impl<T, N> AnswerReceiver<T, N> {
    /// Waits for the value; none if the sender was dropped. Notes that the caller waits for `reason`.
    ///
    /// # Panics
    /// If the value was taken before.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>, reason: Reason) -> Poll<Option<T>> {
        let polled = self.poll_unnoted(cx);
        if polled.is_pending() {
            note_wait(reason);
        }
        polled
    }

    /// As [`poll_receive`](AnswerReceiver::poll_receive), for a caller that notes itself what it waits for.
    ///
    /// # Panics
    /// If the value was taken before.
    pub fn poll_unnoted(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let block = self.0.expect("an answer is taken once");
        // SAFETY: *state*: the block lives until this side has taken the value, or has left.
        let state = unsafe { &block.as_ref().state };
        let is_given = match state.peek() {
            AnswerPeek::Given => true,
            AnswerPeek::Empty(word) => {
                !waker::is_word_of(word, cx.waker()) && !wait_with(state, word, cx.waker())
            }
        };
        if is_given {
            self.0 = None;
            // SAFETY: *state*: the block is this side's.
            return Poll::Ready(unsafe { free(block) });
        }
        Poll::Pending
    }
}

/// Sees to it that `waker` is woken, in place of that in the word, which is `before`. False if the value is there.
/// Called by the receiver.
#[inline(never)]
fn wait_with(state: &AnswerState, before: *mut (), waker: &Waker) -> bool {
    let word = waker::into_word(waker.clone());
    let is_replaced = state.replace(before, word);
    let unused = match is_replaced {
        true => before,
        false => word,
    };
    if !unused.is_null() {
        // SAFETY: *state* of the block: the former waker is the receiver's, or the new one still is.
        drop(unsafe { waker::from_word(unused) });
    }
    is_replaced
}

impl<T, N> Drop for AnswerReceiver<T, N> {
    fn drop(&mut self) {
        let Some(block) = self.0.take() else { return };
        // SAFETY: *state*: the block lives until this side has left.
        match unsafe { block.as_ref() }.state.leave() {
            // SAFETY: *state*: the block is this side's.
            Owns::Block => drop(unsafe { free(block) }),
            Owns::Waker(word) if word.is_null() => {}
            // SAFETY: *state*: the waker is this side's.
            Owns::Waker(word) => drop(unsafe { waker::from_word(word) }),
        }
    }
}

impl<T, N> fmt::Debug for AnswerSender<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerSender")
            .field("is_wanted", &self.is_wanted())
            .finish_non_exhaustive()
    }
}

impl<T, N> fmt::Debug for AnswerReceiver<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerReceiver").finish_non_exhaustive()
    }
}

// A panic leaves either side whole, because no user code runs between two steps of it; and it leaves the value whole,
// because that is moved as one piece, as in a channel of the standard library. The sender gives access to the note, so
// it is as safe as a note of its own, or as a reference to one. The receiver gives access to no note, and only drops
// it.
impl<T, N: UnwindSafe> UnwindSafe for AnswerSender<T, N> {}
impl<T, N: RefUnwindSafe> RefUnwindSafe for AnswerSender<T, N> {}
impl<T, N> UnwindSafe for AnswerReceiver<T, N> {}
impl<T, N> RefUnwindSafe for AnswerReceiver<T, N> {}
