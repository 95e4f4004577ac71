//! A callback thread of a receptor: its handler, and the events that it has not handled yet.
//!
//! Invariants:
//! - At most one callback at a time handles the thread's events. A push that finds `is_running` false starts it,
//!   and it takes one event each time it runs.
//! - The lock is not held while user code runs.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
};

use weald_kernel::callback::{Next, Owner, When, rounds_as};

use super::{Itself, Run, isolated::Isolated};

pub(super) type Handler<M> = Box<dyn FnMut(M) + Send>;

/// What a thread does next.
pub(super) enum ThreadEvent<M> {
    Run(Run<M>),
    /// A call of the handler; without a handler the message is dropped.
    Message(M),
    Handler(Option<Handler<M>>),
}

/// A callback thread; see the head of this file.
pub(super) struct Thread<M> {
    state: Mutex<State<M>>,
    origin: ThreadOrigin<M>,
}

/// Where the user's code started a thread, for reports, and what starts a callback under the name of that code.
pub(super) struct ThreadOrigin<M> {
    site: &'static Location<'static>,
    start: fn(&'static Location<'static>, Itself<M>, Owner),
}

impl<M: Send + 'static> ThreadOrigin<M> {
    /// A thread whose closure has the type `R`, and was given at `site`.
    pub(super) fn of<R: 'static>(site: &'static Location<'static>) -> ThreadOrigin<M> {
        let start = |site, itself, owner| {
            rounds_as::<R>(site, owner, When::Ready, move || round(&itself)).detach();
        };
        ThreadOrigin { site, start }
    }
}

struct State<M> {
    events: VecDeque<Isolated<ThreadEvent<M>>>,
    handler: Option<Isolated<Handler<M>>>,
    is_running: bool,
    has_crashed: bool,
}

impl<M> Thread<M> {
    pub(super) fn new(origin: ThreadOrigin<M>) -> Thread<M> {
        let state = State {
            events: VecDeque::new(),
            handler: None,
            is_running: false,
            has_crashed: false,
        };
        Thread {
            state: Mutex::new(state),
            origin,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.lock().has_crashed
    }

    /// Whether the thread has ended: it has crashed, or it is idle and has no handler.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.has_crashed || !state.is_running && state.handler.is_none()
    }

    pub(super) fn set_handler(&self, handler: Option<Handler<M>>) {
        let handler = handler.map(Isolated::new);
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.handler, handler);
        drop(state);
        drop(before);
    }

    /// Puts a handler back after its call, unless it was replaced meanwhile.
    fn restore_handler(&self, handler: Isolated<Handler<M>>) {
        let mut state = self.lock();
        let replaced = match state.handler {
            None => state.handler.replace(handler),
            Some(_) => Some(handler),
        };
        drop(state);
        drop(replaced);
    }

    /// Ends the thread, and drops its handler and the events that it has not handled yet.
    fn crash(&self) {
        let mut state = self.lock();
        state.has_crashed = true;
        state.is_running = false;
        let events = std::mem::take(&mut state.events);
        let handler = state.handler.take();
        drop(state);
        drop((events, handler));
    }
}

/// Queues an event for a thread, and starts the thread's callback unless it already runs.
pub(super) fn push<M: Send + 'static>(
    itself: Itself<M>,
    event: Isolated<ThreadEvent<M>>,
    owner: Owner,
) {
    let mut state = itself.thread.lock();
    state.events.push_back(event);
    if std::mem::replace(&mut state.is_running, true) {
        return;
    }
    drop(state);
    let ThreadOrigin { site, start } = itself.thread.origin;
    start(site, itself, owner);
}

/// Handles one event.
fn round<M: Send + 'static>(itself: &Itself<M>) -> Next {
    let mut state = itself.thread.lock();
    let Some(event) = state.events.pop_front() else {
        state.is_running = false;
        let is_idle = state.handler.is_none();
        drop(state);
        if is_idle {
            itself.receptor.report_idle(itself.id);
        }
        return Next::Ended;
    };
    drop(state);
    match catch_unwind(AssertUnwindSafe(|| handle(itself, event))) {
        Ok(()) => Next::Ready,
        Err(payload) => {
            itself.thread.crash();
            itself.receptor.report_idle(itself.id);
            resume_unwind(payload)
        }
    }
}

/// Runs the user code of an event, which may unwind.
fn handle<M: Send + 'static>(itself: &Itself<M>, event: Isolated<ThreadEvent<M>>) {
    match event.into_inner() {
        ThreadEvent::Run(run) => run(itself),
        ThreadEvent::Handler(handler) => itself.thread.set_handler(handler),
        ThreadEvent::Message(message) => {
            let handler = itself.thread.lock().handler.take();
            if let Some(mut handler) = handler {
                handler.get_mut()(message);
                itself.thread.restore_handler(handler);
            }
        }
    }
}
