//! Telling the peers of a unit that has ended: one unit after the other, never one within another.
//!
//! If the receiver's runtime is gone, a signal ends the receiver at once, and the receiver has peers, too. If these
//! were told at once, a chain of links would need a stack as long as the chain. So the thread that tells notes the
//! units that end meanwhile, and tells their peers later.
//!
//! A peer may be told by user code, which may block: a closure makes a message of the notice, or a waker is of another
//! executor. If that holds the thread, the kernel says so, and the others are told [apart](Untold::tell_apart):
//! closures in jobs of their own. If the thread serves no worker, the monitor may have found it held before, and does
//! not say so again; then closures are called apart from the first on.
//!
//! Called by `signals.rs` alone. No lock is held here.

use std::{
    cell::RefCell,
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weald_kernel::{Unit, catch_unwinding, serves_worker};

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
    /// Empty at first.
    pub(crate) untold: Arc<Untold>,
}

thread_local! {
    /// The units that ended while the thread tells; none if it does not tell.
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
        untold,
    } = ended;
    for (number, target) in monitoring.iter() {
        let watcher = target.lock().remove_monitor(*number);
        isolated(|| drop(watcher));
    }
    let links = links.into_values();
    let links = links.map(|peer| Notice::Exit(id, reason.clone(), peer));
    let answers = answers.into_iter().flat_map(Callers::into_values);
    let watchers = monitors.into_values().chain(answers);
    let watchers = watchers.map(|watcher| Notice::Down(watcher, reason.clone()));
    untold.tell_all(links.chain(watchers));
}

/// How reports name a closure that is called apart, in front of the name of its process.
const NOTICE: &str = "a notice to";

/// What a peer is told.
enum Notice {
    /// The unit that ended, and why; to a unit that is linked with it.
    Exit(ProcessId, ExitReason, Arc<Signals>),
    Down(Box<dyn Watcher>, ExitReason),
}

impl Notice {
    fn tell(self) {
        isolated(|| match self {
            Notice::Exit(from, reason, peer) => peer.receive_exit(Origin::Link(from), &reason),
            Notice::Down(watcher, reason) => watcher.tell(reason),
        });
    }

    /// The unit whose closure makes a message of it, if one does.
    fn calls_code_of(&self) -> Option<Unit> {
        match self {
            Notice::Exit(_, _, peer) => peer.trapping_unit(),
            Notice::Down(watcher, _) => watcher.calls_code_of(),
        }
    }

    fn tell_apart(self) {
        match self.calls_code_of() {
            Some(unit) => unit.call_apart(NOTICE, move || self.tell()),
            None => self.tell(),
        }
    }
}

/// The peers of a unit that has ended and that are not told yet.
#[derive(Default)]
pub(crate) struct Untold(Mutex<VecDeque<Notice>>);

impl Untold {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Notice>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_all(&self, notices: impl Iterator<Item = Notice>) {
        self.lock().extend(notices);
        while let Some(notice) = self.next() {
            match serves_worker() {
                true => notice.tell(),
                false => notice.tell_apart(),
            }
        }
    }

    fn next(&self) -> Option<Notice> {
        self.lock().pop_front()
    }

    /// Tells those that are left, although the thread that tells does not go on. Any thread.
    pub(crate) fn tell_apart(&self) {
        let left = mem::take(&mut *self.lock());
        left.into_iter().for_each(Notice::tell_apart);
    }
}

/// Calls `code`, which may call user code. Neither its panic, nor a cancel of the running unit (which may be the one
/// that has ended), keeps another unit from its signal.
pub(crate) fn isolated(code: impl FnOnce()) {
    let _unwound = catch_unwinding(code);
}
