//! Trapping exits: exit signals as messages.

use std::{fmt, sync::Arc};

use weald_kernel::{Address, catch_panic};

use crate::{
    exit::ExitReason,
    inbox::Inbox,
    signal::signals::{Admit, Origin, ProcessId, Signals, Trap},
};

/// An exit signal, as a process that traps exits receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The unit that ended, or that called [`exit`](crate::Pid::exit). None if the call came from outside of all units.
    pub from: Option<ProcessId>,
    /// Why it ended, or the reason that the call gave.
    pub reason: ExitReason,
    /// Whether a link passed it on, as the end of `from`: else it is a call, or the answer to a link with a unit that
    /// had ended before.
    pub by_link: bool,
}

impl Exit {
    /// Whether a link tells that `unit` has ended.
    pub(crate) fn is_end_of(&self, unit: Option<ProcessId>) -> bool {
        self.by_link && unit.is_some() && self.from == unit
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) => write!(f, "exit signal from process {from}: {}", self.reason),
            None => write!(f, "exit signal: {}", self.reason),
        }
    }
}

struct Converting<M, F> {
    address: Address<M>,
    convert: F,
}

impl<M: Send, F: Fn(Exit) -> M + Send + Sync> Trap for Converting<M, F> {
    fn deliver(self: Arc<Self>, origin: Origin, reason: ExitReason, admit: Admit<'_, '_>) -> bool {
        let (from, by_link) = match origin {
            Origin::Link(from) => (Some(from), true),
            Origin::Call(from) => (from, false),
        };
        let exit = Exit {
            from,
            reason,
            by_link,
        };
        let message = catch_panic(|| (self.convert)(exit));
        let guard = admit();
        if guard.is_none() {
            return false;
        }
        let posted = message.map(|message| self.address.post_without_waking(message));
        // A destructor of the message, which is the receiver's code, runs outside the lock, and so does everything that
        // the wake leads to.
        drop(guard);
        match posted {
            Some(Err(message)) => drop(catch_panic(|| drop(message))),
            posted => drop(posted),
        }
        true
    }
}

impl<M: Send + 'static> Inbox<M> {
    /// From now on, an exit signal does not end this process: it becomes the message that `convert` makes of it. Only
    /// [`kill`](crate::Pid::kill) still ends the process. A second call replaces the first. O(1), and one allocation.
    ///
    /// `convert` is usually a variant of the message type. It runs in the unit that sends the signal or ends, and
    /// should not wait: a unit that joins it waits, too. If a unit ends on a thread that serves no worker, it runs in a
    /// job of its own. If it panics, that is reported, and the signal is lost: neither the sender nor this process
    /// ends. A call of [`exit`](crate::exit()) in it would end the sender.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{self as process, Exit, ExitReason, Inbox};
    ///
    /// enum Message { Exit(Exit) }
    ///
    /// let process = process::spawn(async |mut inbox: Inbox<Message>| {
    ///     inbox.trap_exits(Message::Exit);
    ///     process::spawn_link(async |_: Inbox<()>| panic!("on purpose"))?.into_pid();
    ///     let Message::Exit(exit) = inbox.receive().await;
    ///     assert!(matches!(exit.reason, ExitReason::Crash(_)));
    ///     Ok::<(), weald::SpawnError>(())
    /// })?;
    /// process.await.unwrap()
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    /// If the process has ended, and the inbox was moved out of it.
    pub fn trap_exits(&mut self, convert: impl Fn(Exit) -> M + Send + Sync + 'static) {
        let trap = Converting {
            address: self.0.address(),
            convert,
        };
        self.set_trap(Some(Arc::new(trap)));
    }

    /// From now on, exit signals end this process again. Exits that were trapped before stay in the mailbox.
    pub fn untrap_exits(&mut self) {
        self.set_trap(None);
    }

    fn set_trap(&mut self, trap: Option<Arc<dyn Trap>>) {
        let signals = Signals::of(&self.0.address().unit());
        let signals = signals.expect("the process of this inbox has ended");
        let mut state = signals.lock();
        let before = match state.has_ended() {
            true => trap,
            false => state.set_trap(trap),
        };
        drop(state);
        drop(before);
    }
}
