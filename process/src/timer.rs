//! Timers of a process: messages that are sent later, as `erlang:send_after`.
//!
//! A timer is a callback of the unit that sets it, and so dies with that unit.

use std::{
    fmt,
    time::{Duration, Instant},
};

use weald_kernel::{callback::Handle, now};

use crate::{
    callback::{CENTURY, at, every},
    inbox::Inbox,
    kinds::{any_inbox::AnyInbox, bounded_message::Bounded, prioritized::Prioritized},
    pid::Pid,
};

/// A message that is sent later. Dropping the timer does not cancel it: use [`Timer::cancel`].
#[must_use = "dropping a timer does not cancel it; call detach() to make that explicit"]
pub struct Timer {
    handle: Handle,
    /// When it sends.
    due: Instant,
}

impl Timer {
    /// Cancels the timer. Returns the time that remained, or none if the message was sent already, or is being sent.
    /// The message of a cancelled timer is dropped.
    pub fn cancel(&self) -> Option<Duration> {
        let remaining = self.due.saturating_duration_since(now());
        self.handle.cancel().then_some(remaining)
    }

    /// The time that remains; none if the message was sent, or never will be.
    pub fn remaining(&self) -> Option<Duration> {
        let remaining = self.due.saturating_duration_since(now());
        (!self.handle.is_over()).then_some(remaining)
    }

    /// Leaves the timer to itself.
    pub fn detach(self) {
        self.handle.detach();
    }
}

impl<M: Send + 'static> Pid<M> {
    /// Sends `message` to the process once `duration` has passed; never earlier. The timer belongs to the unit that
    /// calls this, and dies with it; outside of units, it belongs to the runtime. If the receiver has ended by then,
    /// the message is dropped. A longer duration counts as a hundred years. O(1), one block.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::time::Duration;
    /// use weald::process::{self as process, Inbox};
    ///
    /// let process = process::spawn(async |mut inbox: Inbox<&str>| {
    ///     inbox.send_after(Duration::from_secs(2), "late").detach();
    ///     let never = inbox.send_after(Duration::from_secs(1), "never");
    ///     assert_eq!(never.cancel(), Some(Duration::from_secs(1)));
    ///     inbox.receive().await
    /// })?;
    /// assert_eq!(process.await, Ok("late"));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn send_after(&self, duration: Duration, message: M) -> Timer {
        let pid = self.clone();
        let due = now() + duration.min(CENTURY);
        Timer {
            handle: at(due, move || pid.send(message)),
            due,
        }
    }

    /// Sends the message that `make` makes every `period`, until the timer is cancelled, or the unit that calls this
    /// ends. The times stay on their grid.
    ///
    /// # Panics
    /// If `period` is zero.
    #[track_caller]
    pub fn send_every(&self, period: Duration, make: impl FnMut() -> M + Send + 'static) -> Handle {
        let (pid, mut make) = (self.clone(), make);
        every(period, move || pid.send(make()))
    }
}

impl<M: Send + 'static> Inbox<M> {
    /// Sends `message` to this process once `duration` has passed; see [`Pid::send_after`].
    #[track_caller]
    pub fn send_after(&self, duration: Duration, message: M) -> Timer {
        self.pid().send_after(duration, message)
    }

    /// Sends a message to this process every `period`; see [`Pid::send_every`].
    ///
    /// # Panics
    /// If `period` is zero.
    #[track_caller]
    pub fn send_every(&self, period: Duration, make: impl FnMut() -> M + Send + 'static) -> Handle {
        self.pid().send_every(period, make)
    }
}

impl<M: Send + 'static> AnyInbox<M> {
    /// See [`Pid::send_after`]. The message takes no room, and comes in its turn.
    #[track_caller]
    pub(crate) fn send_after(&self, duration: Duration, message: M) -> Timer {
        match self {
            AnyInbox::Plain(inbox) => inbox.send_after(duration, message),
            AnyInbox::Other(inbox) => {
                let message = Bounded::notice(Prioritized::usual(message));
                inbox.pid().pid().send_after(duration, message)
            }
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}
