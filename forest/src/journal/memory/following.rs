//! A follower of a journal in memory.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use super::super::contract::{Entry, Follower, ReadError};
use super::state::MemoryState;
use crate::level::Position;

/// How many records a follower may be behind.
const BEHIND: usize = 1024;

/// A follower reads the journal itself, so the records that it has not read yet are its buffer.
pub(super) struct Following {
    journal: Arc<Mutex<MemoryState>>,
    last: Position,
    /// Whether it still reads what was there before it began, which may be any amount.
    is_old: bool,
}

impl Following {
    pub(super) fn new(journal: Arc<Mutex<MemoryState>>, after: Position) -> Self {
        Self {
            journal,
            last: after,
            is_old: true,
        }
    }
}

impl Follower for Following {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Entry>, ReadError>> {
        let waker = cx.waker().clone();
        let mut inner = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = if self.is_old { BEHIND } else { BEHIND + 1 };
        let entries = inner.after(self.last, limit)?;
        if entries.len() > BEHIND {
            let resume_at = self.last;
            return Poll::Ready(Err(ReadError::Lagged { resume_at }));
        }
        match entries.last() {
            Some(last) => {
                self.is_old &= entries.len() == BEHIND;
                self.last = last.position;
                Poll::Ready(Ok(entries))
            }
            None => {
                self.is_old = false;
                inner.followers.retain(|known| !known.will_wake(&waker));
                inner.followers.push(waker);
                Poll::Pending
            }
        }
    }
}
