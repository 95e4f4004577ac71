//! A connection's instance of the service, which is cloned for each request.
//!
//! A clone is user code, and may block. If the route of a request is suspect, the clone is made in quarantine, by the
//! request's future. The future has the instance meanwhile ([`TakenService`]), and its drop brings it back. Hyper has
//! one request at a time, so nobody else looks for it.
//!
//! Most requests find the instance here, at the price of a look at two words of the connection's own.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, PoisonError},
};

/// Where a taken instance comes back to.
type ReturnSlot<S> = Arc<Mutex<Option<S>>>;

/// See the head of this file.
pub(crate) struct ServiceSlot<S>(RefCell<Content<S>>);

enum Content<S> {
    Here(S),
    /// A request has it, or had it.
    Taken(ReturnSlot<S>),
}

/// The instance while a request has it.
pub(crate) struct TakenService<S> {
    service: Option<S>,
    returned: ReturnSlot<S>,
}

fn come_back<S>(returned: &ReturnSlot<S>) -> Option<S> {
    returned
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}

impl<S> ServiceSlot<S> {
    pub(crate) fn new(service: S) -> ServiceSlot<S> {
        ServiceSlot(RefCell::new(Content::Here(service)))
    }

    /// Moves the instance here, if it was taken. Panics if a request still has it.
    #[inline]
    fn settle(&self) {
        let mut content = self.0.borrow_mut();
        if let Content::Taken(returned) = &*content {
            let service = come_back(returned).expect("hyper has one request at a time");
            *content = Content::Here(service);
        }
    }

    /// Takes the instance, for a request whose clone is made later.
    pub(crate) fn take(&self) -> TakenService<S> {
        self.settle();
        let returned: ReturnSlot<S> = Arc::default();
        let Content::Here(service) = self.0.replace(Content::Taken(returned.clone())) else {
            unreachable!("it has just settled");
        };
        TakenService {
            service: Some(service),
            returned,
        }
    }

    /// The instance. None if a request still has it.
    pub(crate) fn into_inner(self) -> Option<S> {
        match self.0.into_inner() {
            Content::Here(service) => Some(service),
            Content::Taken(returned) => come_back(&returned),
        }
    }
}

impl<S: Clone> ServiceSlot<S> {
    /// A clone for a request.
    #[inline]
    pub(crate) fn make_clone(&self) -> S {
        self.settle();
        match &*self.0.borrow() {
            Content::Here(service) => service.clone(),
            Content::Taken(_) => unreachable!("it has just settled"),
        }
    }
}

impl<S: Clone> TakenService<S> {
    /// A clone for the request.
    pub(crate) fn make_clone(&self) -> S {
        let service = self.service.as_ref();
        service
            .expect("it is given back when this is dropped")
            .clone()
    }
}

impl<S> Drop for TakenService<S> {
    fn drop(&mut self) {
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        *returned = self.service.take();
    }
}

#[cfg(test)]
mod tests {
    use super::ServiceSlot;

    #[test]
    fn a_taken_instance_comes_back() {
        let slot = ServiceSlot::new(7);
        for _ in 0..2 {
            let taken = slot.take();
            assert_eq!(taken.make_clone(), 7);
            drop(taken);
        }
        assert_eq!(slot.make_clone(), 7);
        let taken = slot.take();
        assert_eq!(ServiceSlot::new(1).into_inner(), Some(1));
        drop(taken);
        assert_eq!(slot.into_inner(), Some(7));
        let slot = ServiceSlot::new(7);
        let _taken = slot.take();
        assert_eq!(slot.into_inner(), None);
    }
}
