//! The end of a future, as an event.
//!
//! A future must not be polled under the claim, which is held only for a few instructions. When the future
//! turns out to be ready, a partner may just have won the claim for another event. So readiness and output
//! are separate: a [`Source`] that is ready stays ready until its output is taken, and the output is taken
//! only after the claim was won for the source. A source that loses keeps its output: if it was passed by
//! reference, the next sync can take it.

#![allow(unsafe_code)]

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    combinators::pinned::Both,
    event::{Branch, Enrolled, Event, Won, awaitable},
    queue::{claim::Lost, ticket::Ticket},
    runtime::reason::{Kind, Reason},
};

/// Becomes ready, and stays ready until its output is taken: a mailbox with one receiver, the end of a job, a
/// point in time.
pub trait Source {
    /// The output.
    type Output;

    /// Whether there is an output to take. If not, the waker is woken when there is.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;

    /// Takes the output. Called at most once each time [`poll_ready`](Source::poll_ready) was ready.
    fn take(self: Pin<&mut Self>) -> Self::Output;

    /// Both at once. Called when nothing else can be chosen before the output is taken.
    fn poll_take(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ready = self.as_mut().poll_ready(cx);
        ready.map(|()| self.take())
    }

    /// The reason that is noted for a wait.
    fn reason(&self) -> Reason {
        Reason::new(Kind::Future, self)
    }
}

/// The event that is ready when `source` is. To use a source again, pass it by reference (`Pin<&mut S>`).
pub fn of_source<S: Source>(source: S) -> Polled<S> {
    Polled(source)
}

/// The event that is ready when `future` is. If another event is chosen, the future is dropped, and its output
/// with it if it is ready at the same moment, even if the future is cancel-safe. Put a future that must continue into a
/// [`Kept`]. A reference to a future is no substitute: the output would be lost. What ends or arrives in Weald needs
/// neither, because it is an event itself: `&mut handle` of a job, thread or process, a receive, the next job of a set.
///
/// ```
/// use weald::sync::{Wait, never, of_future, one_of, Either};
///
/// let chosen = one_of((of_future(async { 1 + 1 }), never::<()>())).wait();
/// assert!(matches!(chosen, Either::First(2)));
/// ```
pub fn of_future<F: Future>(future: F) -> Polled<Kept<F>> {
    Polled(Kept::new(future))
}

/// See [`of_source`] and [`of_future`].
#[derive(Debug)]
#[must_use = "an event does nothing unless it is synced"]
pub struct Polled<S>(S);

/// A future, and its output until the output is taken. It may take part in any number of choices, one after
/// the other, and loses nothing if it is not chosen. Once the output was taken, it is never ready again.
///
/// ```
/// use std::pin::pin;
/// use weald::sync::{Wait, always, choose, of_source, Event, Kept};
///
/// let mut answer = pin!(Kept::new(async { 42 }));
/// let mut rounds = 0;
/// while choose((of_source(answer.as_mut()), always(0))).wait() != 42 {
///     rounds += 1;
///     assert!(rounds < 10_000, "nobody is starved");
/// }
/// ```
///
/// # Safety
/// *Pinned*: its only field is pinned with it.
pub struct Kept<F: Future>(Both<F, KeptState<F::Output>>);

/// The state of a kept future.
enum KeptState<T> {
    Runs,
    Ready(T),
    Taken,
}

/// Marks the branch that polls.
pub struct Polls;

impl<S: Source> Event for Polled<S> {
    type Output = S::Output;
    type Branch = Both<S, Polls>;

    fn open(self) -> Self::Branch {
        Both::new(self.0, Polls)
    }

    fn conclude(outcome: S::Output) -> S::Output {
        outcome
    }
}

impl<S: Source> Both<S, Polls> {
    fn source(self: Pin<&mut Self>) -> Pin<&mut S> {
        self.parts().0
    }
}

impl<S: Source> Branch for Both<S, Polls> {
    type Output = S::Output;

    fn attempt(self: Pin<&mut Self>, _base: u32, cx: &mut Context<'_>) -> Poll<S::Output> {
        self.source().poll_take(cx)
    }

    /// The source was attempted in this poll, and has the waker.
    fn enrol(
        self: Pin<&mut Self>,
        _base: u32,
        _ticket: &Ticket<'_>,
        _cx: &mut Context<'_>,
    ) -> Enrolled<S::Output> {
        Enrolled::Waits
    }

    fn again(
        mut self: Pin<&mut Self>,
        _base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<S::Output> {
        if ticket.is_alone() {
            return match self.source().poll_take(cx) {
                Poll::Pending => Enrolled::Waits,
                Poll::Ready(output) => won(ticket, || output),
            };
        }
        match self.as_mut().source().poll_ready(cx) {
            Poll::Pending => Enrolled::Waits,
            Poll::Ready(()) => won(ticket, || self.source().take()),
        }
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn collect(self: Pin<&mut Self>, _won: Won) -> S::Output {
        unreachable!("no partner ends a wait for a future")
    }

    fn give_back(self: Pin<&mut Self>, _won: Won) {}

    fn settle(self: Pin<&mut Self>, _won: Option<u32>) {}

    #[inline(always)]
    fn settles_early(&self) -> bool {
        false
    }

    fn reason(&self) -> Reason {
        self.pinned().reason()
    }
}

/// Wins the claim, unless a partner was first.
fn won<T>(ticket: &Ticket<'_>, output: impl FnOnce() -> T) -> Enrolled<T> {
    match ticket.hold() {
        Err(Lost) => Enrolled::Lost,
        Ok(own) => {
            ticket.win(own);
            Enrolled::Ready(output())
        }
    }
}

impl<F: Future> Kept<F> {
    /// Keeps `future`.
    pub fn new(future: F) -> Kept<F> {
        Kept(Both::new(future, KeptState::Runs))
    }

    fn parts(self: Pin<&mut Self>) -> (Pin<&mut F>, &mut KeptState<F::Output>) {
        // SAFETY: *pinned*.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.parts()
    }
}

impl<F: Future> Source for Kept<F> {
    type Output = F::Output;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (future, state) = self.parts();
        match state {
            KeptState::Ready(_) => Poll::Ready(()),
            KeptState::Taken => Poll::Pending,
            KeptState::Runs => future
                .poll(cx)
                .map(|output| *state = KeptState::Ready(output)),
        }
    }

    fn take(self: Pin<&mut Self>) -> F::Output {
        match std::mem::replace(self.parts().1, KeptState::Taken) {
            KeptState::Ready(output) => output,
            KeptState::Runs | KeptState::Taken => {
                panic!("an output is taken only from a source that is ready")
            }
        }
    }
}

impl<P> Source for Pin<P>
where
    P: std::ops::DerefMut,
    P::Target: Source,
{
    type Output = <P::Target as Source>::Output;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.as_deref_mut().poll_ready(cx)
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        self.as_deref_mut().take()
    }

    fn poll_take(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.as_deref_mut().poll_take(cx)
    }

    fn reason(&self) -> Reason {
        (**self).reason()
    }
}

impl<S: Source + Unpin + ?Sized> Source for &mut S {
    type Output = S::Output;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut **self.get_mut()).poll_ready(cx)
    }

    fn take(self: Pin<&mut Self>) -> S::Output {
        Pin::new(&mut **self.get_mut()).take()
    }

    fn poll_take(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<S::Output> {
        Pin::new(&mut **self.get_mut()).poll_take(cx)
    }

    fn reason(&self) -> Reason {
        (**self).reason()
    }
}

awaitable!([S: Source] Polled<S>);

impl<F: Future> fmt::Debug for Kept<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.plain() {
            KeptState::Runs => "Kept(runs)",
            KeptState::Ready(_) => "Kept(ready)",
            KeptState::Taken => "Kept(taken)",
        })
    }
}
