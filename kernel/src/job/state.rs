//! The word that says where a job is, and every transition of it.
//!
//! The word is one pointer: its middle bits are the head of a stack of *posts* (opaque nodes, newest
//! first; the kernel never looks inside one), its other bits are the flags below. One word, so that
//! one compare-and-swap both posts a message and tells the sender that it must schedule the job.
//!
//! Invariants:
//! - At any moment a job is *parked* (`PARKED`), *done* (`DONE`), or *awake* (neither bit).
//! - An awake job has exactly one [`Runnable`](crate::job::runnable::Runnable): whoever clears `PARKED` makes it.
//! - `PARKED` is only set by the thread that holds the runnable, and never while a wake is owed.
//! - `DONE` is never cleared; a job that is done takes no more posts.
//!
//! Orderings: each transition that gives the job away (park, complete, post) releases; each that
//! obtains it (a wake that clears `PARKED`, taking posts, a join that finds `DONE`) acquires.

#![allow(unsafe_code)]

use std::ptr;

use crate::job::transition::{Completed, Inbox, Listening, Owes, ParkOutcome, Posted, StartAction};

use crate::sys::{AtomicPtr, Ordering};

/// What a post looks like to the kernel: a link to the post before it. The rest belongs to the poster.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) next: *mut Link,
}

/// Set when the job gave its thread back and waits; never set while it is queued or runs.
const PARKED: usize = 1 << 0;
/// Set when an awake job is woken; never set on a parked one (that wake clears `PARKED` instead).
const NOTIFIED: usize = 1 << 1;
/// Set once, when the output (or failure) is in place and the future is gone.
const DONE: usize = 1 << 2;
/// Set together with `PARKED` when a post is one of the things the job waits for.
const LISTENING: usize = 1 << 48;
/// Set when posts are no longer taken: there is no inbox, or it was dropped, or the job is done.
const CLOSED: usize = 1 << 49;
/// Set when somebody asked the job to end; it does at its next run, before its future is polled.
const CANCEL: usize = 1 << 50;
/// Set while a join handle exists that may still take the output; the handle clears it.
const HANDLE: usize = 1 << 51;
/// Set when a waker for the join lies in the job's extras; only while `DONE` is unset.
const JOINER: usize = 1 << 52;
/// Set when a waker for the inbox lies in the job's extras: someone else than the job receives.
const RECEIVER: usize = 1 << 53;
/// Set while the job's own thread is blocked in `wait()`, so that a cancel must unpark it.
const BLOCKED: usize = 1 << 54;

/// The bits of the address of a post: user space ends below 2^47, and posts are aligned to 8.
const POSTS: usize = (1 << 48) - 8;

/// A value of the word.
#[derive(Clone, Copy, PartialEq)]
struct Word(*mut Link);

impl Word {
    fn has(self, flags: usize) -> bool {
        self.0.addr() & flags != 0
    }

    fn with(self, flags: usize) -> Word {
        Word(self.0.map_addr(|a| a | flags))
    }

    fn without(self, flags: usize) -> Word {
        Word(self.0.map_addr(|a| a & !flags))
    }

    fn posts(self) -> *mut Link {
        self.0.map_addr(|a| a & POSTS)
    }

    /// The same flags over another stack of posts.
    fn over(self, posts: *mut Link) -> Word {
        Word(posts.map_addr(|a| a | (self.0.addr() & !POSTS)))
    }
}

/// The atomic word.
pub(crate) struct State(AtomicPtr<Link>);

impl State {
    /// An awake job with a join handle. `inbox`: whether it takes posts.
    pub(crate) fn new(inbox: Inbox) -> State {
        let flags = match inbox {
            Inbox::Open => HANDLE,
            Inbox::None => HANDLE | CLOSED,
        };
        State(AtomicPtr::new(ptr::without_provenance_mut(flags)))
    }

    /// Called by anyone who holds a reference.
    pub(crate) fn wake(&self) -> Owes {
        self.wake_with(0)
    }

    /// Asks the job to end at its next wait. Called by anyone who holds a reference.
    pub(crate) fn cancel(&self) -> Owes {
        self.wake_with(CANCEL)
    }

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
            owes = match request {
                CANCEL if word.has(BLOCKED) => Owes::Unblock,
                _ => Owes::Nothing,
            };
            Some(word.with(NOTIFIED | request))
        });
        owes
    }

    /// Puts `post` on the stack. Called by anyone who holds a reference.
    ///
    /// # Safety
    /// `post` is valid, is not linked anywhere, and stays untouched by the caller unless the answer
    /// is [`Posted::Closed`].
    #[inline(always)]
    pub(crate) unsafe fn post(&self, post: *mut Link) -> Posted {
        let word = Word(self.0.load(Ordering::Relaxed));
        let waits = PARKED | LISTENING;
        if word.0.addr() & (waits | DONE | CLOSED) == waits {
            // SAFETY: the caller owns the post until the exchange succeeds.
            unsafe { (*post).next = word.posts() };
            if self.exchange(word, word.over(post).without(waits)) {
                return Posted::Schedule;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.post_anyhow(post) }
    }

    #[inline(never)]
    unsafe fn post_anyhow(&self, post: *mut Link) -> Posted {
        let mut posted = Posted::Queued;
        self.update(|word| {
            if word.has(DONE | CLOSED) {
                posted = Posted::Closed;
                return None;
            }
            // SAFETY: the caller owns the post until the exchange succeeds.
            unsafe { (*post).next = word.posts() };
            let new = word.over(post);
            if word.has(PARKED) && word.has(LISTENING) {
                posted = Posted::Schedule;
                return Some(new.without(PARKED | LISTENING));
            }
            posted = match word.has(RECEIVER) {
                true => Posted::WakeReceiver,
                false => Posted::Queued,
            };
            Some(new.without(RECEIVER))
        });
        posted
    }

    /// Takes all posts, newest first. Called by the owner of the inbox.
    #[inline(always)]
    pub(crate) fn take_messages(&self) -> *mut Link {
        let word = Word(self.0.load(Ordering::Relaxed));
        if word.posts().is_null() {
            return ptr::null_mut();
        }
        match self.exchange(word, word.over(ptr::null_mut())) {
            true => word.posts(),
            false => self.take_posts_anyhow(),
        }
    }

    #[cold]
    fn take_posts_anyhow(&self) -> *mut Link {
        self.update(|word| Some(word.over(ptr::null_mut()))).posts()
    }

    /// Takes all posts and refuses further ones. Called by the owner of the inbox.
    pub(crate) fn close_inbox(&self) -> *mut Link {
        let mut posts = ptr::null_mut();
        self.update(|word| {
            posts = word.posts();
            Some(word.over(ptr::null_mut()).with(CLOSED).without(RECEIVER))
        });
        posts
    }

    /// Whether the next post shall wake the waker in the extras; false if a post is already there
    /// or none will come. Called by the owner of the inbox after it stored that waker.
    pub(crate) fn register_receiver(&self) -> bool {
        let mut registered = false;
        self.update(|word| {
            registered = word.posts().is_null() && !word.has(DONE | CLOSED);
            registered.then(|| word.with(RECEIVER))
        });
        registered
    }

    /// The first step of a run. Called by the holder of the runnable.
    pub(crate) fn start(&self) -> StartAction {
        // Relaxed: the queue that carried the runnable here has already ordered this thread after
        // the wake; a flag that is set later is found when the job wants to park.
        let word = Word(self.0.load(Ordering::Relaxed));
        if !word.has(NOTIFIED | CANCEL) {
            return StartAction::Poll;
        }
        self.start_notified()
    }

    #[cold]
    fn start_notified(&self) -> StartAction {
        match self.update(|word| Some(word.without(NOTIFIED))).has(CANCEL) {
            true => StartAction::Cancel,
            false => StartAction::Poll,
        }
    }

    /// The last step of a run that ended in a wait. Called by the holder of the runnable, which is
    /// given up if the answer is [`ParkOutcome::Parked`]. A cancel notifies as a wake does, and is no further reason
    /// not to park: a job that was told of it may wait in its destructors.
    #[inline(always)]
    pub(crate) fn park(&self, listening: Listening) -> ParkOutcome {
        let (hinders, waits) = match listening {
            Listening::Yes => (NOTIFIED | POSTS, PARKED | LISTENING),
            Listening::No => (NOTIFIED, PARKED),
        };
        let word = Word(self.0.load(Ordering::Relaxed));
        match !word.has(hinders) && self.exchange(word, word.with(waits)) {
            true => ParkOutcome::Parked,
            false => self.park_anyhow(hinders, waits),
        }
    }

    #[cold]
    fn park_anyhow(&self, hinders: usize, waits: usize) -> ParkOutcome {
        let mut park = ParkOutcome::Parked;
        self.update(|word| {
            if word.has(hinders) {
                park = ParkOutcome::Again;
                return word.has(NOTIFIED).then(|| word.without(NOTIFIED));
            }
            park = ParkOutcome::Parked;
            Some(word.with(waits))
        });
        park
    }

    /// Ends the job; its output lies in place. Called by the holder of the runnable.
    pub(crate) fn complete(&self) -> Completed {
        let word = self.update(|word| {
            let flags = NOTIFIED | JOINER | RECEIVER | BLOCKED;
            Some(word.with(DONE | CLOSED).without(flags))
        });
        Completed {
            drop_output: !word.has(HANDLE),
            wake_joiner: word.has(JOINER),
            wake_receiver: word.has(RECEIVER),
        }
    }

    /// Whether the completion shall wake the waker in the extras; false if the job is done. Called
    /// by the join handle after it stored that waker.
    pub(crate) fn register_joiner(&self) -> bool {
        !self
            .update(|word| (!word.has(DONE)).then(|| word.with(JOINER)))
            .has(DONE)
    }

    /// Takes back the waker announced by [`State::register_joiner`]: false if the job is done.
    pub(crate) fn unregister_joiner(&self) -> bool {
        !self
            .update(|word| (!word.has(DONE)).then(|| word.without(JOINER)))
            .has(DONE)
    }

    /// Gives up the handle's right to the output. True if the output is there and the caller must
    /// drop it.
    #[must_use]
    pub(crate) fn drop_handle(&self) -> bool {
        self.update(|word| Some(word.without(HANDLE))).has(DONE)
    }

    /// Announces that the job's thread is about to block in `wait()`. False if it is cancelled.
    #[must_use]
    pub(crate) fn block(&self) -> bool {
        !self
            .update(|word| (!word.has(CANCEL)).then(|| word.with(BLOCKED)))
            .has(CANCEL)
    }

    /// The job's thread goes on.
    pub(crate) fn unblock(&self) {
        self.update(|word| Some(word.without(BLOCKED)));
    }

    /// Whether the job waits, at this moment: for a wake, or in `wait()`.
    pub(crate) fn is_waiting(&self) -> bool {
        Word(self.0.load(Ordering::Relaxed)).has(PARKED | BLOCKED)
    }

    /// Whether the output is in place; acquires it.
    pub(crate) fn is_done(&self) -> bool {
        Word(self.0.load(Ordering::Acquire)).has(DONE)
    }

    /// Whether somebody asked the job to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        Word(self.0.load(Ordering::Acquire)).has(CANCEL)
    }

    /// One attempt to replace `word`, for the paths on which another thread rarely interferes.
    #[inline(always)]
    fn exchange(&self, word: Word, new: Word) -> bool {
        // AcqRel: as in `update`.
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        self.0
            .compare_exchange(word.0, new.0, order.0, order.1)
            .is_ok()
    }

    /// Applies `change` until it sticks; `None` leaves the word as it is. Returns the word before.
    #[inline(always)]
    fn update(&self, mut change: impl FnMut(Word) -> Option<Word>) -> Word {
        let mut word = Word(self.0.load(Ordering::Acquire));
        loop {
            let Some(new) = change(word) else { return word };
            // AcqRel: pairs with itself; see the head of this file for who hands what to whom.
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

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = Word(self.0.load(Ordering::Relaxed));
        let names = [
            (PARKED, "parked"),
            (NOTIFIED, "notified"),
            (DONE, "done"),
            (LISTENING, "listening"),
            (CLOSED, "closed"),
            (CANCEL, "cancel"),
            (HANDLE, "handle"),
            (JOINER, "joiner"),
            (RECEIVER, "receiver"),
            (BLOCKED, "blocked"),
        ];
        let set = names
            .iter()
            .filter(|(bit, _)| word.has(*bit))
            .map(|(_, name)| name);
        f.debug_list().entries(set).finish()
    }
}
