//! Links and exit signals: units that end together.

use std::sync::Arc;

use weald_kernel::{AsUnit, Unit, cancel_point};

use crate::{
    exit::ExitReason,
    pid::Pid,
    signal::signals::{Origin, ProcessId, Signals},
};

/// Links the running process, or other unit, with `other`: when one of them ends for another reason than
/// [`Normal`](ExitReason::Normal), the other ends too, with the same reason, unless it [traps
/// exits](crate::Inbox::trap_exits). There is at most one link between two units; linking them again, from either side,
/// does nothing, and so does a link with itself. O(1) on average, whatever the number of links.
///
/// If `other` has ended, the running unit gets an exit signal with the reason [`NoProcess`](ExitReason::NoProcess).
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{self as process, ExitReason, Inbox};
///
/// let worker = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await)?;
/// let pid = worker.pid().clone();
/// let leader = process::spawn(async move |_: Inbox<()>| {
///     process::link(&pid);
///     process::exit(ExitReason::Shutdown)
/// })?;
/// let ended: Result<(), _> = leader.await;
/// assert_eq!(ended, Err(ExitReason::Shutdown));
/// assert_eq!(worker.await, Err(ExitReason::Shutdown));
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
///
/// # Panics
/// Outside of units, and in a callback.
#[track_caller]
pub fn link(other: &impl AsUnit) {
    let own = Signals::current("link");
    let other = other.as_unit();
    let peer = other.as_ref().and_then(Signals::of);
    match &peer {
        Some(peer) if peer.id() == own.id() => return,
        Some(peer) if Signals::link(&own, peer) => return,
        _ => {}
    }
    let id = other.as_ref().map(ProcessId::of);
    own.receive_exit(Origin::Call(id), &ExitReason::NoProcess);
}

/// Links a unit that was just created with the running one, before it runs.
pub(crate) fn link_new(new: &Unit, own: &Arc<Signals>) {
    let new = Signals::of(new).expect("it has not run yet");
    let _linked = Signals::link(own, &new);
}

/// Removes the link between the running unit and `other`, if there is one. When this returns, no exit signal comes
/// from the link any longer; one that was trapped before may be in the mailbox.
///
/// # Panics
/// Outside of units, and in a callback.
#[track_caller]
pub fn unlink(other: &impl AsUnit) {
    let own = Signals::current("unlink");
    let peer = other
        .as_unit()
        .and_then(|unit| unit.attachment::<Signals>());
    if let Some(peer) = peer {
        Signals::unlink(&own, &peer);
    }
}

/// The units that the running one is linked with, in ascending order.
///
/// # Panics
/// Outside of units, and in a callback.
#[track_caller]
pub fn links() -> Vec<ProcessId> {
    Signals::current("links").lock().links()
}

/// Ends the running process, or other unit, with `reason`, at once: its stack unwinds and runs its destructors.
/// Trapping exits does not matter. The panic hook is not run.
///
/// If the unit was asked to end already, the former reason counts. In a part of a fork, the unit that forked ends,
/// whichever thread runs the part.
///
/// Code that catches all panics, with [`std::panic::catch_unwind`], catches this unwinding, too;
/// [`catch_panic`](weald_kernel::catch_panic) lets it pass. Then the unit continues until it next waits in an `await`,
/// and ends there for this reason. Its waits with the stack ([`Wait::wait`](weald_kernel::Wait::wait)) last to their
/// ends, because a cancel unwinds only once. If the unit returns first, it has returned normally: code that catches the
/// unwinding may repair things, as after any other cancel. So code that catches everything and must not continue raises
/// the panic again, with [`resume_unwind`](std::panic::resume_unwind).
///
/// # Panics
/// Outside of units; in a callback; and in a destructor that runs because the unit ends.
#[track_caller]
pub fn exit(reason: ExitReason) -> ! {
    let own = Signals::current("exit");
    own.note_asked(&reason);
    if let Some(unit) = Unit::current() {
        unit.kill();
    }
    cancel_point();
    panic!("a unit cannot exit while it ends already; the reason was: {reason}");
}

/// Sends an exit signal to a unit, as [`Pid::exit`].
pub(crate) fn send_exit(to: &Unit, reason: &ExitReason) {
    if let Some(signals) = Signals::of(to) {
        // A callback has no unit of its own.
        let from = Unit::current().filter(|unit| !unit.runs_callbacks());
        let from = from.as_ref().map(ProcessId::of);
        signals.receive_exit(Origin::Call(from), reason);
    }
}

impl<M> Pid<M> {
    /// Sends an exit signal to the process. If it [traps exits](crate::Inbox::trap_exits), the signal becomes a
    /// message. Otherwise the process ends at its next wait, with this reason; but [`Normal`](ExitReason::Normal) from
    /// another process does nothing. If several signals come before it ends, the first counts. Does nothing if the
    /// process has ended. Messages that are sent later are not received.
    pub fn exit(&self, reason: &ExitReason) {
        send_exit(&self.0.unit(), reason);
    }

    /// Whether the process was still running at the time of the call. It counts as running until its names are free.
    pub fn is_alive(&self) -> bool {
        Signals::is_alive(&self.0.unit())
    }

    /// The number of the process, which no other one has.
    pub fn id(&self) -> ProcessId {
        ProcessId::of(&self.0.unit())
    }
}

impl<M> AsUnit for Pid<M> {
    fn as_unit(&self) -> Option<Unit> {
        Some(self.0.unit())
    }
}
