//! The signals of one unit: its links, its monitors, and the reason of its end.
//!
//! They are made when the first of them is needed, and attached to the unit's job; so a process that uses none of this
//! pays nothing.
//!
//! Invariants:
//! - A link is in the lists of both units, except that a unit that ends empties its own list first. The list of a unit
//!   decides for that unit: an exit signal counts only while its sender is there. A monitor that leaves messages is
//!   also in the lists of both units, and the watcher's list decides.
//! - A message that a signal leaves in a mailbox is posted under the lock of the receiver's list, so that none comes
//!   after an unlink or a demonitor. The receiver is woken after that, because it ends at once if its runtime is gone.
//! - No lock is held while user code runs (conversions, destructors). Two are held only to link and to unlink, in the
//!   order of the ids.
//! - Once `end` is set, the lists are empty and stay so.

mod ending;

use std::{
    collections::BTreeMap,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weald_kernel::{Ending, Unit};

use crate::{
    admission::Admission,
    exit::ExitReason,
    signal::{few::Few, telling::Untold},
    survived::Survived,
};

/// The number of a process, or of another unit. No two units of the program have the same.
///
/// ```
/// use weald::process::{self, Inbox};
///
/// weald::block_on(async {
///     let process = process::spawn(async |inbox: Inbox<()>| inbox.pid().id())?;
///     let id = process.pid().id();
///     assert_eq!(process.await, Ok(id));
///     Ok::<(), weald::SpawnError>(())
/// })?;
/// # Ok::<(), weald::SpawnError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(u64);

impl ProcessId {
    pub(crate) fn of(unit: &Unit) -> ProcessId {
        ProcessId(unit.number())
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a monitor, which no other one has.
pub(crate) type MonitorNumber = u64;

pub(crate) struct Signals {
    id: ProcessId,
    state: Mutex<SignalState>,
}

pub(crate) struct SignalState {
    /// None once the unit has ended: the unit refers to this.
    unit: Option<Unit>,
    /// The reason with which the unit was asked to end; the first counts.
    asked: Option<ExitReason>,
    /// Why it ended.
    end: Option<ExitReason>,
    /// How it takes exit signals as messages, if it does.
    trap: Option<Arc<dyn Trap>>,
    links: Few<ProcessId, Arc<Signals>>,
    /// The monitors of others on this unit.
    monitors: Few<MonitorNumber, Box<dyn Watcher>>,
    /// Whether there were links or monitors when it ended.
    was_watched: bool,
    /// Whether what it holds is being taken back: from then on it can hold nothing more.
    releases: bool,
    /// This unit's own monitors that leave messages, and on whom.
    monitoring: Few<MonitorNumber, Arc<Signals>>,
    /// While the peers of the unit, which has ended, are told: those that are left.
    untold: Option<Arc<Untold>>,
    /// Made when it is first needed: most units that have links or monitors need none of this.
    rare: Option<Box<Rare>>,
}

/// The fields that few units need.
#[derive(Default)]
struct Rare {
    /// Callers whose requests the unit dropped while it panicked: they learn how it ends, or that it survives.
    answers: Callers,
    survived: Survived,
    /// By what others find it, and how that is taken back before anyone is told of its end.
    held: BTreeMap<(Holding, HeldKey), Release>,
    /// The admission to its mailbox, if that is bounded, for those that have only its pid.
    admission: Option<Arc<Admission>>,
}

/// Callers that wait for the end of a unit, or for its survival.
pub(crate) type Callers = BTreeMap<MonitorNumber, Box<dyn Watcher>>;

/// Says whether a signal still counts: if so, returns the lock under which its message is posted.
pub(crate) type Admit<'a, 'b> = &'b dyn Fn() -> Option<Guard<'a>>;

/// The lock on the signals of a unit.
pub(crate) type Guard<'a> = MutexGuard<'a, SignalState>;

/// How a process takes exit signals.
pub(crate) trait Trap: Send + Sync {
    /// Posts the signal as a message. False if it no longer counts. A conversion that panics loses the message only.
    ///
    /// `admit` is called after the conversion, which is user code; the message is posted under the lock that it
    /// returns, so that none comes after an unlink, and the receiver is woken once that is released.
    fn deliver(self: Arc<Self>, origin: Origin, reason: ExitReason, admit: Admit<'_, '_>) -> bool;
}

/// Is told of the end of the unit that it watches.
pub(crate) trait Watcher: Send {
    fn tell(self: Box<Self>, reason: ExitReason);

    /// The unit whose code it calls, if it calls user code.
    fn calls_code_of(&self) -> Option<Unit>;
}

/// What a unit may hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holding {
    /// A name.
    Name,
    /// A place in a group.
    Member,
}

/// A runtime and a name in it.
pub(crate) type HeldKey = (u16, String);

/// Takes back what the unit held.
pub(crate) type Release = fn(&HeldKey, ProcessId);

/// What the sending thread must do for an exit signal, outside the lock.
enum Effect {
    Nothing,
    Kill(Unit),
    Trap(Arc<dyn Trap>),
}

/// Where an exit signal comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From a link to this unit, which breaks.
    Link(ProcessId),
    /// From a call of `exit`, by this unit, or from outside.
    Call(Option<ProcessId>),
}

impl Signals {
    /// The signals of `unit`. None if it has ended without any.
    pub(crate) fn of(unit: &Unit) -> Option<Arc<Signals>> {
        unit.attach(|number| Signals {
            id: ProcessId(number),
            state: Mutex::new(SignalState {
                unit: Some(unit.clone()),
                asked: None,
                end: None,
                trap: None,
                links: Few::None,
                monitors: Few::None,
                was_watched: false,
                releases: false,
                monitoring: Few::None,
                untold: None,
                rare: None,
            }),
        })
    }

    /// Those of the running unit.
    ///
    /// # Panics
    /// Outside of units, and in a callback.
    #[track_caller]
    pub(crate) fn current(what: &str) -> Arc<Signals> {
        let unit = Unit::current().filter(|unit| !unit.runs_callbacks());
        match unit.as_ref().and_then(Signals::of) {
            Some(signals) => signals,
            None => panic!("{what} needs a running unit: call it in a process or a job"),
        }
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the unit can still be found and told: its code may have ended, but its names are not free yet.
    pub(crate) fn is_alive(unit: &Unit) -> bool {
        let has_ended = |signals: Arc<Signals>| signals.lock().has_ended();
        !unit.is_done() || !unit.attachment().is_none_or(has_ended)
    }

    /// Whether the unit has survived a panic since it had survived those.
    pub(crate) fn has_survived(unit: &Unit, before: Survived) -> bool {
        let signals = unit.attachment::<Signals>();
        signals.is_some_and(|signals| signals.lock().panics_survived() > before)
    }

    /// Why a unit that is done ended.
    pub(crate) fn end_of(unit: &Unit) -> ExitReason {
        let known = unit.attachment::<Signals>();
        let known = known.and_then(|signals| signals.lock().end.clone());
        known.unwrap_or_else(|| {
            let ending = unit.ending().unwrap_or(Ending::Gone);
            ExitReason::of_ending(ending, None, || unit.name())
        })
    }

    /// Why a unit that was cancelled ended.
    pub(crate) fn reason_of(unit: &Unit) -> ExitReason {
        let signals = unit.attachment::<Signals>();
        let reason = signals.and_then(|signals| {
            let state = signals.lock();
            state.end.clone().or_else(|| state.asked.clone())
        });
        reason.unwrap_or(ExitReason::Killed)
    }

    /// Links two units, unless they are linked already. False if one has ended.
    pub(crate) fn link(one: &Arc<Signals>, other: &Arc<Signals>) -> bool {
        let (mut state, mut peer) = Signals::lock_both(one, other);
        if state.has_ended() || peer.has_ended() {
            // If they are linked, the exit signal is on its way along this link, and is the only one.
            return state.links.contains_key(&other.id);
        }
        // The caller has the same reference as a replaced entry, so nothing is dropped under the locks.
        state.links.insert(other.id, other.clone());
        peer.links.insert(one.id, one.clone());
        true
    }

    /// Removes the link between two units.
    pub(crate) fn unlink(one: &Arc<Signals>, other: &Arc<Signals>) {
        if one.id == other.id {
            return;
        }
        let (mut state, mut peer) = Signals::lock_both(one, other);
        // The callers' references remain, so that nothing is dropped under the locks.
        state.links.remove(&other.id);
        peer.links.remove(&one.id);
    }

    fn lock_both<'a>(one: &'a Signals, other: &'a Signals) -> (Guard<'a>, Guard<'a>) {
        match one.id < other.id {
            true => {
                let first = one.lock();
                (first, other.lock())
            }
            false => {
                let first = other.lock();
                (one.lock(), first)
            }
        }
    }

    /// Takes an exit signal.
    pub(crate) fn receive_exit(&self, origin: Origin, reason: &ExitReason) {
        loop {
            let trap = match self.take_exit(origin, reason) {
                Effect::Nothing => return,
                Effect::Kill(unit) => return unit.kill(),
                Effect::Trap(trap) => trap,
            };
            let delivered = trap.clone().deliver(origin, reason.clone(), &|| {
                let mut state = self.lock();
                let same = matches!(&state.trap, Some(now) if Arc::ptr_eq(now, &trap));
                let counts = match origin {
                    Origin::Link(from) => same && state.links.remove(&from).is_some(),
                    Origin::Call(_) => same,
                };
                counts.then_some(state)
            });
            if delivered {
                return;
            }
            // It was unlinked, has ended, or traps exits no longer, meanwhile: look again.
        }
    }

    fn take_exit(&self, origin: Origin, reason: &ExitReason) -> Effect {
        let mut state = self.lock();
        if state.end.is_some()
            || matches!(origin, Origin::Link(from) if !state.links.contains_key(&from))
        {
            return Effect::Nothing;
        }
        if let Some(trap) = &state.trap {
            return Effect::Trap(trap.clone());
        }
        let broken = match origin {
            Origin::Link(from) => state.links.remove(&from),
            Origin::Call(_) => None,
        };
        let from_itself = origin == Origin::Call(Some(self.id));
        let answer = match *reason == ExitReason::Normal && !from_itself {
            true => Effect::Nothing,
            false => state.ask_to_end(reason),
        };
        drop(state);
        drop(broken);
        answer
    }

    /// The unit whose code makes a message of an exit signal, if this one traps exits.
    pub(crate) fn trapping_unit(&self) -> Option<Unit> {
        let state = self.lock();
        state.unit.clone().filter(|_| state.trap.is_some())
    }

    /// Records why the unit is about to end, unless it was asked before.
    pub(crate) fn note_asked(&self, reason: &ExitReason) {
        let _unit = self.lock().ask_to_end(reason);
    }
}

impl SignalState {
    /// Notes why the unit is to end, unless it was asked before. The caller kills it, outside the lock.
    fn ask_to_end(&mut self, reason: &ExitReason) -> Effect {
        let Some(unit) = self.unit.clone() else {
            return Effect::Nothing;
        };
        if self.asked.is_none() && !unit.is_cancelled() {
            self.asked = Some(reason.clone());
        }
        Effect::Kill(unit)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(crate) fn links(&self) -> Vec<ProcessId> {
        self.links.iter().map(|(id, _)| *id).collect()
    }

    pub(crate) fn add_monitor(&mut self, number: MonitorNumber, watcher: Box<dyn Watcher>) {
        self.monitors.insert(number, watcher);
    }

    /// Whether the unit may hold something: it does not end yet.
    pub(crate) fn can_hold(&self) -> bool {
        !self.releases
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// What bounds the mailbox of the unit.
    pub(crate) fn admission(&self) -> Option<Arc<Admission>> {
        self.rare.as_ref()?.admission.clone()
    }

    /// Sets that; the unit has not run.
    pub(crate) fn set_admission(&mut self, admission: Arc<Admission>) {
        self.rare().admission = Some(admission);
    }

    /// Notes what is to be taken back when the unit ends. False if it ends already.
    pub(crate) fn hold(&mut self, what: Holding, key: HeldKey, release: Release) -> bool {
        if !self.releases {
            self.rare().held.insert((what, key), release);
        }
        !self.releases
    }

    /// Everything that was noted is taken back already.
    pub(crate) fn hold_no_longer(&mut self, what: Holding, key: &HeldKey) {
        if let Some(rare) = &mut self.rare {
            rare.held.remove(&(what, key.clone()));
        }
    }

    /// How many names and other things the unit holds.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.held.len())
    }

    fn is_watched(&self) -> bool {
        self.was_watched || !self.links.is_empty() || !self.monitors.is_empty()
    }

    pub(crate) fn panics_survived(&self) -> Survived {
        self.rare
            .as_ref()
            .map_or(Survived::default(), |rare| rare.survived)
    }

    /// Adds a caller whose request was dropped in a panic, when the unit had `survived` those before. The caller is
    /// given back if it has survived that one, too.
    pub(crate) fn add_caller(
        &mut self,
        number: MonitorNumber,
        survived: Survived,
        caller: Box<dyn Watcher>,
    ) -> Option<Box<dyn Watcher>> {
        if self.panics_survived() > survived {
            return Some(caller);
        }
        self.rare().answers.insert(number, caller);
        None
    }

    #[must_use = "a watcher is dropped outside the lock"]
    pub(crate) fn remove_monitor(&mut self, number: MonitorNumber) -> Option<Box<dyn Watcher>> {
        let watcher = self.monitors.remove(&number);
        watcher.or_else(|| self.rare.as_mut()?.answers.remove(&number))
    }

    pub(crate) fn add_monitoring(&mut self, number: MonitorNumber, target: Arc<Signals>) {
        self.monitoring.insert(number, target);
    }

    pub(crate) fn remove_monitoring(&mut self, number: MonitorNumber) -> Option<Arc<Signals>> {
        self.monitoring.remove(&number)
    }

    #[must_use = "a trap is dropped outside the lock"]
    pub(crate) fn set_trap(&mut self, trap: Option<Arc<dyn Trap>>) -> Option<Arc<dyn Trap>> {
        mem::replace(&mut self.trap, trap)
    }
}
