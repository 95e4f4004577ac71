//! Blobs whose segments are gone when a journal is opened: removed by a trim that ended before it came to their keys,
//! or lost. The journal forgets the former, so that it promises nobody that they stay. It goes on to know the latter,
//! so that the loss shows where they are asked for.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;

use weald_forest::journal::{BlobId, Position, references_in};

use crate::checkpoint;
use crate::error::Unreadable;
use crate::keys::Keys;
use crate::medium::Medium;
use crate::names;
use crate::place::SegmentId;
use crate::reader::RecordReader;
use crate::recover::Found;

/// Forgets the blobs that a trim has removed.
///
/// A trim removes no blob to which a checkpoint that it leaves refers, and none that was brought back from the history.
/// So what one of the checkpoints or a record behind the newest one refers to is lost, if it is gone.
pub(crate) fn forget_removed(
    medium: &Arc<dyn Medium>,
    found: &Found,
    keys: &mut Keys,
) -> Result<(), Unreadable> {
    let mut gone = in_missing_segments(&**medium, found, keys)?;
    let Some(journal) = found.journal.filter(|_| !gone.is_empty()) else {
        return Ok(());
    };
    for at in &found.checkpoints {
        match checkpoint::blobs(&**medium, journal, *at) {
            Ok(ids) => ids.iter().for_each(|id| _ = gone.remove(id)),
            // To what it refers cannot be told any more.
            Err(_) => return Ok(()),
        }
    }
    let newest = found.checkpoint.unwrap_or_default();
    each_record_behind(newest, (medium, found), |record| {
        references_in(record).for_each(|id| _ = gone.remove(&id));
    })?;
    keys.forget_all(&gone);
    Ok(())
}

/// The blobs that lie in segments that are not there.
fn in_missing_segments(
    medium: &dyn Medium,
    found: &Found,
    keys: &Keys,
) -> io::Result<HashSet<BlobId>> {
    let outside = |segment: &SegmentId| !found.chain.has(*segment);
    let segments: BTreeSet<_> = keys.places().map(|place| place.segment).collect();
    let mut missing = BTreeSet::new();
    for segment in segments.into_iter().filter(outside) {
        match medium.open(&names::segment(segment)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => _ = missing.insert(segment),
            file => _ = file?,
        }
    }
    Ok(keys.ids_in(&missing))
}

fn each_record_behind(
    position: Position,
    (medium, found): (&Arc<dyn Medium>, &Found),
    mut take: impl FnMut(&[u8]),
) -> Result<(), Unreadable> {
    let Some(begin) = found.chain.after(position) else {
        return Ok(());
    };
    let reader = RecordReader::new(Arc::clone(medium), begin);
    let mut reader = reader.begin_within(found.chain.may_begin_within(begin));
    let go_on = |place| found.chain.go_on(place);
    while let Some(entry) = reader.next(&go_on, found.end.position())? {
        take(&entry.record);
    }
    Ok(())
}
