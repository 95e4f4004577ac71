//! Telling the peers of a unit that has ended: one unit after the other, never one within another.
//!
//! A signal may end its receiver there and then, if the receiver's runtime is gone; and that unit has peers too. Were
//! they told at once, a chain of links would need a stack as long as itself. So the thread that tells notes the units
//! that end meanwhile, and tells their peers when it is done with those before.
//!
//! Called by `signals.rs` alone. No lock is held here.

use std::{cell::RefCell, collections::VecDeque, sync::Arc};

use weald_kernel::catch_unwinding;

use crate::{
    exit::ExitReason,
    signal::{
        few::Few,
        signals::{Callers, MonitorNumber, Origin, ProcessId, Signals, Watcher},
    },
};

/// A unit that has ended, and what it leaves.
pub(crate) struct Ended {
    pub(crate) id: ProcessId,
    pub(crate) reason: ExitReason,
    pub(crate) links: Few<ProcessId, Arc<Signals>>,
    pub(crate) monitors: Few<MonitorNumber, Box<dyn Watcher>>,
    /// None if it has never dropped a request while it might go on.
    pub(crate) answers: Option<Callers>,
    pub(crate) monitoring: Few<MonitorNumber, Arc<Signals>>,
}

thread_local! {
    /// Those that ended while the thread tells; none if it does not tell.
    static LATER: RefCell<Option<VecDeque<Ended>>> = const { RefCell::new(None) };
}

/// Tells the peers of `ended`; later, if the calling thread is telling others.
pub(crate) fn tell(ended: Ended) {
    let mut ended = Some(ended);
    let is_later = LATER.try_with(|later| match &mut *later.borrow_mut() {
        Some(later) => later.extend(ended.take()),
        none => *none = Some(VecDeque::new()),
    });
    let Some(first) = ended else { return };
    isolated(|| tell_peers(first));
    // Without the list, because the thread ends, each unit tells its peers itself.
    while is_later.is_ok()
        && let Some(next) = next()
    {
        isolated(|| tell_peers(next));
    }
}

/// The next one to tell of. If there is none, the thread tells no longer.
fn next() -> Option<Ended> {
    let next = LATER.try_with(|later| {
        let mut later = later.borrow_mut();
        let next = later.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            *later = None;
        }
        next
    });
    next.ok().flatten()
}

fn tell_peers(ended: Ended) {
    let Ended {
        id,
        reason,
        links,
        monitors,
        answers,
        monitoring,
    } = ended;
    for (number, target) in monitoring.iter() {
        let watcher = target.lock().remove_monitor(*number);
        isolated(|| drop(watcher));
    }
    for (_, peer) in links.iter() {
        isolated(|| peer.receive_exit(Origin::Link(id), &reason));
    }
    let tell = |watcher: Box<dyn Watcher>| isolated(|| watcher.tell(reason.clone()));
    monitors.into_values().for_each(tell);
    answers
        .into_iter()
        .flat_map(Callers::into_values)
        .for_each(tell);
}

/// Calls `code`, which may call user code, so that neither its panic nor a cancel of the running unit, which may be the
/// one that has ended, keeps another unit from its signal.
pub(crate) fn isolated(code: impl FnOnce()) {
    let _unwound = catch_unwinding(code);
}
