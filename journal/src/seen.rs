//! What a journal that is only read has seen of the files when it was opened, and how it reads there.

use std::io;
use std::sync::Arc;

use weald_forest::CommitId;
use weald_forest::journal::{Entry, Position, ReadError};

use crate::error::{OpenError, Unreadable};
use crate::follow::ENOUGH;
use crate::keys::Keys;
use crate::medium::Medium;
use crate::names;
use crate::needed_keys;
use crate::place::Place;
use crate::reader::RecordReader;
use crate::recover::{self, Found};
use crate::search::search_in;
use crate::searching::Outcome;
use crate::settings::Settings;

/// What was there when the journal was opened.
pub(crate) struct Seen {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) found: Found,
    pub(crate) journal: u128,
    pub(crate) keys: Arc<Keys>,
    /// Whether it may start threads.
    pub(crate) has_threads: bool,
    /// Whether erasable values that are damaged are left out.
    pub(crate) skips_damaged: bool,
}

/// Looks once; `None`, if another writer took over meanwhile: it may have cut off what was seen.
pub(crate) fn see(
    medium: &Arc<dyn Medium>,
    settings: &Settings,
) -> Result<Option<Seen>, OpenError> {
    let name = medium.name();
    let unreadable = |error: Unreadable| error.at_opening(&name);
    let found = recover::find(medium).map_err(unreadable)?;
    let Some(journal) = found.journal else {
        return Err(OpenError::NoForest {
            medium: name,
            why: "the directory has no segment. Name the directory that a program has opened a forest in",
        });
    };
    // The keys come last: each is written before what it opens.
    let keys = Arc::new(
        needed_keys::keys(
            &**medium,
            (journal, &settings.masters),
            found.end,
            &found.needed,
        )
        .map_err(unreadable)?,
    );
    let names = medium.list().map_err(|error| unreadable(error.into()))?;
    let newest = names
        .iter()
        .filter_map(|name| names::segment_of(name))
        .max();
    let is_last_opening = newest.is_none_or(|newest| newest.epoch == found.end.segment.epoch);
    Ok(is_last_opening.then(|| Seen {
        medium: Arc::clone(medium),
        found,
        journal,
        keys,
        has_threads: settings.has_threads,
        skips_damaged: settings.skips_damaged,
    }))
}

impl Seen {
    /// Ends at the last durable record, or syncs the records behind the last mark.
    pub(crate) fn end_durably(&mut self, durable: Option<Position>) -> io::Result<()> {
        if let Some(durable) = durable {
            // The last record may lie behind that, and stays noted: such a journal is shown only as of a moment, and
            // each way to that notes its own (`as_of`, `as_of_checkpoint`).
            self.found.end = self.found.end.min(Place::of(durable));
            return Ok(());
        }
        let Found {
            chain,
            durable,
            last,
            ..
        } = &self.found;
        if last.is_none_or(|(last, _)| last <= durable.position()) {
            return Ok(());
        }
        let segments = chain.newest_first().into_iter();
        for segment in segments.take_while(|segment| *segment >= durable.segment) {
            self.medium.open(&names::segment(segment))?.sync()?;
        }
        self.medium.sync_names()
    }

    pub(crate) fn read(&self, after: Position, limit: usize) -> Result<Vec<Entry>, ReadError> {
        let Found {
            chain,
            end,
            checkpoint,
            ..
        } = &self.found;
        let checkpoint = checkpoint.unwrap_or_default();
        let begin = chain.after(after).ok_or(ReadError::TooOld { checkpoint })?;
        let reader = RecordReader::new(Arc::clone(&self.medium), begin);
        let mut reader = reader.begin_within(chain.may_begin_within(begin));
        let go_on = |place| chain.go_on(place);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < limit
            && bytes < ENOUGH
            && let Some(entry) = reader.next(&go_on, end.position())?
        {
            bytes += entry.record.len();
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The record with an id.
    pub(crate) fn search(&self, id: CommitId) -> Outcome {
        let Found { chain, end, .. } = &self.found;
        let go_on = |place| chain.go_on(place);
        let segments = chain.newest_first();
        search_in(&self.medium, (&segments, &go_on), (id, end.position()))
    }
}
