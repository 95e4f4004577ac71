//! Writes large records ahead of their numbers, and removes what was written in vain. `ahead.rs` says how.

use std::sync::Arc;

use crate::ahead::WrittenAhead;
use crate::core::{Core, Failure};
use crate::medium::write_whole;
use crate::waiting::Due;

impl Core {
    /// Writes the next frame of a large record ahead. With the last one, its author is let in.
    pub(crate) fn write_ahead(&self) -> Result<(), Failure> {
        self.must_be_newest()?;
        let (mut due, frame) = {
            let mut state = self.state();
            let due = state.begin_ahead();
            let ahead = state.log.ahead.as_mut();
            (due, ahead.and_then(WrittenAhead::next_frame))
        };
        if let Some(frame) = frame {
            let written = self.write_item_with(&frame, write_whole);
            written.map_err(|error| Failure::Medium("writing", error))?;
            due = self.state().end_ahead();
        }
        self.wakes.run(|| due.into_iter().for_each(Due::give));
        Ok(())
    }

    /// Removes what was written ahead in vain. An author that still waits for it appends its record as if it had not asked.
    pub(crate) fn remove_ahead(&self) -> Result<(), Failure> {
        self.must_be_newest()?;
        let given_up = {
            let mut state = self.state();
            let ahead = state.log.give_up_ahead();
            ahead.map(|ahead| {
                let due = state.waiting.end_ahead(ahead.asked.number);
                (ahead, due)
            })
        };
        let Some((ahead, due)) = given_up else {
            return Ok(());
        };
        self.remove_prepared(ahead.first());
        // It may be the last to have the bytes, and to free them takes long.
        drop(ahead);
        self.wakes.run(|| due.into_iter().for_each(Due::give));
        Ok(())
    }
}

/// What an author holds for whom a record is written ahead.
pub(crate) struct HeldAhead {
    core: Arc<Core>,
    number: u64,
}

impl HeldAhead {
    pub(crate) fn new(core: &Arc<Core>, number: u64) -> Self {
        Self {
            core: Arc::clone(core),
            number,
        }
    }
}

impl Drop for HeldAhead {
    fn drop(&mut self) {
        // A thread of the parent may have held the state.
        if self.core.is_forked() {
            return;
        }
        let mut state = self.core.state();
        let ahead = state.log.ahead.as_mut();
        if let Some(ahead) = ahead.filter(|ahead| ahead.is_of(self.number)) {
            ahead.give_up();
            self.core.wake_threads(state);
        }
    }
}
