//! Which `tracing` subscriber gets a report.
//!
//! The reporting thread has no subscriber of its own besides the program's global one, so a report carries the
//! subscribers that it may be meant for. One is current where the report is made. If a thread of the runtime makes the
//! report, the other was current where the runtime was started. Only the reporting thread calls them. It also drops
//! them, because a subscriber's destructor is user code.
//!
//! A runtime that was started under the subscriber of a scope has an [`AudienceId`] of its own, so that its reports
//! have limits of their own: otherwise a flood in one runtime would keep another's subscriber from hearing of anything
//! at all. The other runtimes share their limits, however many there are, because one reader gets all their reports.
//!
//! So runtimes that were started in one scope have separate limits too, although one reader gets their reports: nothing
//! tells whether two `Dispatch`es are of one subscriber. They cannot be compared. `Dispatch::downcast_ref` needs the
//! subscriber's type, and calls the subscriber. The address in the text for debugging is that of the `Dispatch`, which
//! is another one for each clone.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{Dispatch, dispatcher, subscriber::NoSubscriber};

use crate::report::releases;

/// The subscriber that was current where a runtime was started.
pub(crate) struct RuntimeSubscriber {
    /// None only while it is dropped.
    subscriber: Option<Dispatch>,
    id: AudienceId,
}

/// Tells the audiences of reports apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AudienceId(u64);

impl AudienceId {
    /// The program's global subscriber, or stderr.
    pub(super) const PROGRAM: AudienceId = AudienceId(0);

    /// Of a report that the calling thread makes.
    pub(super) fn here() -> AudienceId {
        let id = OF_THREAD.try_with(|entered| entered.borrow().as_ref().map(|runtime| runtime.id));
        id.ok().flatten().unwrap_or(AudienceId::PROGRAM)
    }

    fn of(subscriber: &Dispatch) -> AudienceId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        match is_of_a_scope(subscriber) {
            true => AudienceId(LAST.fetch_add(1, Ordering::Relaxed) + 1),
            false => AudienceId::PROGRAM,
        }
    }
}

/// Whether it is neither the program's global subscriber nor none. `tracing` tells that in the text for debugging only,
/// which calls no code of the subscriber's.
fn is_of_a_scope(subscriber: &Dispatch) -> bool {
    format!("{subscriber:?}").starts_with("Dispatch::Scoped")
}

thread_local! {
    /// The subscriber of the runtime whose thread this is.
    static OF_THREAD: RefCell<Option<Arc<RuntimeSubscriber>>> = const { RefCell::new(None) };
}

impl RuntimeSubscriber {
    /// The calling thread's current one.
    pub(crate) fn current() -> Arc<RuntimeSubscriber> {
        let subscriber = dispatcher::get_default(Dispatch::clone);
        Arc::new(RuntimeSubscriber {
            id: AudienceId::of(&subscriber),
            subscriber: Some(subscriber),
        })
    }

    /// From now on the calling thread makes reports for the runtime, until the guard is dropped.
    pub(crate) fn enter(self: &Arc<RuntimeSubscriber>) -> Entered {
        Entered(OF_THREAD.replace(Some(self.clone())))
    }
}

impl Drop for RuntimeSubscriber {
    fn drop(&mut self) {
        if let Some(subscriber) = self.subscriber.take() {
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
            entered
                .as_ref()
                .and_then(|runtime| runtime.subscriber.clone())
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn runtimes_that_were_started_in_scopes_have_limits_of_their_own_also_those_of_one_scope() {
        let id = || RuntimeSubscriber::current().id;
        assert_eq!((id(), id()), (AudienceId::PROGRAM, AudienceId::PROGRAM));
        let subscriber = Dispatch::new(NoSubscriber::new());
        let in_scope = |subscriber| dispatcher::with_default(subscriber, || [id(), id()]);
        let other = Dispatch::new(NoSubscriber::new());
        let ids = [in_scope(&subscriber), in_scope(&other)].concat();
        assert!(!ids.contains(&AudienceId::PROGRAM));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }

    #[test]
    fn the_address_in_the_text_of_a_dispatch_is_not_that_of_its_subscriber() {
        let subscriber = Dispatch::new(NoSubscriber::new());
        let clones = [subscriber.clone(), subscriber];
        assert_ne!(format!("{:?}", clones[0]), format!("{:?}", clones[1]));
    }
}
