//! What all handles of a forest share: its state, and the way to the combiner.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::combiner::Combiner;
use super::pending::Pending;
use super::publication_list::PublicationList;
use super::request::{Request, SubmitUnawaited};
use super::start::Start;
use crate::journal::Level;
use crate::state::forest::ForestState;

pub(crate) struct Shared {
    pub(crate) forest: ForestState,
    pub(crate) list: PublicationList,
}

impl Shared {
    pub(crate) fn new(forest: ForestState, keep: usize, start: Start) -> Arc<Self> {
        forest.stats.published(start.number);
        let can_lose = forest.most() > Level::Accepted;
        forest
            .stats
            .settle(if can_lose { start.number } else { u64::MAX });
        let has_journal = forest.journal.is_some();
        let shared = Arc::new_cyclic(|shared| {
            let alarm = |request| Waker::from(Arc::new(Alarm(Weak::clone(shared), request)));
            let wakers = [
                alarm(|| Request::CheckLeases),
                alarm(|| Request::CheckJournal),
                alarm(|| Request::CheckFailure),
            ];
            let submitter: Weak<dyn SubmitUnawaited> = Weak::<Self>::clone(shared);
            let combiner = Combiner::new((keep, start), wakers, submitter);
            Self {
                forest,
                list: PublicationList::new(combiner),
            }
        });
        if has_journal {
            shared.submit_unawaited(Request::CheckFailure);
        }
        shared
    }
}

impl SubmitUnawaited for Shared {
    fn submit_unawaited(&self, request: Request) {
        if let Some(guard) = self.list.queue(Pending::new(request, None)) {
            guard.serve_queue(&self.forest);
        }
    }
}

/// Makes the combiner check its write leases when the clock wakes this, and its journal when the journal does.
struct Alarm(Weak<Shared>, fn() -> Request);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            let request = (self.1)();
            let reentrancy = &shared.forest.reentrancy;
            if matches!(request, Request::CheckJournal) && reentrancy.is_in_journal() {
                // To poll it again at once would keep this thread from the work that the answer
                // waits for.
                reentrancy.set_restless();
            } else {
                shared.submit_unawaited(request);
            }
        }
    }
}
