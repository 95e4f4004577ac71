//! Follows the journal: reads records from the files as they are written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use weald_forest::journal::{Durability, Entry, Follower, Level, Position, ReadError, When};

use crate::core::Core;
use crate::reader::RecordReader;

/// How many records are read at once.
const MANY: usize = 256;

/// Once this many bytes were read, no further record is read.
pub(crate) const ENOUGH: usize = 4 << 20;

/// Reads at most `limit` written records after a position, or fewer if they are long.
pub(crate) fn read(core: &Core, after: Position, limit: usize) -> Result<Vec<Entry>, ReadError> {
    read_upto(core, after, limit).map(|(entries, _)| entries)
}

/// The same, and up to where it has looked.
fn read_upto(
    core: &Core,
    after: Position,
    limit: usize,
) -> Result<(Vec<Entry>, Position), ReadError> {
    let (begin, may_begin_within, upto) = {
        let state = core.state();
        let checkpoint = state.checkpoint().unwrap_or_default();
        let chain = &state.log.chain;
        let begin = chain.after(after);
        let begin = begin.ok_or(ReadError::TooOld { checkpoint })?;
        let may_begin_within = chain.may_begin_within(begin);
        (begin, may_begin_within, state.log.written.position())
    };
    let reader = RecordReader::new(Arc::clone(&core.medium), begin);
    let mut reader = reader.begin_within(may_begin_within);
    let go_on = |place| core.state().log.chain.go_on(place);
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while entries.len() < limit && bytes < ENOUGH {
        match reader.next(&go_on, upto) {
            Ok(Some(entry)) => {
                bytes += entry.record.len();
                entries.push(entry);
            }
            Ok(None) => break,
            Err(error) => {
                // Trimmed in the meantime?
                let state = core.state();
                let checkpoint = state.checkpoint().unwrap_or_default();
                if state.log.chain.after(after).is_none() {
                    return Err(ReadError::TooOld { checkpoint });
                }
                return Err(error.into());
            }
        }
    }
    Ok((entries, upto))
}

/// A follower. It reads from the files, so it is never too slow.
pub(crate) struct Following {
    core: Arc<Core>,
    last: Position,
    /// Waits for the next record.
    when: Option<When>,
}

impl Following {
    pub(crate) fn new(core: Arc<Core>, after: Position) -> Self {
        Self {
            core,
            last: after,
            when: None,
        }
    }
}

impl Follower for Following {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Entry>, ReadError>> {
        self.core.refuse_if_forked();
        loop {
            if let Some(when) = &mut self.when {
                let Poll::Ready(durability) = Pin::new(when).poll(cx) else {
                    return Poll::Pending;
                };
                self.when = None;
                let (entries, upto) = read_upto(&self.core, self.last, MANY)?;
                if let Some(last) = entries.last() {
                    self.last = last.position;
                    return Poll::Ready(Ok(entries));
                }
                if durability == Durability::Unknown {
                    let text = "it takes nothing any more".into();
                    return Poll::Ready(Err(ReadError::Failed(text)));
                }
                // Only a mark was written. Records that came since are still to be read.
                self.last = upto.max(self.last);
            }
            let next = Position(self.last.0 + 1);
            self.when = Some(self.core.marks.when(next, Level::Buffered));
        }
    }
}
