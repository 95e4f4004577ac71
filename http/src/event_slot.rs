//! Where a connection finds the body of the stream of events that hyper serves ([`event_body`](crate::event_body)). The
//! state of a connection has it, which does not know the body's type.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

type Kept = Arc<dyn Any + Send + Sync>;

/// A place for a body that hyper and the connection share.
#[derive(Default)]
pub(crate) struct EventSlot(Mutex<Option<Kept>>);

impl EventSlot {
    pub(crate) fn put(&self, body: Option<Kept>) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *slot, body);
        drop(slot);
        drop(former);
    }

    pub(crate) fn get(&self) -> Option<Kept> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.clone()
    }
}

impl fmt::Debug for EventSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSlot").finish_non_exhaustive()
    }
}
