//! Makes room before it is needed: the next segment, and room for the keys of blobs. A full disk shows here, before
//! any record depends on the room.

use std::io;
use std::sync::{MutexGuard, PoisonError};

use weald_forest::journal::{AppendError, catch_foreign, notice};

use crate::core::{Core, Failure};
use crate::medium::{
    Medium, MediumFile, STEP, for_room, is_full, is_unopened, text_of, write_whole,
};
use crate::names;
use crate::next_step::{Preparation, State};
use crate::place::SegmentId;
use crate::reserve::Reserve;
use crate::unfinished;
use crate::waiting::Due;

impl Core {
    /// Makes room for what waits, or else the next segment, and lets in the authors that wait for it.
    pub(crate) fn prepare(&self) {
        let preparation = self.state().preparation();
        let prepared = self.caught("preparing", || match preparation {
            Some(Preparation::Keys(more)) => self.prepare_keys(more).map(|()| None),
            Some(Preparation::Segment) => self.prepare_segment().map(|()| None),
            Some(Preparation::Ahead) => self.write_ahead(),
            Some(Preparation::RemoveAhead) => self.remove_ahead(),
            None => Ok(None),
        });
        let makes_room = matches!(
            preparation,
            Some(Preparation::Keys(_) | Preparation::Segment)
        );
        match prepared {
            Ok(let_in) => {
                let mut state = self.state();
                state.is_full &= !makes_room;
                let due = self.admit(&mut state);
                self.end_preparing(state, let_in.into_iter().chain(due));
            }
            Err(Failure::Medium(_, error)) if makes_room && is_full(&error) => {
                self.refuse((AppendError::Full, &error), None);
            }
            Err(Failure::Medium(_, error)) if makes_room && is_unopened(&error) => {
                self.refuse((AppendError::Unprepared, &error), None);
            }
            // Some file systems need room for bytes that replace others. Nothing of these counts yet.
            Err(Failure::Medium(_, error)) if is_full(&error) => {
                match self.caught("preparing", || self.remove_ahead()) {
                    Ok(let_in) => self.refuse((AppendError::Full, &error), let_in),
                    Err(failure) => self.fail_preparing(&failure),
                }
            }
            Err(failure) => self.fail_preparing(&failure),
        }
    }

    /// Threads that end wait for this, and wakers may close the journal: so the threads are told before any waker runs.
    fn end_preparing(&self, mut state: MutexGuard<'_, State>, due: impl IntoIterator<Item = Due>) {
        state.is_preparing = false;
        self.wake_threads(state);
        self.wakes.run(|| due.into_iter().for_each(Due::give));
    }

    fn fail_preparing(&self, failure: &Failure) {
        let mut state = self.state();
        // From here on, as in `state_after`.
        state.failed.get_or_insert(failure.refusal());
        state.is_preparing = false;
        drop(state);
        self.fail(failure);
    }

    /// Gives what waits its places, as far as there is room.
    pub(crate) fn admit(&self, state: &mut State) -> Vec<Due> {
        let State { log, waiting, .. } = state;
        let mut due = waiting.admit(log, self.settings.buffer);
        due.append(&mut waiting.let_in(Some(log)));
        due
    }

    /// Refuses what waits, and gives back the room that was prepared for it, except for the next segment. An author
    /// that was let in before is told so.
    fn refuse(&self, (refusal, error): (AppendError, &io::Error), let_in: Option<Due>) {
        let (due, unused) = {
            let mut state = self.state();
            state.is_full = true;
            let due = state.waiting.refuse_all(refusal);
            let log = &mut state.log;
            let next = log.cursor.segment.next();
            if log.ahead.is_none() {
                log.prepared = log.prepared.min(next.index);
            }
            let index = log.prepared.saturating_add(1);
            (due, SegmentId { index, ..next })
        };
        self.remove_prepared(unused);
        self.end_preparing(self.state(), let_in.into_iter().chain(due));
        let (name, error) = (self.medium_name(), text_of(error));
        notice(move || tracing::warn!("{name}: commits are refused, {refusal}: {error}"));
    }

    /// Removes the files of prepared segments from one on, the last first. Because a segment that is missing before
    /// another is damage, all in front of one that cannot be removed stay, and the next time that one is removed first.
    /// A medium that panics has not removed it.
    pub(crate) fn remove_prepared(&self, from: SegmentId) {
        loop {
            let index = self.state().log.named;
            if index < from.index {
                return;
            }
            let segment = SegmentId { index, ..from };
            let removed = catch_foreign(|| {
                // An open file keeps its room even after it was removed.
                drop(self.files().remove(&segment));
                self.medium.remove(&names::segment(segment))
            });
            match removed {
                None => return,
                Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return,
                Some(_) => self.state().log.named = index - 1,
            }
        }
    }

    /// Fills the next segment with zeros.
    fn prepare_segment(&self) -> Result<(), Failure> {
        self.must_be_newest()?;
        self.keep_reserve(0)?;
        let segment = {
            let mut state = self.state();
            let index = state.log.prepared.checked_add(1);
            let index = index.ok_or(Failure::Medium("counting", io::ErrorKind::Other.into()))?;
            // Before it has its name: what fails behind that may leave the file.
            state.log.named = state.log.named.max(index);
            SegmentId {
                index,
                ..state.log.cursor.segment
            }
        };
        let name = names::segment(segment);
        // A file that is not whole never has this name, because it would be damage in front of a later one.
        let prepared = unfinished::make(&*self.medium, &name, |unfinished| {
            fill(&*self.medium, unfinished, self.settings.segment)
        });
        let named = prepared.and_then(|file| self.medium.sync_names().map(|()| file));
        let file = named.map_err(|error| Failure::Medium("preparing a segment", error))?;
        self.files().insert(segment, file.into());
        self.state().log.prepared = segment.index;
        Ok(())
    }

    /// Makes room for keys.
    fn prepare_keys(&self, more: u64) -> Result<(), Failure> {
        self.must_be_newest()?;
        self.keep_reserve(more)?;
        let grown = self.change_keys(0, |keys| keys.grow(&*self.medium, more));
        grown.map_err(|error| Failure::Medium("making room for keys", error))
    }

    /// Keeps the room that an opening on a full disk needs, beside room for this many more bytes of keys. Everything
    /// that could fill the disk comes later.
    fn keep_reserve(&self, more: u64) -> Result<(), Failure> {
        let due = Reserve::due(self.settings.segment, &self.keys(), more);
        let mut reserve = self.reserve.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = reserve.keep(&*self.medium, due);
        kept.map_err(|error| Failure::Medium("keeping room for an opening", error))
    }
}

/// A durable file of zeros, whose name may not be durable.
pub(crate) fn fill(medium: &dyn Medium, name: &str, len: u32) -> io::Result<Box<dyn MediumFile>> {
    let len = u64::from(len);
    let filled = medium.create(name).and_then(|file| {
        let zeros = vec![0; STEP];
        for at in (0..len).step_by(STEP) {
            let left = usize::try_from(len - at).unwrap_or(STEP).min(STEP);
            write_whole(&*file, &zeros[..left], at)?;
        }
        file.sync()?;
        Ok(file)
    });
    filled.map_err(for_room(name, len))
}
