//! The service of a connection that ends: it is left for new connections, or dropped, and its destructor may block.

use std::sync::{Arc, Weak};

use crate::{activity::Activity, originals::Originals, registry::ConnectionPermit};

/// The service of a connection that ends. Its drop leaves it for new connections, or drops it if they have others or the
/// server has ended.
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
        self.activity.begin_ending();
        let _dropped = weald_kernel::catch_panic(|| match (service, originals) {
            (Some(service), Some(originals)) => originals.take_back(service),
            (service, _) => drop(service),
        });
        self.activity.end_ending();
    }
}

/// What an idle connection has left at its end. It is dropped after the socket, so that a destructor that blocks keeps no
/// new client waiting.
pub(crate) struct Remains<S: Clone + Send + 'static> {
    // In the order in which they are dropped.
    _permit: Option<ConnectionPermit>,
    _leaving: Option<LeavingService<S>>,
}

impl<S: Clone + Send + 'static> Remains<S> {
    pub(crate) fn new(permit: ConnectionPermit, leaving: LeavingService<S>) -> Remains<S> {
        Remains {
            _permit: Some(permit),
            _leaving: Some(leaving),
        }
    }
}

impl<S: Clone + Send + 'static> Default for Remains<S> {
    fn default() -> Remains<S> {
        Remains {
            _permit: None,
            _leaving: None,
        }
    }
}
