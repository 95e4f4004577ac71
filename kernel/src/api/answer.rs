//! An answer: one value, from a unit that gives it to one that waits for it, in one block that both share.
//!
//! Steps: the sender puts the value in, claims the waker ([`AnswerState::claim`]), gives the block away
//! ([`AnswerState::give`]) and wakes. The receiver peeks ([`AnswerState::peek`]), and takes the value. The end that
//! comes last frees the block, and the word says which end that is; so there is neither a count nor a lock.
//!
//! Invariants:
//! - The value is the sender's until `GIVEN` is set, and the receiver's from then on, unless `GONE` was set before.
//! - The waker belongs to the receiver while `CHANGING` is set, if the sender had not claimed it before. It belongs to
//!   the sender once the sender has claimed it while neither `CHANGING` nor `GONE` was set.
//! - The receiver is told: a sender that finds a waker wakes it after `GIVEN`; if it finds none, because the receiver
//!   changes it, the receiver finds `CLAIMED` at the end of the change and comes again.
//! - A receiver that finds `CLAIMED` comes again and again until `GIVEN` is set, so the sender does next to nothing
//!   between setting the one and the other.
//! - A waker is the receiver's code: its panic is not the sender's, which may be unwinding.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    fmt,
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::{Context, Poll, Waker},
};

use weald_sync::reason::Reason;

use crate::{
    api::sync_hooks::note_wait,
    job::foreign_waker,
    memory::Owned,
    scheduler::workers::waker,
    sys::{AtomicU8, Ordering},
};

/// The sender has begun to answer.
const CLAIMED: u8 = 1 << 0;
/// The value is there, or there will be none, and the sender is gone.
const GIVEN: u8 = 1 << 1;
/// The receiver replaces its waker.
const CHANGING: u8 = 1 << 2;
/// The receiver is gone.
const GONE: u8 = 1 << 3;

/// The word, apart from what it guards, so that a model can explore it.
pub(crate) struct AnswerState(AtomicU8);

/// What the sender found when it claimed.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The waker is the sender's now.
    Waker,
    /// The receiver is changing it, and will come again by itself.
    NoWaker,
    /// The receiver is gone: the block is the sender's.
    Block,
}

/// What the receiver sees.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerPeek {
    /// Nothing yet.
    Empty,
    /// The sender is about to give: come again.
    Soon,
    /// The value and the block are the receiver's.
    Given,
}

impl AnswerState {
    pub(crate) fn new() -> AnswerState {
        AnswerState(AtomicU8::new(0))
    }

    /// The sender begins.
    pub(crate) fn claim(&self) -> Claimed {
        // Acquire: pairs with the releases in `end_change` and `leave`.
        let word = self.0.fetch_or(CLAIMED, Ordering::AcqRel);
        match (word & GONE != 0, word & CHANGING != 0) {
            (true, _) => Claimed::Block,
            (false, true) => Claimed::NoWaker,
            (false, false) => Claimed::Waker,
        }
    }

    /// The sender has put the value in, and has claimed. False if the receiver is gone: the block is the sender's.
    /// Otherwise the sender may not touch it any longer.
    #[must_use]
    pub(crate) fn give(&self) -> bool {
        // Release: pairs with the acquires in `peek` and `leave`. Acquire: with the release in `leave`.
        self.0.fetch_or(GIVEN, Ordering::AcqRel) & GONE == 0
    }

    pub(crate) fn peek(&self) -> AnswerPeek {
        match self.0.load(Ordering::Acquire) {
            word if word & GIVEN != 0 => AnswerPeek::Given,
            word if word & CLAIMED != 0 => AnswerPeek::Soon,
            _ => AnswerPeek::Empty,
        }
    }

    /// The receiver wants to replace its waker. False if the sender has claimed.
    #[must_use]
    pub(crate) fn begin_change(&self) -> bool {
        // Acquire: pairs with the sender's accesses of the waker, which come after its claim; none did if this
        // succeeds.
        self.0.fetch_or(CHANGING, Ordering::AcqRel) & CLAIMED == 0
    }

    /// The waker is replaced. False if the sender has claimed meanwhile: it did not find a waker.
    #[must_use]
    pub(crate) fn end_change(&self) -> bool {
        // Release: pairs with the acquire in `claim`, so that the sender sees the new waker.
        self.0.fetch_and(!CHANGING, Ordering::AcqRel) & CLAIMED == 0
    }

    /// The receiver goes. True if the block is the receiver's. Otherwise it may not touch the block any longer.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        // Release: pairs with the acquires in `claim` and `give`. Acquire: with the release in `give`.
        self.0.fetch_or(GONE, Ordering::AcqRel) & GIVEN != 0
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed) & GONE != 0
    }
}

/// # Safety
/// *State*: the word says which side may touch the waker and the value, and which one frees the block; each side exists
/// once. *Note*: it is written before there are two sides, and only read after that.
struct Block<T, N> {
    state: AnswerState,
    waker: UnsafeCell<Option<Waker>>,
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
        state: AnswerState::new(),
        waker: UnsafeCell::new(waker),
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
    if let Some(waker) = block.waker.into_inner() {
        foreign_waker::discard(waker);
    }
    block.value.into_inner()
}

/// Wakes the receiver.
fn wake(waker: Waker) {
    match waker::is_own(&waker) {
        true => waker.wake(),
        false => foreign_waker::wake(waker),
    }
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
        let waker = match block.state.claim() {
            // SAFETY: *state*: the block is this side's.
            Claimed::Block => return unsafe { free(self.0) },
            Claimed::NoWaker => None,
            // SAFETY: *state*: the waker is this side's.
            Claimed::Waker => unsafe { &mut *block.waker.get() }.take(),
        };
        if block.state.give() {
            waker.into_iter().for_each(wake);
            return None;
        }
        waker.into_iter().for_each(foreign_waker::discard);
        // SAFETY: *state*: the block is this side's.
        unsafe { free(self.0) }
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
        let block = self.0.expect("an answer is taken once");
        // SAFETY: *state*: the block lives until this side has taken the value, or has left.
        let state = unsafe { &block.as_ref().state };
        match state.peek() {
            AnswerPeek::Given => {
                self.0 = None;
                // SAFETY: *state*: the block is this side's.
                return Poll::Ready(unsafe { free(block) });
            }
            // The sender may wake another waker than this.
            AnswerPeek::Soon => cx.waker().wake_by_ref(),
            // SAFETY: the block lives.
            AnswerPeek::Empty => unsafe { self.wait_with(block, cx.waker()) },
        }
        note_wait(reason);
        Poll::Pending
    }

    /// Sees to it that `waker` is woken.
    ///
    /// # Safety
    /// The block is that of this side.
    unsafe fn wait_with(&self, block: NonNull<Block<T, N>>, waker: &Waker) {
        // Cloned and dropped outside of the change: that is user code.
        let mut clone = Some(waker.clone());
        // SAFETY: the caller's promise.
        let block = unsafe { block.as_ref() };
        let mut is_seen = false;
        if block.state.begin_change() {
            // SAFETY: *state*: the waker is this side's.
            std::mem::swap(unsafe { &mut *block.waker.get() }, &mut clone);
            is_seen = block.state.end_change();
        }
        if !is_seen {
            waker.wake_by_ref();
        }
    }
}

impl<T, N> Drop for AnswerReceiver<T, N> {
    fn drop(&mut self) {
        let Some(block) = self.0.take() else { return };
        // SAFETY: *state*: the block lives until this side has left.
        let shared = unsafe { block.as_ref() };
        let waker = match shared.state.begin_change() {
            // SAFETY: *state*: the waker is this side's. The sender may keep the block for long.
            true => unsafe { &mut *shared.waker.get() }.take(),
            false => None,
        };
        if shared.state.leave() {
            // SAFETY: *state*: the block is this side's.
            drop(unsafe { free(block) });
        }
        drop(waker);
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
