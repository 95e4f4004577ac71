//! A callback thread of a receptor: its handler, and the events that it has not had yet.
//!
//! Invariants:
//! - At most one callback at a time has the thread's events: it is started by who finds `is_running` false,
//!   and takes one event each time it runs.
//! - The lock is not held while user code runs.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
};

use weald_kernel::callback::{Next, Owner, When, rounds};

use super::{Itself, Run, apart::Apart};

pub(super) type Handler<M> = Box<dyn FnMut(M) + Send>;

/// What a thread has to do.
pub(super) enum Event<M> {
    Run(Run<M>),
    /// Calls the handler; without one it is dropped.
    Message(M),
    Handler(Option<Handler<M>>),
}

/// A thread.
pub(super) struct Thread<M>(Mutex<State<M>>);

struct State<M> {
    events: VecDeque<Apart<Event<M>>>,
    handler: Option<Apart<Handler<M>>>,
    is_running: bool,
    has_crashed: bool,
}

impl<M> Thread<M> {
    pub(super) fn new() -> Thread<M> {
        Thread(Mutex::new(State {
            events: VecDeque::new(),
            handler: None,
            is_running: false,
            has_crashed: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.lock().has_crashed
    }

    /// Whether nothing can happen in it any more.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.has_crashed || !state.is_running && state.handler.is_none()
    }

    pub(super) fn set_handler(&self, handler: Option<Handler<M>>) {
        let handler = handler.map(Apart::new);
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.handler, handler);
        drop(state);
        drop(before);
    }

    /// A handler that was called comes back, unless it was replaced meanwhile.
    fn restore_handler(&self, handler: Apart<Handler<M>>) {
        let mut state = self.lock();
        let replaced = match state.handler {
            None => state.handler.replace(handler),
            Some(_) => Some(handler),
        };
        drop(state);
        drop(replaced);
    }

    /// The thread is gone, with what it has not had yet.
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

/// Gives a thread an event, and starts its callback if it does not run.
pub(super) fn push<M: Send + 'static>(itself: Itself<M>, event: Apart<Event<M>>, owner: Owner) {
    let mut state = itself.thread.lock();
    state.events.push_back(event);
    if std::mem::replace(&mut state.is_running, true) {
        return;
    }
    drop(state);
    rounds(owner, When::Ready, move || round(&itself)).detach();
}

/// One event.
fn round<M: Send + 'static>(itself: &Itself<M>) -> Next {
    let mut state = itself.thread.lock();
    let Some(event) = state.events.pop_front() else {
        state.is_running = false;
        let is_idle = state.handler.is_none();
        drop(state);
        if is_idle {
            itself.receptor.tell_idle(itself.id);
        }
        return Next::Ended;
    };
    drop(state);
    match catch_unwind(AssertUnwindSafe(|| have(itself, event))) {
        Ok(()) => Next::Ready,
        Err(payload) => {
            itself.thread.crash();
            itself.receptor.tell_idle(itself.id);
            resume_unwind(payload)
        }
    }
}

/// The thread has an event: user code, which may unwind.
fn have<M: Send + 'static>(itself: &Itself<M>, event: Apart<Event<M>>) {
    match event.into_inner() {
        Event::Run(run) => run(itself),
        Event::Handler(handler) => itself.thread.set_handler(handler),
        Event::Message(message) => {
            let handler = itself.thread.lock().handler.take();
            if let Some(mut handler) = handler {
                handler.get_mut()(message);
                itself.thread.restore_handler(handler);
            }
        }
    }
}
