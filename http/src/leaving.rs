//! The service of a connection that ends: it is left for new connections, or dropped, and its destructor may block.

use std::sync::{Arc, Weak};

use crate::{activity::Activity, originals::Originals, registry::ConnectionPermit};

/// The service of a connection that has begun to end. Its drop leaves it for new connections, or drops it if they have
/// others or the server has ended.
pub(crate) struct LeavingService<S: Clone + Send + 'static> {
    service: Option<S>,
    activity: Arc<Activity>,
    originals: Weak<Originals<S>>,
}

impl<S: Clone + Send + 'static> LeavingService<S> {
    pub(crate) fn new(
        service: Option<S>,
        activity: &Arc<Activity>,
        originals: &Weak<Originals<S>>,
    ) -> LeavingService<S> {
        LeavingService {
            service,
            activity: activity.clone(),
            originals: originals.clone(),
        }
    }
}

impl<S: Clone + Send + 'static> Drop for LeavingService<S> {
    fn drop(&mut self) {
        let (service, originals) = (self.service.take(), self.originals.upgrade());
        let _dropped = weald_kernel::catch_panic(|| match (service, originals) {
            (Some(service), Some(originals)) => originals.take_back(service),
            (service, _) => drop(service),
        });
        self.activity.end_ending();
    }
}

/// What an idle connection has left at its end. It is dropped after the socket, and gives the permit back before it
/// drops the service, so that a destructor that blocks keeps no new client waiting.
pub(crate) struct Remains<S: Clone + Send + 'static>(Option<(ConnectionPermit, LeavingService<S>)>);

impl<S: Clone + Send + 'static> Remains<S> {
    pub(crate) fn new(permit: ConnectionPermit, leaving: LeavingService<S>) -> Remains<S> {
        Remains(Some((permit, leaving)))
    }
}

impl<S: Clone + Send + 'static> Default for Remains<S> {
    fn default() -> Remains<S> {
        Remains(None)
    }
}

impl<S: Clone + Send + 'static> Drop for Remains<S> {
    fn drop(&mut self) {
        if let Some((permit, leaving)) = self.0.take() {
            permit.leave(&leaving.activity);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{Mutex, Weak},
        task::{Context, Wake, Waker},
    };

    use super::*;
    use crate::registry::{Entry, Registry};

    type Connection = (Arc<Activity>, Entry, ConnectionPermit);

    fn enter(registry: &Arc<Registry>) -> Connection {
        let activity = Activity::new(None, "a service", Arc::default());
        let (entry, permit) = registry.enter(&activity);
        (activity, entry, permit)
    }

    /// A server that may have two connections, and whose clients wait. It looks for room when it is woken, before the
    /// one that woke it goes on.
    struct AtItsLimit {
        registry: Arc<Registry>,
        taken: Mutex<Vec<Connection>>,
    }

    impl AtItsLimit {
        fn look(self: Arc<AtItsLimit>) {
            let waker = Waker::from(self.clone());
            let cx = &mut Context::from_waker(&waker);
            while pin!(self.registry.room_below(2)).poll(cx).is_ready() {
                let next = enter(&self.registry);
                next.0.received();
                self.taken.lock().unwrap().push(next);
            }
        }
    }

    impl Wake for AtItsLimit {
        fn wake(self: Arc<AtItsLimit>) {
            self.look();
        }
    }

    /// Its destructor calls the function.
    #[derive(Clone)]
    struct AtEnd(Arc<dyn Fn() + Send + Sync>);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0();
        }
    }

    /// The end of an idle connection, with what its service's destructor finds.
    fn end<R: Send + 'static>(
        connection: &Arc<Activity>,
        permit: ConnectionPermit,
        found: impl Fn() -> R + Send + Sync + 'static,
    ) -> R {
        let result = Arc::new(Mutex::new(None));
        let destructor = {
            let result = result.clone();
            move || *result.lock().unwrap() = Some(found())
        };
        let service = Some(AtEnd(Arc::new(destructor)));
        let leaving = LeavingService::new(service, connection, &Weak::new());
        drop(Remains::new(permit, leaving));
        result.lock().unwrap().take().expect("it was dropped")
    }

    #[test]
    fn the_next_one_is_asked_to_make_room_before_the_destructor_of_the_last_one_begins() {
        let registry = Arc::new(Registry::default());
        let [(first, entry, permit), second] = [(); 2].map(|()| enter(&registry));
        let server = Arc::new(AtItsLimit {
            registry: registry.clone(),
            taken: Mutex::default(),
        });
        server.clone().look();
        assert!(first.is_draining() && !second.0.is_draining());
        let next = second.0.clone();
        assert!(end(&first, permit, move || next.is_draining()));
        assert_eq!(server.taken.lock().unwrap().len(), 1);
        drop((entry, second));
    }

    /// It keeps no new client waiting.
    #[test]
    fn the_report_of_a_full_server_does_not_count_a_connection_whose_destructor_runs() {
        let registry = Arc::new(Registry::default());
        let [(first, entry, permit), second] = [(); 2].map(|()| enter(&registry));
        second.0.received();
        drop(second.1);
        let text = end(&first, permit, move || registry.tell_full(1));
        assert!(text.contains(": 1 were upgraded;"), "{text}");
        drop(entry);
    }
}
