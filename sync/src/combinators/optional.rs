//! The event that may be absent: a guard for an arm of a choice.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    event::{Branch, Enrolled, Event, Won},
    queue::ticket::Ticket,
    runtime::reason::{Kind, Reason},
};

const PRESENT: &str = "an absent branch has no base events, and so takes no step";

/// `None` is [`never`](crate::never()) ready. So an arm of [`select!`](crate::select!) can be left out for a while, for
/// example when its stream has ended:
///
/// ```
/// use weald::sync::{Wait, channel::{self, Closed}, select};
///
/// async fn sum(mut numbers: Option<channel::Receiver<u32>>, words: channel::Receiver<&str>) -> (u32, usize) {
///     let (mut sum, mut length) = (0, 0);
///     loop {
///         select! {
///             number = numbers.as_ref().map(|numbers| numbers.receive()) => match number {
///                 Ok(number) => sum += number,
///                 Err(Closed) => numbers = None,
///             },
///             word = words.receive() => match word {
///                 Ok(word) => length += word.len(),
///                 Err(Closed) => return (sum, length),
///             },
///         }
///     }
/// }
///
/// let (_, numbers) = channel::unbounded();
/// let (sender, words) = channel::unbounded();
/// sender.try_send("word").unwrap();
/// drop(sender);
/// assert_eq!(Box::pin(sum(Some(numbers), words)).wait(), (0, 4));
/// ```
impl<E: Event> Event for Option<E> {
    type Output = E::Output;
    type Branch = Option<E::Branch>;

    fn open(self) -> Option<E::Branch> {
        self.map(E::open)
    }

    fn conclude(outcome: <E::Branch as Branch>::Output) -> E::Output {
        E::conclude(outcome)
    }
}

impl<B: Branch> Branch for Option<B> {
    type Output = B::Output;

    fn bases(&self) -> u32 {
        self.as_ref().map_or(0, B::bases)
    }

    fn attempt(self: Pin<&mut Self>, base: u32, cx: &mut Context<'_>) -> Poll<B::Output> {
        self.as_pin_mut().expect(PRESENT).attempt(base, cx)
    }

    fn enrol(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<B::Output> {
        self.as_pin_mut().expect(PRESENT).enrol(base, ticket, cx)
    }

    fn again(
        self: Pin<&mut Self>,
        base: u32,
        ticket: &Ticket<'_>,
        cx: &mut Context<'_>,
    ) -> Enrolled<B::Output> {
        self.as_pin_mut().expect(PRESENT).again(base, ticket, cx)
    }

    fn is_polled(&self) -> bool {
        self.as_ref().is_some_and(B::is_polled)
    }

    fn collect(self: Pin<&mut Self>, won: Won) -> B::Output {
        self.as_pin_mut().expect(PRESENT).collect(won)
    }

    fn give_back(self: Pin<&mut Self>, won: Won) {
        self.as_pin_mut().expect(PRESENT).give_back(won);
    }

    fn settle(self: Pin<&mut Self>, won: Option<u32>) {
        if let Some(branch) = self.as_pin_mut() {
            branch.settle(won);
        }
    }

    fn settles_early(&self) -> bool {
        self.as_ref().is_some_and(B::settles_early)
    }

    fn drops_early(&self) -> bool {
        self.as_ref().is_some_and(B::drops_early)
    }

    fn reason(&self) -> Reason {
        match self {
            Some(branch) => branch.reason(),
            None => Reason::new(Kind::Select, self),
        }
    }
}
