//! The plain form of a callback: a closure that runs once, or in rounds.

use crate::callback::{
    cell::{RunOnce, RunRounds},
    group::Owner,
    start::{Handle, When, start},
};
use std::{panic::Location, time::Instant};

/// What follows one round of a callback that runs in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// No further round: the closure is dropped.
    Ended,
    /// Another round, behind the callbacks that are ready now.
    Ready,
    /// Another round, not before this instant.
    At(Instant),
}

/// Starts a callback that runs once. O(1); takes one block of 40 bytes plus the closure, and 24 bytes more if
/// `owner` is not the runtime. If the owner or the runtime has ended, the closure is dropped. Reports name the
/// callback by its closure's type and the line of this call.
///
/// ```
/// use weald::process::callback::{self, Owner, When};
///
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let soon = When::At(weald::now() + std::time::Duration::from_millis(1));
/// callback::once(Owner::runtime(), soon, move || sender.send("run").unwrap()).detach();
/// assert_eq!(receiver.recv(), Ok("run"));
/// # });
/// ```
#[inline]
#[track_caller]
pub fn once(owner: Owner, when: When, run: impl FnOnce() + Send + 'static) -> Handle {
    start(owner, when, Location::caller(), RunOnce(run))
}

/// Starts a callback that runs in rounds until it returns [`Next::Ended`], all in the same block. Otherwise as
/// [`once`].
#[inline]
#[track_caller]
pub fn rounds(owner: Owner, when: When, run: impl FnMut() -> Next + Send + 'static) -> Handle {
    start(owner, when, Location::caller(), RunRounds::<_>::new(run))
}

/// As [`rounds`], for code that starts a callback for other code: reports name `N`, the type of that code, and `site`
/// as the place where it was started.
#[inline]
pub fn rounds_as<N: 'static>(
    site: &'static Location<'static>,
    owner: Owner,
    when: When,
    run: impl FnMut() -> Next + Send + 'static,
) -> Handle {
    start(owner, when, site, RunRounds::<_, N>::new(run))
}
