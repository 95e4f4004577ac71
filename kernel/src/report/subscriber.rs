//! Which `tracing` subscriber gets a report.
//!
//! The reporting thread has no subscriber of its own besides the program's global one, so a report carries the
//! subscribers that it may be meant for. One is current where the report is made. If a thread of the runtime makes the
//! report, the other was current where the runtime was started. Only the reporting thread calls them. It also drops
//! them, because a subscriber's destructor is user code.

use std::{cell::RefCell, sync::Arc};

use tracing::{Dispatch, dispatcher, subscriber::NoSubscriber};

use crate::report::releases;

/// The subscriber that was current where a runtime was started.
pub(crate) struct RuntimeSubscriber(Option<Dispatch>);

thread_local! {
    /// The subscriber of the runtime whose thread this is.
    static OF_THREAD: RefCell<Option<Arc<RuntimeSubscriber>>> = const { RefCell::new(None) };
}

impl RuntimeSubscriber {
    /// The calling thread's current one.
    pub(crate) fn current() -> Arc<RuntimeSubscriber> {
        Arc::new(RuntimeSubscriber(Some(dispatcher::get_default(
            Dispatch::clone,
        ))))
    }

    /// From now on the calling thread makes reports for the runtime, until the guard is dropped.
    pub(crate) fn enter(self: &Arc<RuntimeSubscriber>) -> Entered {
        Entered(OF_THREAD.replace(Some(self.clone())))
    }
}

impl Drop for RuntimeSubscriber {
    fn drop(&mut self) {
        if let Some(subscriber) = self.0.take() {
            releases::push(Box::new(subscriber));
        }
    }
}

/// Restores what [`RuntimeSubscriber::enter`] replaced.
pub(crate) struct Entered(Option<Arc<RuntimeSubscriber>>);

impl Drop for Entered {
    fn drop(&mut self) {
        let ended = OF_THREAD.replace(self.0.take());
        drop(ended);
    }
}

/// Whom a report may be meant for.
#[derive(Clone, Debug)]
pub(super) struct Audience {
    of_runtime: Option<Dispatch>,
    of_thread: Dispatch,
}

impl Audience {
    /// Of a report that the calling thread makes.
    pub(super) fn here() -> Audience {
        let of_runtime = OF_THREAD.try_with(|entered| {
            let entered = entered.borrow();
            entered.as_ref().and_then(|runtime| runtime.0.clone())
        });
        Audience {
            of_runtime: of_runtime.ok().flatten(),
            of_thread: dispatcher::get_default(Dispatch::clone),
        }
    }

    /// The subscriber that gets the report. User code, and so for the reporting thread only.
    pub(super) fn subscriber(&self) -> Option<Dispatch> {
        let brought = self.of_runtime.iter().chain([&self.of_thread]);
        let is_one = |subscriber: &Dispatch| !subscriber.is::<NoSubscriber>();
        brought
            .cloned()
            .chain([dispatcher::get_default(Dispatch::clone)])
            .find(is_one)
    }
}
