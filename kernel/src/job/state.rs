//! A job's state word, and every transition of it.
//!
//! The word is one pointer: its middle bits are the head of a stack of *messages* (opaque nodes, newest first; the
//! kernel never looks inside one), its other bits are the flags below. It is one word, so that one compare-and-swap
//! both posts a message and decides whether the sender must make the job runnable.
//!
//! Invariants:
//! - At any moment a job is *parked* (`PARKED`), *done* (`DONE`), or *awake* (neither bit).
//! - An awake job has exactly one [`Runnable`](crate::job::runnable::Runnable): the thread that clears `PARKED`
//!   creates it.
//! - `PARKED` is set only by the thread that holds the runnable, and never while a wake is pending.
//! - `DONE` is never cleared; a job that is done accepts no further messages.
//!
//! Orderings: each transition that gives the job away (park, complete, post) releases; each that
//! obtains it (a wake that clears `PARKED`, taking messages, a join that finds `DONE`) acquires.

#![allow(unsafe_code)]

mod debug;
mod taken;
mod word;

use std::ptr;
use weald_sync::unit;

use crate::job::transition::{
    Completed, Inbox, Listening, Owes, ParkOutcome, Posted, StartAction, Unread,
};

use crate::sys::{AtomicPtr, Ordering};
pub(crate) use taken::TakenMessages;
use word::{MESSAGES, Word};

/// What the kernel sees of a message: a link to the one posted before it. The rest belongs to the sender.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) next: *mut Link,
}

/// Set while the job waits and occupies no thread; never while it is queued or runs.
const PARKED: usize = 1 << 0;
/// Set when an awake job is woken; never set on a parked one (that wake clears `PARKED` instead).
const WOKEN: usize = 1 << 1;
/// Set once, when the output (or failure) is in place and the future is gone.
const DONE: usize = 1 << 2;
/// Set together with `PARKED` when the job waits for messages, among other things.
const LISTENING: usize = 1 << 48;
/// Set when messages are refused: there is no inbox, or it was dropped, or the job was killed or is done.
const CLOSED: usize = 1 << 49;
/// Set by a cancel. A parked job is scheduled and ends at that run, before its future is polled; a running one ends at
/// its next wait.
const CANCEL: usize = unit::CANCELLED;
/// Set while a join handle exists that may still take the output; the handle clears it.
const HANDLE: usize = 1 << 51;
/// Set when the joiner's waker is in the job's extensions; only while `DONE` is unset.
const JOINER: usize = 1 << 52;
/// Set when the receiver's waker is in the job's extensions: something other than the job itself receives.
const RECEIVER: usize = 1 << 53;
/// Set while the job's own thread is blocked in `wait()`, and a cancel must unpark it.
const BLOCKED: usize = 1 << 54;

/// Set by a sample when there are messages; cleared by the exchange that takes them. So while it is set, the oldest
/// message is the one that was the oldest when it was set. `scheduler::threads::unread_times` has the protocol, and the
/// time of the bit.
const SEEN: usize = 1 << 55;
/// Set when the receiver's backlog is in the extensions; cleared when the receiver looks for further messages, or a
/// message arrives while it listens.
const LONG: usize = 1 << 56;
/// The job has exit hooks, or an attachment, which is told of the end as if by a hook. Set only while `DONE` is unset;
/// cleared when all hooks have run. Until then the job has not *ended*, even if it is `DONE`.
const EXIT_HOOKS: usize = 1 << 57;

/// The atomic word. A wait that begins reads it by the address of the header.
#[repr(transparent)]
pub(crate) struct State(AtomicPtr<Link>);

impl State {
    /// An awake job with a join handle. `inbox`: whether it accepts messages.
    pub(crate) fn new(inbox: Inbox) -> State {
        let flags = match inbox {
            Inbox::Open => HANDLE,
            Inbox::None => HANDLE | CLOSED,
        };
        State(AtomicPtr::new(ptr::without_provenance_mut(flags)))
    }

    /// Wakes the job. Any thread that holds a reference.
    #[inline]
    pub(crate) fn wake(&self) -> Owes {
        self.wake_with(0)
    }

    /// Asks the job to end at its next wait. Any thread that holds a reference.
    pub(crate) fn cancel(&self) -> Owes {
        self.wake_with(CANCEL)
    }

    /// As [`cancel`](State::cancel), and refuses further messages.
    pub(crate) fn kill(&self) -> Owes {
        self.wake_with(CANCEL | CLOSED)
    }

    #[inline]
    fn wake_with(&self, request: usize) -> Owes {
        let mut owes = Owes::Nothing;
        self.update(|word| {
            if word.has(DONE) {
                owes = Owes::Nothing;
                return None;
            }
            if word.has(PARKED) {
                owes = Owes::Schedule;
                return Some(word.without(PARKED | LISTENING).with(request));
            }
            owes = match request & CANCEL != 0 && word.has(BLOCKED) {
                true => Owes::Unblock,
                false => Owes::Nothing,
            };
            Some(word.with(WOKEN | request))
        });
        owes
    }

    /// Pushes `message` onto the stack. Any thread that holds a reference.
    ///
    /// # Safety
    /// `message` is valid, is not linked anywhere, and stays untouched by the caller unless the result
    /// is [`Posted::Closed`].
    #[inline(always)]
    pub(crate) unsafe fn post(&self, message: *mut Link) -> Posted {
        // SAFETY: the caller's promise.
        if unsafe { self.post_to_listener(message) } {
            return Posted::Schedule;
        }
        // SAFETY: the caller's promise.
        match unsafe { self.post_to_busy(message) } {
            true => Posted::Queued,
            // SAFETY: the caller's promise.
            false => unsafe { self.post_to_any(message) },
        }
    }

    /// One attempt to [`post`](State::post) to a job that waits for messages. If it fails, nothing has happened.
    ///
    /// # Safety
    /// As [`post`](State::post).
    #[inline(always)]
    pub(crate) unsafe fn post_to_listener(&self, message: *mut Link) -> bool {
        let word = Word(self.0.load(Ordering::Relaxed));
        let waits = PARKED | LISTENING;
        if word.0.addr() & (waits | DONE | CLOSED) != waits {
            return false;
        }
        // SAFETY: the caller owns the message until the exchange succeeds.
        unsafe { (*message).next = word.messages() };
        self.exchange(word, word.over(message).without(waits | LONG))
    }

    /// One attempt to [`post`](State::post) to a job that does not wait for messages, such as one that runs. If it
    /// fails, nothing has happened.
    ///
    /// # Safety
    /// As [`post`](State::post).
    #[inline(always)]
    pub(crate) unsafe fn post_to_busy(&self, message: *mut Link) -> bool {
        let word = Word(self.0.load(Ordering::Relaxed));
        if word.has(LISTENING | RECEIVER | DONE | CLOSED) {
            return false;
        }
        // SAFETY: the caller owns the message until the exchange succeeds.
        unsafe { (*message).next = word.messages() };
        self.exchange(word, word.over(message))
    }

    /// [`post`](State::post) without the attempts.
    ///
    /// # Safety
    /// As [`post`](State::post).
    #[inline(never)]
    pub(crate) unsafe fn post_to_any(&self, message: *mut Link) -> Posted {
        let mut posted = Posted::Queued;
        self.update(|word| {
            if word.has(DONE | CLOSED) {
                posted = Posted::Closed;
                return None;
            }
            // SAFETY: the caller owns the message until the exchange succeeds.
            unsafe { (*message).next = word.messages() };
            let new = word.over(message);
            if word.has(PARKED) && word.has(LISTENING) {
                posted = Posted::Schedule;
                return Some(new.without(PARKED | LISTENING | LONG));
            }
            posted = match word.has(RECEIVER) {
                true => Posted::WakeReceiver,
                false => Posted::Queued,
            };
            Some(new.without(RECEIVER))
        });
        posted
    }

    /// Takes all messages. Called by the owner of the inbox.
    #[inline(always)]
    pub(crate) fn take_messages(&self) -> TakenMessages {
        let word = Word(self.0.load(Ordering::Relaxed));
        if !word.has(MESSAGES | LONG) {
            return TakenMessages(Word(ptr::null_mut()));
        }
        match self.exchange(word, word.without_messages()) {
            true => TakenMessages(word),
            false => self.take_messages_slow(),
        }
    }

    #[cold]
    fn take_messages_slow(&self) -> TakenMessages {
        TakenMessages(self.update(|word| Some(word.without_messages())))
    }

    /// Takes all messages and refuses further ones. Called by the owner of the inbox.
    pub(crate) fn close_inbox(&self) -> *mut Link {
        let mut messages = ptr::null_mut();
        self.update(|word| {
            messages = word.messages();
            Some(word.without_messages().with(CLOSED).without(RECEIVER))
        });
        messages
    }

    /// A sample: whether there are messages that nobody has taken, and whether the last sample found some of them. Any
    /// thread that holds a reference.
    pub(crate) fn see_messages(&self) -> Unread {
        let is_open = |word: Word| !word.messages().is_null() && !word.has(DONE | CLOSED);
        let to_seen = |word: Word| (is_open(word) && !word.has(SEEN)).then(|| word.with(SEEN));
        match self.update(to_seen) {
            word if !is_open(word) => Unread::Nothing,
            word if word.has(SEEN) => Unread::Seen,
            _ => Unread::New,
        }
    }

    /// The receiver's backlog is in the extensions. Called by the owner of the inbox after it took the messages.
    pub(crate) fn set_long(&self) {
        self.update(|word| (!word.has(LONG)).then(|| word.with(LONG)));
    }

    /// Whether the backlog in the extensions is what the receiver took last. A moment old.
    pub(crate) fn is_long(&self) -> bool {
        Word(self.0.load(Ordering::Relaxed)).has(LONG)
    }

    /// From now on the next message, or the job's end, wakes the waker in the extensions; false if a message is already
    /// there or the job is done. Called by the owner of the inbox after it stored the waker. A job that was
    /// killed gets no more messages but has not ended: the receiver must wait for the end, or it would poll in a loop.
    pub(crate) fn register_receiver(&self) -> bool {
        let mut registered = false;
        self.update(|word| {
            registered = word.messages().is_null() && !word.has(DONE);
            registered.then(|| word.with(RECEIVER))
        });
        registered
    }

    /// The first step of a run. Called by the holder of the runnable.
    #[inline]
    pub(crate) fn start(&self) -> StartAction {
        // Relaxed: the queue that carried the runnable here has already ordered this thread after
        // the wake; a flag that is set later is found when the job tries to park.
        let word = Word(self.0.load(Ordering::Relaxed));
        if !word.has(WOKEN | CANCEL) {
            return StartAction::Poll;
        }
        self.start_woken()
    }

    #[cold]
    fn start_woken(&self) -> StartAction {
        match self.update(|word| Some(word.without(WOKEN))).has(CANCEL) {
            true => StartAction::Cancel,
            false => StartAction::Poll,
        }
    }

    /// The last step of a run that ended in a wait. Called by the holder of the runnable, which is given up if the
    /// result is [`ParkOutcome::Parked`]. A cancel sets `WOKEN` as a wake does, but does not keep the job from parking
    /// again: a cancelled job may wait in its destructors.
    #[inline(always)]
    pub(crate) fn park(&self, listening: Listening) -> ParkOutcome {
        let (obstacles, waits) = match listening {
            Listening::Yes => (WOKEN | MESSAGES, PARKED | LISTENING),
            Listening::No => (WOKEN, PARKED),
        };
        let word = Word(self.0.load(Ordering::Relaxed));
        match !word.has(obstacles) && self.exchange(word, word.with(waits)) {
            true => ParkOutcome::Parked,
            false => self.park_slow(obstacles, waits),
        }
    }

    #[cold]
    fn park_slow(&self, obstacles: usize, waits: usize) -> ParkOutcome {
        let mut park = ParkOutcome::Parked;
        self.update(|word| {
            if word.has(obstacles) {
                park = ParkOutcome::Again;
                return word.has(WOKEN).then(|| word.without(WOKEN));
            }
            park = ParkOutcome::Parked;
            Some(word.with(waits))
        });
        park
    }

    /// Ends the job, whose output is in place. Called by the holder of the runnable.
    #[inline(always)]
    pub(crate) fn complete(&self) -> Completed {
        let word = self.update(|word| {
            let flags = WOKEN | JOINER | RECEIVER | BLOCKED;
            Some(word.with(DONE | CLOSED).without(flags))
        });
        let duties = HANDLE | JOINER | RECEIVER | EXIT_HOOKS;
        Completed {
            is_quiet: word.0.addr() & duties == HANDLE,
            drop_output: !word.has(HANDLE),
            wake_joiner: word.has(JOINER),
            wake_receiver: word.has(RECEIVER),
            run_exit_hooks: word.has(EXIT_HOOKS),
        }
    }

    /// From now on the completion wakes the waker in the extensions; false if the job is done. Called by the join
    /// handle after it stored the waker.
    pub(crate) fn register_joiner(&self) -> bool {
        !self
            .update(|word| (!word.has(DONE)).then(|| word.with(JOINER)))
            .has(DONE)
    }

    /// Undoes [`State::register_joiner`]; false if the job is done.
    pub(crate) fn unregister_joiner(&self) -> bool {
        !self
            .update(|word| (!word.has(DONE)).then(|| word.without(JOINER)))
            .has(DONE)
    }

    /// From now on the completion runs the exit hooks, and tells the attachment of the end; false if the job is done.
    /// Called under the lock of the extensions, in which the caller then stores the hook or attachment. `EXIT_HOOKS`
    /// and `DONE` are in one word, so no fence is needed: the completion sees `EXIT_HOOKS`, or this call sees `DONE`.
    /// If `EXIT_HOOKS` is set already, this call only loads, and may miss a `DONE`. But then the completion has yet to
    /// take the lock for the last time, and finds what the caller stores.
    #[must_use]
    pub(crate) fn register_exit_hook(&self) -> bool {
        !self
            .update(|word| (!word.has(DONE | EXIT_HOOKS)).then(|| word.with(EXIT_HOOKS)))
            .has(DONE)
    }

    /// All exit hooks have run. Called under the lock of the extensions, under which a joiner asks `has_ended`.
    pub(crate) fn end_exit_hooks(&self) {
        self.update(|word| Some(word.without(EXIT_HOOKS)));
    }

    /// Whether the job is done, and all exit hooks have run. If so, acquires the output.
    pub(crate) fn has_ended(&self) -> bool {
        Word(self.0.load(Ordering::Acquire)).0.addr() & (DONE | EXIT_HOOKS) == DONE
    }

    /// Gives up the handle's right to the output. True if the output is there and the caller must drop it.
    #[must_use]
    pub(crate) fn drop_handle(&self) -> bool {
        self.update(|word| Some(word.without(HANDLE))).has(DONE)
    }

    /// Notes that the job's thread is about to block in `wait()`. False if it is cancelled.
    #[must_use]
    pub(crate) fn block(&self) -> bool {
        !self
            .update(|word| (!word.has(CANCEL)).then(|| word.with(BLOCKED)))
            .has(CANCEL)
    }

    /// The job's thread is no longer blocked.
    pub(crate) fn unblock(&self) {
        self.update(|word| Some(word.without(BLOCKED)));
    }

    /// Whether the job waits at this moment: for a wake, or in `wait()`.
    pub(crate) fn is_waiting(&self) -> bool {
        Word(self.0.load(Ordering::Relaxed)).has(PARKED | BLOCKED)
    }

    /// Whether the job waits for messages, among other things. A moment old.
    pub(crate) fn is_listening(&self) -> bool {
        Word(self.0.load(Ordering::Relaxed)).has(LISTENING)
    }

    /// Whether messages are refused.
    pub(crate) fn is_closed(&self) -> bool {
        Word(self.0.load(Ordering::Relaxed)).has(CLOSED)
    }

    /// Whether the output is in place; if so, acquires it.
    pub(crate) fn is_done(&self) -> bool {
        Word(self.0.load(Ordering::Acquire)).has(DONE)
    }

    /// Whether nothing has happened to the job since it was spawned without an inbox: nobody has woken or cancelled it,
    /// nor waits for it.
    #[inline(always)]
    pub(crate) fn is_untouched(&self) -> bool {
        // Acquire: what a reference left that is gone by now.
        self.0.load(Ordering::Acquire).addr() == HANDLE | CLOSED
    }

    /// Whether the job was asked to end.
    #[inline(always)]
    pub(crate) fn is_cancelled(&self) -> bool {
        Word(self.0.load(Ordering::Acquire)).has(CANCEL)
    }

    /// One attempt to replace `word`, for the paths on which another thread rarely interferes.
    #[inline(always)]
    fn exchange(&self, word: Word, new: Word) -> bool {
        // AcqRel: as in `update`.
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        self.0.compare_exchange(word.0, new.0, done, failed).is_ok()
    }

    /// Applies `change` until it sticks; `None` leaves the word as it is. Returns the word before.
    #[inline(always)]
    fn update(&self, mut change: impl FnMut(Word) -> Option<Word>) -> Word {
        let mut word = Word(self.0.load(Ordering::Acquire));
        loop {
            let Some(new) = change(word) else { return word };
            // AcqRel: pairs with itself; the head of this file says what each transition hands over.
            let exchange = (Ordering::AcqRel, Ordering::Acquire);
            match self
                .0
                .compare_exchange_weak(word.0, new.0, exchange.0, exchange.1)
            {
                Ok(_) => return word,
                Err(now) => word = Word(now),
            }
        }
    }
}
