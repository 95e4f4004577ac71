//! Initialisation once: by the first unit that comes, while the others wait.
//!
//! - One initialiser runs at a time. If it panics, fails or is dropped, the next waiter runs its own.
//! - When the value is there, all waits end at once; from then on a get is one load.
//!
//! An initialisation is two waits in a row: for the turn, and for the initialiser, which is any future. So
//! the whole is a future, not an event; [`OnceLock::wait`] is an event.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use crate::{
    event::{Branch, Enrolled, Waiting, Won},
    queue::{
        list,
        offer::{OfferNode, Offers},
        serve::{Served, serve},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
    runtime::reason::{Kind, Reason},
    time::TimedOut,
    tools::ivar::{Get, IVar},
};

/// A value that is created once, by an initialiser that may wait.
///
/// ```
/// use weald::sync::{OnceLock, Wait};
///
/// let settings = OnceLock::new();
/// let first = settings.get_or_init(async || "from a file").wait();
/// let later = settings.get_or_init(async || "never run").wait();
/// assert_eq!((*first, *later), ("from a file", "from a file"));
/// ```
///
/// There is no poisoning. An idle one has 48 bytes in addition to its value and the flag that it is there.
pub struct OnceLock<T> {
    value: IVar<T>,
    turns: SpinLock<Turns>,
}

struct Turns {
    /// Whether an initialiser runs.
    is_taken: bool,
    /// A slot says whether its wait got the turn.
    waiters: Offers<bool>,
}

impl<T> OnceLock<T> {
    /// A lock without a value.
    pub fn new() -> OnceLock<T> {
        OnceLock::of(IVar::new())
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str) -> OnceLock<T> {
        OnceLock::of(IVar::named(name))
    }

    fn of(value: IVar<T>) -> OnceLock<T> {
        OnceLock {
            value,
            turns: SpinLock::new(Turns {
                is_taken: false,
                waiters: Offers::new(),
            }),
        }
    }

    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.value.try_get()
    }

    /// Waits until the value is there, whichever unit creates it. An event. Cancel-safe.
    pub fn wait(&self) -> Waiting<Get<'_, T>> {
        self.value.get()
    }

    /// Sets the value. An initialiser that is running comes too late; its value is dropped.
    ///
    /// # Errors
    /// The new value, if there already was one.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.put(value).map_err(|full| full.0)?;
        serve(self.turns.lock(), |turns| turns.end_one());
        Ok(())
    }

    /// The value. If there is none, runs `init`, or waits for another unit's initialiser that is running.
    /// Cancel-safe: if the future is dropped, so is its initialiser, and the next waiter runs its own.
    ///
    /// An initialiser that asks for the same value deadlocks with itself.
    pub async fn get_or_init(&self, init: impl AsyncFnOnce() -> T) -> &T {
        let made = self.get_or_try_init(async || Ok::<T, Infallible>(init().await));
        match made.await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// As [`OnceLock::get_or_init`], with an initialiser that may fail. Cancel-safe, too.
    ///
    /// # Errors
    /// The error of `init`, if it ran. Another initialiser may run later.
    pub async fn get_or_try_init<E>(
        &self,
        init: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let turn = Waiting::new(self.turn()).await;
        self.make(turn, init).await
    }

    /// As [`OnceLock::get_or_init`], but waits at most `duration` for another unit's initialiser. `init`, once
    /// started, may take longer. Cancel-safe, too.
    ///
    /// # Errors
    /// [`TimedOut`] if another unit's initialiser took longer.
    pub async fn get_or_init_within(
        &self,
        duration: Duration,
        init: impl AsyncFnOnce() -> T,
    ) -> Result<&T, TimedOut> {
        let turn = Waiting::new(self.turn()).within(duration).await?;
        self.make(turn, async || Ok(init().await)).await
    }

    /// The value.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    async fn make<E>(
        &self,
        turn: Option<Turn<'_, T>>,
        init: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<&T, E> {
        if let Some(turn) = turn {
            let value = init().await?;
            // A value that was set meanwhile is as good.
            let _late = self.value.put(value);
            drop(turn);
        }
        Ok(self.get().expect("without a turn there is a value"))
    }

    fn turn(&self) -> Await<'_, T> {
        Await {
            once: self,
            node: OfferNode::with_slot(false),
        }
    }
}

impl Turns {
    fn take(&mut self) -> bool {
        let is_free = !self.is_taken && self.waiters.first().is_none();
        self.is_taken |= is_free;
        is_free
    }

    /// The value is there: ends the wait of the next waiter, without the turn.
    fn end_one(&mut self) -> Served {
        let mut accepted = self.waiters.accept()?;
        *accepted.slot() = false;
        Some(accepted.win())
    }

    /// The value is not there: gives the turn to the next waiter, unless it is taken.
    fn give(&mut self) -> Served {
        if self.is_taken {
            return None;
        }
        let mut accepted = self.waiters.accept()?;
        *accepted.slot() = true;
        self.is_taken = true;
        Some(accepted.win())
    }
}

/// The right to run an initialiser.
struct Turn<'a, T> {
    once: &'a OnceLock<T>,
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut turns = self.once.turns.lock();
        turns.is_taken = false;
        let once = self.once;
        serve(turns, |turns| match once.get() {
            Some(_) => turns.end_one(),
            None => turns.give(),
        });
    }
}

/// The event of getting the turn. Yields none if there is a value.
struct Await<'a, T> {
    once: &'a OnceLock<T>,
    node: OfferNode<bool>,
}

impl<'a, T> Await<'a, T> {
    fn node(self: Pin<&mut Self>) -> (&'a OnceLock<T>, Pin<&mut OfferNode<bool>>) {
        list::project(self, |this| (this.once, &mut this.node))
    }
}

impl<'a, T> Branch for Await<'a, T> {
    type Output = Option<Turn<'a, T>>;

    fn attempt(self: Pin<&mut Self>, _base: u32, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        let once = self.once;
        if once.get().is_some() {
            return Poll::Ready(None);
        }
        let mut turns = once.turns.lock();
        // Again, under the lock: an initialiser stores the value before it gives the turn back.
        if once.get().is_some() {
            return Poll::Ready(None);
        }
        match turns.take() {
            true => Poll::Ready(Some(Turn { once })),
            false => Poll::Pending,
        }
    }

    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<Self::Output> {
        let (once, node) = self.node();
        let mut turns = once.turns.lock();
        let Ok(own) = ticket.hold() else {
            return Enrolled::Lost;
        };
        // A value that is not seen here is stored before its turn ends, which takes the lock later.
        if once.get().is_some() {
            ticket.win(own);
            return Enrolled::Ready(None);
        }
        if turns.take() {
            ticket.win(own);
            return Enrolled::Ready(Some(Turn { once }));
        }
        turns.waiters.leave(node, ticket);
        drop(own);
        Enrolled::Waits
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> Self::Output {
        let (once, node) = self.node();
        let is_mine = once.turns.lock().waiters.value(node).slot;
        // Not `then_some`: the destructor of a turn that is not ours would end somebody else's.
        is_mine.then(|| Turn { once })
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        drop(self.collect(won));
    }

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        let (once, node) = self.node();
        if won.is_none() && node.is_bound() {
            once.turns.lock().waiters.remove(node);
        }
    }

    fn reason(&self) -> Reason {
        Reason::new(Kind::Once, self.once).named(self.once.value.name())
    }
}

/// An action that is done once.
///
/// ```
/// use weald::sync::{Once, Wait};
///
/// let (once, mut runs) = (Once::new(), 0);
/// once.call_once(async || runs += 1).wait();
/// once.call_once(async || runs += 1).wait();
/// assert_eq!(runs, 1);
/// ```
#[derive(Default)]
pub struct Once(OnceLock<()>);

impl Once {
    /// An action that is not done yet.
    pub fn new() -> Once {
        Once::default()
    }

    /// Does the action, or waits until another unit has done it. If that unit panics or is dropped, the next
    /// waiter does it.
    pub async fn call_once(&self, act: impl AsyncFnOnce()) {
        self.0.get_or_init(act).await;
    }

    /// Whether the action is done.
    pub fn is_completed(&self) -> bool {
        self.0.get().is_some()
    }

    /// Waits until the action is done, whichever unit does it. An event. Cancel-safe.
    pub fn wait(&self) -> Waiting<Get<'_, ()>> {
        self.0.wait()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("OnceLock").field(value).finish(),
            None => f.write_str("OnceLock(<empty>)"),
        }
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once")
            .field("is_completed", &self.is_completed())
            .finish()
    }
}
