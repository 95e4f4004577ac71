//! Which boards are read live, and by how many readers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use weald::forest::Version;
use weald::sync::channel::{Receiver, Sender, bounded};

use crate::model::BoardName;

use super::broadcast::Broadcast;

/// The boards that somebody reads live. A clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<BoardsRead>);

#[derive(Default)]
struct BoardsRead {
    boards: Mutex<HashMap<BoardName, Weak<Followed>>>,
    readers: AtomicUsize,
}

/// A board that is followed. Each of its readers has it. The job that follows the board ends when the last reader goes.
pub(crate) struct Followed {
    pub(crate) name: BoardName,
    pub(crate) broadcast: Arc<Broadcast>,
    _read: Sender<()>,
}

/// A reader's place among those that are allowed, which is free again when it is dropped.
pub(crate) struct ReaderPermit(Live);

impl Live {
    /// What the readers of a board share. The first reader starts the job that follows the board from the version
    /// `newest` on, and gets a receiver for it, which ends when the last reader is gone.
    pub(crate) fn board(
        &self,
        name: &BoardName,
        newest: Version,
    ) -> (Arc<Followed>, Option<Receiver<()>>) {
        let boards = &self.0.boards;
        let mut boards = boards.lock().unwrap_or_else(PoisonError::into_inner);
        let known = boards.get(name).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| !known.broadcast.is_over()) {
            return (known, None);
        }
        boards.retain(|_, followed| followed.strong_count() > 0);
        let (sender, read) = bounded(1);
        let followed = Arc::new(Followed {
            name: name.clone(),
            broadcast: Arc::new(Broadcast::after(newest)),
            _read: sender,
        });
        boards.insert(name.clone(), Arc::downgrade(&followed));
        (followed, Some(read))
    }

    /// How many boards are read live, and by how many readers.
    pub(crate) fn count(&self) -> (usize, usize) {
        let boards = &self.0.boards;
        let boards = boards.lock().unwrap_or_else(PoisonError::into_inner);
        let followed = boards.values().filter(|it| it.strong_count() > 0);
        (followed.count(), self.0.readers.load(Ordering::Relaxed))
    }

    /// A place for a further reader; `None` if there are `most` already.
    pub(crate) fn permit(&self, most: usize) -> Option<ReaderPermit> {
        // Relaxed: the number guards nothing else.
        let before = self.0.readers.fetch_add(1, Ordering::Relaxed);
        let permit = ReaderPermit(self.clone());
        (before < most).then_some(permit)
    }
}

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        self.0.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
