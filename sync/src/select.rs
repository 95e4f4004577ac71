//! `select!`: the choice among events of any kinds, written as a `match`.

use crate::event::Event;

/// Syncs several events, and runs the handler of the one that is chosen.
///
/// ```text
/// select! {                              // in async code: awaits
///     pattern = event => handler,        // any number of these
///     pattern = event => { handler }
///     else => handler                    // optional, last: nothing was ready at once
/// }
/// select! { wait; pattern = event => handler }   // waits with the stack
/// ```
///
/// An event is any [`Event`]; an `Option` of one is, too, and `None` leaves its arm out. `&mut handle` of a job, thread
/// or process is one, and a future becomes one by [`of_future`](crate::of_future), or with a [`Kept`](crate::Kept). The
/// event expressions are evaluated from left to right, then guards run, then one event is chosen as by
/// [`choose`](crate::choose). All others are gone when the handler runs. The handlers are part of the caller's own
/// function, so `?`, `break`, `return` and `.await` mean what they mean there. They have one type, which is the type of
/// the whole. A pattern must match every output: it is `Ok(value)` only if an error is impossible. With `else` the
/// macro never waits.
///
/// ```
/// use std::time::Duration;
/// use weald::sync::{Wait, after, channel::{self, Closed}, select};
///
/// async fn sum(numbers: &channel::Receiver<u32>, stop: &channel::Receiver<()>) -> Result<u32, Closed> {
///     let mut sum = 0;
///     loop {
///         select! {
///             number = numbers.receive() => sum += number?,
///             _ = stop.receive() => return Ok(sum),
///             () = after(Duration::from_secs(60)) => {
///                 println!("nothing has come for a minute");
///             }
///         }
///     }
/// }
///
/// let (sender, numbers) = channel::unbounded();
/// let (_stop, stopped) = channel::unbounded();
/// sender.try_send(1).unwrap();
/// sender.try_send(2).unwrap();
/// drop(sender);
/// assert_eq!(Box::pin(sum(&numbers, &stopped)).wait(), Err(Closed));
///
/// let (sender, numbers) = channel::rendezvous();
/// let first = select! {
///     wait;
///     number = numbers.receive() => number.ok(),
///     () = after(Duration::ZERO) => None,
/// };
/// assert_eq!(first, None);
///
/// let sent = select! {
///     result = sender.send(7) => result.is_ok(),
///     else => false,
/// };
/// assert!(!sent);
/// ```
#[macro_export]
macro_rules! select {
    (wait; $($branches:tt)+) => {
        $crate::__select!(@take wait [] $($branches)+)
    };
    ($($branches:tt)+) => {
        $crate::__select!(@take async [] $($branches)+)
    };
}

/// The steps of `select!`: takes the branches apart, then builds a list of events and a nest of matches.
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    // Step 1: one branch after the other, into `[pattern, event, handler]`.
    (@take $how:tt [$($done:tt)+]) => {
        $crate::__select!(@$how $($done)+)
    };
    (@take $how:tt [$($done:tt)+] else => $handler:expr $(,)?) => {{
        use $crate::__Arm as _;
        match $crate::Event::try_sync($crate::__select!(@events $($done)+)) {
            ::core::option::Option::Some(chosen) => $crate::__select!(@match chosen $($done)+),
            ::core::option::Option::None => $handler,
        }
    }};
    (@take $how:tt [$($done:tt)*]
        $pattern:pat = $event:expr => $handler:block , $($rest:tt)*) => {
        $crate::__select!(@take $how [$($done)* [$pattern, $event, $handler]] $($rest)*)
    };
    (@take $how:tt [$($done:tt)*]
        $pattern:pat = $event:expr => $handler:block $($rest:tt)*) => {
        $crate::__select!(@take $how [$($done)* [$pattern, $event, $handler]] $($rest)*)
    };
    (@take $how:tt [$($done:tt)*]
        $pattern:pat = $event:expr => $handler:expr , $($rest:tt)*) => {
        $crate::__select!(@take $how [$($done)* [$pattern, $event, $handler]] $($rest)*)
    };
    (@take $how:tt [$($done:tt)*]
        $pattern:pat = $event:expr => $handler:expr) => {
        $crate::__select!(@take $how [$($done)* [$pattern, $event, $handler]])
    };
    // Step 2: the wait. The events are gone when it has ended.
    (@wait $($branches:tt)+) => {{
        use $crate::__Arm as _;
        let chosen = $crate::Wait::wait($crate::Event::sync($crate::__select!(@events $($branches)+)));
        $crate::__select!(@match chosen $($branches)+)
    }};
    (@async $($branches:tt)+) => {{
        use $crate::__Arm as _;
        let chosen = $crate::Event::sync($crate::__select!(@events $($branches)+)).await;
        $crate::__select!(@match chosen $($branches)+)
    }};
    // Step 3: the events.
    (@events) => {
        $crate::never::<::core::convert::Infallible>()
    };
    (@events [$pattern:pat, $event:expr, $handler:expr] $($rest:tt)*) => {
        $crate::Alternative($event.__arm(), $crate::__select!(@events $($rest)*))
    };
    // Step 4: the handlers.
    (@match $chosen:ident) => {
        match $chosen {}
    };
    (@match $chosen:ident [$pattern:pat, $event:expr, $handler:expr] $($rest:tt)*) => {
        match $chosen {
            $crate::Either::First($pattern) => $handler,
            $crate::Either::Rest(rest) => $crate::__select!(@match rest $($rest)*),
        }
    };
}

/// The step through which each event of `select!` goes. A method, because what has no such method is one error, at the
/// place of the user; a bound would fail once more wherever the macro uses the event.
#[doc(hidden)]
pub trait __Arm: Sized {
    #[doc(hidden)]
    fn __arm(self) -> Self;
}

impl<E: Event> __Arm for E {
    #[inline]
    fn __arm(self) -> E {
        self
    }
}
