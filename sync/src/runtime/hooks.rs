//! What a runtime provides to the tools: how its units wait with their stacks, its clock, and where it notes
//! what a unit waits for. Without a runtime a thread parks, and one timer thread serves all deadlines.

#![allow(unsafe_code)]

use std::{
    any::Any,
    future::Future,
    mem::ManuallyDrop,
    panic::Location,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll, RawWakerVTable, Waker},
    time::Instant,
};

use super::{alarm, foreign_alarms, parker, reason::Reason, unit};
pub use super::{foreign_alarms::HeldWaker, parker::Parker};
use crate::queue::wake;

/// A future that is ready at its deadline.
pub type Alarm = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// The hooks. A program has one set of them: that of the first runtime that installs any. They must serve
/// every thread, including threads that the runtime does not know.
pub trait Hooks: Sync {
    /// Calls `poll` until it is ready. Between two calls the calling thread does something else, or nothing,
    /// until the waker of the last call was woken.
    fn wait(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>);

    /// The functions of the wakers of units. With some, a unit polls a first time without a call of
    /// [`begin_first_poll`](Hooks::begin_first_poll) while it has no [obstacle](unit::Obstacle).
    fn wakers(&self) -> Option<Wakers> {
        None
    }

    /// The calling unit may poll once before it calls [`wait`](Hooks::wait): most waits are over at that poll. Returns
    /// the waker for it. After the poll the unit calls [`end_first_poll`](Hooks::end_first_poll) or
    /// [`suspend`](Hooks::suspend). None: it calls `wait`.
    fn begin_first_poll(&self) -> Option<FirstPoll> {
        None
    }

    /// The last poll that [`begin_first_poll`](Hooks::begin_first_poll) or [`suspend`](Hooks::suspend) allowed has
    /// ended the wait, or has panicked, or `suspend` has. `notes` are those of that call.
    fn end_first_poll(&self, notes: u8) {
        let _unused = notes;
    }

    /// The poll that [`begin_first_poll`](Hooks::begin_first_poll) or the last call of this allowed has not ended the
    /// wait, which is at the line `site`. Suspends the unit until the waker of that poll was woken, and allows another
    /// poll with the same waker. `notes` are those of the former call, and are replaced. False: nothing was suspended,
    /// and the unit calls [`wait_on`](Hooks::wait_on).
    fn suspend(&self, notes: &mut u8, site: &'static Location<'static>) -> bool {
        let _unused = notes;
        self.note_site(site);
        false
    }

    /// As [`wait`](Hooks::wait), after polls that have not ended the wait. `notes` are those of the last call of
    /// [`suspend`](Hooks::suspend).
    fn wait_on(&self, notes: u8, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let _unused = notes;
        self.wait(poll);
    }

    /// The present, by the clock of the calling unit.
    fn now(&self) -> Instant;

    /// A future that is ready at `deadline`, never earlier.
    fn alarm(&self, deadline: Instant) -> Alarm;

    /// Notes what the calling unit waits for. The wait was polled with `waker`: if that is not the unit's own, the unit
    /// may wait for other things, too.
    fn note(&self, reason: Reason, waker: &Waker);

    /// Notes the line at which the calling unit waits, unless the noted reason has one.
    fn note_site(&self, site: &'static Location<'static>) {
        let _unused = site;
    }

    /// The unit's budget is used up: arranges that the unit, which polls with `waker`, is polled again after
    /// others had their turn.
    fn give_way(&self, waker: &Waker);

    /// A waker panicked when a tool called it. Called while the tool is in use: it must not panic, and should not
    /// block.
    fn waker_panicked(&self, payload: Box<dyn Any + Send>) {
        // Dropping it may panic as well.
        std::mem::forget(payload);
    }

    /// A waker of another executor holds its thread; a time limit outside of the runtime has fired it. Called once for
    /// each such call, on a thread that must not be blocked.
    fn waker_blocks(&self, waker: HeldWaker) {
        let _unused = waker;
    }

    /// Wakes those of the wakers that `next` returns whose wake runs no user code, and cannot panic, and leaves the
    /// others in `foreign`. Where one operation wakes several wakers, those are woken last, because they may block.
    fn wake_own(&self, next: &mut dyn FnMut() -> Option<Waker>, foreign: &mut Vec<Waker>) {
        foreign.extend(std::iter::from_fn(next));
    }
}

/// The functions of the wakers of a runtime's units.
#[derive(Clone, Copy, Debug)]
pub struct Wakers(&'static RawWakerVTable);

impl Wakers {
    /// # Safety
    /// Every unit of the program that runs without an [obstacle](unit::Obstacle), whichever runtime's it is, has as its
    /// [number](unit::Unit::id) the exposed address of an `AtomicUsize` of its own, in which a cancel sets
    /// [`CANCELLED`](unit::CANCELLED), and which is the data of its waker, whose functions are these. The suspension of
    /// its stack in a poll that noted [`WAITS`](unit::notes::WAITS) ends on the thread on which it began.
    pub const unsafe fn new(functions: &'static RawWakerVTable) -> Wakers {
        Wakers(functions)
    }

    pub(crate) fn functions(self) -> &'static RawWakerVTable {
        self.0
    }
}

/// The right to poll once before the stack is suspended; see [`Hooks::begin_first_poll`].
#[derive(Debug)]
pub struct FirstPoll {
    /// The waker to poll with. It is borrowed for the poll, so it is not dropped.
    pub waker: ManuallyDrop<Waker>,
    /// What the runtime wants to know again after the poll.
    pub notes: u8,
}

/// Polls until `poll` is ready, and parks the calling thread between two polls: the wait of a thread that
/// belongs to no runtime.
pub fn park(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
    parker::wait(poll);
}

/// A deadline by the system's clock, without a runtime: one thread of the program serves all of them.
pub fn thread_alarm(deadline: Instant) -> Alarm {
    Box::pin(alarm::ThreadAlarm::new(deadline))
}

static HOOKS: OnceLock<&'static dyn Hooks> = OnceLock::new();

/// Installs a runtime's hooks, unless some are installed.
pub fn install(hooks: &'static dyn Hooks) {
    // A second runtime's hooks are not needed: the first ones serve every thread.
    let _first = HOOKS.set(hooks);
    if let Some(wakers) = self::hooks().wakers() {
        unit::tell_of_wakers(wakers.functions());
    }
    wake::tell_of_wakers(
        |payload| self::hooks().waker_panicked(payload),
        |next, foreign| self::hooks().wake_own(next, foreign),
    );
    foreign_alarms::tell_of_held(|waker| self::hooks().waker_blocks(waker));
}

/// Arranges that the unit that polls with `waker`, and has used up its budget, is polled again after others had their
/// turn. For futures that count operations themselves, with [`Unit::spend`](super::unit::Unit::spend).
pub fn give_way(waker: &Waker) {
    hooks().give_way(waker);
}

#[inline]
pub(crate) fn hooks() -> &'static dyn Hooks {
    *HOOKS.get().unwrap_or(&(&Threads as &dyn Hooks))
}

/// The hooks of a program without a runtime.
struct Threads;

impl Hooks for Threads {
    fn wait(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        parker::wait(poll);
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn alarm(&self, deadline: Instant) -> Alarm {
        thread_alarm(deadline)
    }

    fn note(&self, _reason: Reason, _waker: &Waker) {}

    fn give_way(&self, waker: &Waker) {
        waker.wake_by_ref();
    }
}
