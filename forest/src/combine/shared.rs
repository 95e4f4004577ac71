//! What all handles of a forest share: its state, and the way to the combiner.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::combiner::Combiner;
use super::publication_list::PublicationList;
use super::request::{Pending, Request};
use crate::journal::Journal;
use crate::state::forest::ForestState;

pub(crate) struct Shared {
    pub(crate) forest: ForestState,
    pub(crate) list: PublicationList,
}

impl Shared {
    pub(crate) fn new(
        forest: ForestState,
        keep: usize,
        journal: Option<Box<dyn Journal>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|shared| {
            let alarm = Waker::from(Arc::new(Alarm(Weak::clone(shared))));
            Self {
                forest,
                list: PublicationList::new(Combiner::new(keep, journal, alarm)),
            }
        })
    }

    /// Submits a request whose answer nothing waits for.
    pub(crate) fn submit_detached(&self, request: Request) {
        if let Some(guard) = self.list.queue(Pending::new(request, None)) {
            guard.serve_queue(&self.forest);
        }
    }
}

/// Makes the combiner check the write leases of a forest when a clock wakes it.
struct Alarm(Weak<Shared>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.submit_detached(Request::CheckLeases);
        }
    }
}
