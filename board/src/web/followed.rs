//! Which boards somebody reads live, and how many do.

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

/// A board that is followed. Each of its readers has it, and when the last one lets it go, whoever follows it ends.
pub(crate) struct Followed {
    pub(crate) name: BoardName,
    pub(crate) broadcast: Arc<Broadcast>,
    _read: Sender<()>,
}

/// A reader's place among those that are allowed, which is free again when it is dropped.
pub(crate) struct Seat(Live);

impl Live {
    /// What the readers of a board share. The first one, who is also told when the last one is gone, has it followed from
    /// the version `newest` on.
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

    /// A place for a further reader; `None` if there are `most` already.
    pub(crate) fn seat(&self, most: usize) -> Option<Seat> {
        // Relaxed: the number guards nothing else.
        let before = self.0.readers.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(self.clone());
        (before < most).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
