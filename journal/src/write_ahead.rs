//! Writes large records ahead of their numbers, and overwrites those that were written in vain. `ahead.rs` says how.

use std::sync::Arc;

use crate::core::{Core, Failure};
use crate::head::HEAD;
use crate::medium::{STEP, write_all};
use crate::waiting::Due;

impl Core {
    /// Writes a large record ahead, and lets its author in.
    pub(crate) fn write_ahead(&self) -> Result<(), Failure> {
        self.must_be_newest()?;
        let begun = self.state().begin_ahead();
        let Some((items, number)) = begun else {
            return Ok(());
        };
        let written = items.iter().try_for_each(|item| self.write_item(item));
        written.map_err(|error| Failure::Medium("writing", error))?;
        let due = self.state().end_ahead(number);
        self.wakes.run(|| due.into_iter().for_each(Due::give));
        Ok(())
    }

    /// Overwrites what was written ahead in vain: later frames at the same places may be lost with the power.
    pub(crate) fn clear_ahead(&self) -> Result<(), Failure> {
        self.must_be_newest()?;
        let ends = match &mut self.state().log.ahead {
            None => return Ok(()),
            Some(ahead) => {
                ahead.give_up();
                ahead.ends().to_vec()
            }
        };
        let zeros = vec![0; STEP];
        for end in ends {
            let clear = || {
                let file = self.file(end.segment)?;
                for at in (HEAD..end.offset).step_by(STEP) {
                    let left = usize::try_from(end.offset - at).unwrap_or(STEP).min(STEP);
                    write_all(&*file, &zeros[..left], at.into())?;
                }
                file.sync()
            };
            clear().map_err(|error| Failure::Medium("clearing a segment", error))?;
        }
        // It may be the last to have the bytes, and to free them takes long.
        let cleared = self.state().log.ahead.take();
        drop(cleared);
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
        let mut state = self.core.state();
        let ahead = state.log.ahead.as_mut();
        if let Some(ahead) = ahead.filter(|ahead| ahead.is_of(self.number)) {
            ahead.give_up();
            self.core.wake_threads(state);
        }
    }
}
