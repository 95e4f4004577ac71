//! Opens a journal: takes the lock, recovers, and begins a segment.
//!
//! The numbers in `open` are those of the steps of "Opening" in `docs/journal.md`. No step before 7, the cut, changes a
//! record. `recover.rs` has steps 2 to 5.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::checkpoint;
use crate::core::Core;
use crate::error::{OpenError, Unreadable};
use crate::head::{HEAD, Head};
use crate::keys::Keys;
use crate::leading::Leading;
use crate::log::{Batch, KeyRoom, Log};
use crate::medium::{Medium, MediumFile, is_full, write_whole};
use crate::names;
use crate::needed_keys;
use crate::next_step::State;
use crate::place::{Place, SegmentId};
use crate::prepare::fill;
use crate::recover::{self, Found};
use crate::regroup::Regroup;
use crate::removed::forget_removed;
use crate::reserve::{self, Reserve};
use crate::segments::missing;
use crate::settings::Settings;
use crate::unfinished;
use crate::waiting::Waiting;

/// This many segments behind a checkpoint are enough for the next one.
const SEGMENTS: u64 = 1024;

/// Opens the journal of a medium for writing.
pub(crate) fn open(medium: Arc<dyn Medium>, settings: Settings) -> Result<Core, OpenError> {
    let name = medium.name();
    // 1. The lock, and the note of the new epoch.
    let lock = medium.lock().map_err(|error| OpenError::Locked {
        medium: name.clone(),
        error,
    })?;
    let failed = |doing| {
        let medium = name.clone();
        move |error| OpenError::Failed {
            medium,
            doing,
            error,
        }
    };
    let epoch = next_epoch(&*medium, &*lock, &settings).map_err(failed("listing it failed"))?;
    let note = names::note(std::process::id(), epoch);
    // A former writer that the lock does not stop finds this note before anything that it writes
    // counts.
    let mut reserve = Reserve::find(&*medium).map_err(failed("looking for its reserve failed"))?;
    let noted = write_note(&*medium, &*lock, &note, &mut reserve);
    noted.map_err(failed("noting the writer failed"))?;
    unfinished::remove_left(&*medium).map_err(failed("removing what is not whole failed"))?;
    // 2 to 4. The heads, the end, and whether what follows it is damage or a torn tail.
    let mut found = recover::find(&medium).map_err(|error: Unreadable| error.at_opening(&name))?;
    // 4. The newest checkpoint, and the records before the last opening.
    recover::check_the_rest(&medium, &mut found)
        .map_err(|error: Unreadable| error.at_opening(&name))?;
    // 5. The bytes behind the last mark are written again.
    let again = recover::make_durable(&*medium, &found);
    again.map_err(failed("making its end durable failed"))?;
    // 6. The keys. The new key file is made with the segment.
    let masters = &settings.masters;
    let mut keys = match found.journal {
        Some(journal) => needed_keys::keys(&*medium, (journal, masters), found.end, &found.needed)
            .map_err(|error: Unreadable| error.at_opening(&name))?,
        None => Keys::new(0, masters.clone()),
    };
    if !settings.skips_damaged {
        must_have_segments(&*medium, &found, &keys)
            .map_err(|error: Unreadable| error.at_opening(&name))?;
    }
    forget_removed(&medium, &found, &mut keys)
        .map_err(|error: Unreadable| error.at_opening(&name))?;
    let journal = found.journal.unwrap_or_else(random);
    // Before the cut, because a later opening does not read what was erased before it.
    keys.belong_to(journal);
    let head = Head {
        segment: SegmentId { epoch, index: 1 },
        capacity: settings.segment,
        journal,
        before: found.end,
        last: found.last,
        keys: 0,
    };
    // 7. The first segment: the cut.
    let begun = begin_with_keys(&*medium, &mut keys, &mut reserve, head);
    let (file, head, reserved) = begun.map_err(|(doing, error)| failed(doing)(error))?;
    // 8. What is not needed any more.
    for useless in &found.useless {
        let removed = medium.remove(useless);
        removed.map_err(failed("removing a file of no use failed"))?;
    }
    if !found.useless.is_empty() {
        let synced = medium.sync_names();
        synced.map_err(failed("making the removal of files durable failed"))?;
    }
    cut_former(&*medium, &found, epoch)
        .map_err(failed("cutting off the rest of a segment failed"))?;
    let due = Reserve::due(settings.segment, &keys, 0);
    let kept = reserve.keep_if_possible(&*medium, due);
    kept.map_err(failed("keeping room for the next opening failed"))?;
    let growth = growth(&*medium, &found, &settings);
    let growth = growth.map_err(failed("looking at its newest checkpoint failed"))?;
    let state = state(found, (head, reserved), growth);
    Ok(Core::new(
        (medium, settings),
        (state, keys, reserve),
        file.into(),
        (lock, note),
    ))
}

/// The segments with the bytes to which the newest checkpoint refers must be there, even if the records around them
/// were trimmed: without them no opening could show the forest.
fn must_have_segments(medium: &dyn Medium, found: &Found, keys: &Keys) -> Result<(), Unreadable> {
    let (Some(journal), Some(at)) = (found.journal, found.checkpoint) else {
        return Ok(());
    };
    if keys.places().next().is_none() {
        return Ok(());
    }
    let ids = checkpoint::blobs(medium, journal, at)?;
    let places = ids.into_iter().filter_map(|id| keys.place(id));
    let segments: BTreeSet<_> = places.map(|place| place.segment).collect();
    let unknown = segments.into_iter().filter(|id| !found.chain.has(*id));
    for segment in unknown {
        match medium.open(&names::segment(segment)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(missing(segment).into());
            }
            file => _ = file?,
        }
    }
    Ok(())
}

/// A number that no opening had: neither one that is known here nor, as far as the clock is right, one that this copy
/// of the directory does not know of.
fn next_epoch(medium: &dyn Medium, lock: &dyn MediumFile, settings: &Settings) -> io::Result<u64> {
    let names = medium.list()?;
    let segments = names.iter().filter_map(|name| {
        let name = name.strip_suffix(names::UNFINISHED).unwrap_or(name);
        names::segment_of(name)
    });
    let known = segments.map(|segment| segment.epoch).max();
    let known = known.max(names::noted_epoch(lock)).unwrap_or(0);
    let since = settings.clock.now().duration_since(SystemTime::UNIX_EPOCH);
    let clock = u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(0);
    let next = known.checked_add(1).ok_or(io::ErrorKind::InvalidData)?;
    Ok(next.max(clock))
}

/// Notes the writer. The former note may have been lost with the power, so this one may need room.
fn write_note(
    medium: &dyn Medium,
    lock: &dyn MediumFile,
    note: &[u8],
    reserve: &mut Reserve,
) -> io::Result<()> {
    match write_whole(lock, note, 0) {
        Err(error) if is_full(&error) => {
            reserve.give(medium)?;
            write_whole(lock, note, 0)
        }
        noted => noted,
    }
}

fn random() -> u128 {
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    half() << 64 | half()
}

/// The first segment, the head that all segments of this opening have in common, and how long the first one is, if that
/// is another length.
type Begun = (Box<dyn MediumFile>, Head, Option<u32>);

/// Makes the key file and the first segment. On a full disk they get the reserve's room, and the segment is a short
/// one.
fn begin_with_keys(
    medium: &dyn Medium,
    keys: &mut Keys,
    reserve: &mut Reserve,
    mut head: Head,
) -> Result<Begun, (&'static str, io::Error)> {
    let mut begin_in = |keys: &mut Keys, capacity, is_renewed: &mut bool| {
        if !*is_renewed {
            let renewed = needed_keys::renew_keys(medium, keys);
            renewed.map_err(|error| match error.kind() {
                // Nobody else has a reason to.
                io::ErrorKind::NotFound => (
                    "its key files were changed by another program, which still writes there although this one has the lock; \
                     end that program and open it again",
                    error,
                ),
                _ => ("writing the keys failed", error),
            })?;
            *is_renewed = true;
        }
        head.keys = keys.number();
        let begun = begin_segment(medium, &Head { capacity, ..head });
        begun.map_err(|error| ("beginning a segment failed", error))
    };
    let (regular, mut is_renewed, had) = (head.capacity, false, reserve.len());
    let mut begun = begin_in(keys, regular, &mut is_renewed);
    let mut reserved = None;
    for len in reserve::short_segments(regular) {
        if !begun.as_ref().is_err_and(|(_, error)| is_full(error)) {
            break;
        }
        let given = reserve.give(medium);
        given.map_err(|error| ("taking its reserve failed", error))?;
        begun = begin_in(keys, len, &mut is_renewed);
        reserved = Some(len);
    }
    if begun.is_err() {
        // Its error would say nothing that the first one does not.
        let _ = reserve.keep(medium, had);
    }
    begun.map(|file| (file, head, reserved))
}

/// Makes the first segment of an opening: whole and durable before it has its name.
fn begin_segment(medium: &dyn Medium, head: &Head) -> io::Result<Box<dyn MediumFile>> {
    let name = names::segment(head.segment);
    let file = unfinished::make(medium, &name, |unfinished| {
        let file = fill(medium, unfinished, head.capacity)?;
        write_whole(&*file, &head.write(), 0)?;
        file.sync()?;
        Ok(file)
    })?;
    medium.sync_names()?;
    Ok(file)
}

/// Cuts off what is behind the ends of the last opening's segments, from that of the newest checkpoint on. Those before
/// it may be many, and are full. Only those in front of a record that was written ahead are not: they are cut as well.
/// The new segment's head is durable, so nothing behind the ends is read any more.
fn cut_former(medium: &dyn Medium, found: &Found, epoch: u64) -> io::Result<()> {
    debug_assert!(
        found.end.segment.epoch < epoch,
        "the new segment is not among them"
    );
    let known = found.checkpoint.map(|at| Place::of(at).segment);
    let ends = found.chain.known_ends();
    let ends = ends.filter(|end| end.segment.epoch == found.end.segment.epoch);
    let ends: Vec<_> = ends.collect();
    let longest = ends.iter().map(|end| end.offset).max().unwrap_or(0);
    for end in ends {
        // What other frames leave of a segment is less than half of it.
        let ends_early = end.offset < longest / 2;
        if known <= Some(end.segment) || ends_early {
            let file = medium.open(&names::segment(end.segment))?;
            if file.len()? > end.offset.into() {
                file.cut(end.offset.into())?;
            }
        }
    }
    Ok(())
}

/// How much an opening has to read behind the newest checkpoint, in bytes, and how much is enough for the next one.
fn growth(medium: &dyn Medium, found: &Found, settings: &Settings) -> io::Result<(u64, u64)> {
    let Some(enough) = settings.checkpoint else {
        return Ok((0, u64::MAX));
    };
    let known = found.checkpoint.map(Place::of).unwrap_or_default();
    // Even a short segment costs an opening as much as this many bytes.
    let least = enough / SEGMENTS;
    let behind = |end: Place| match end.segment == known.segment {
        true => u64::from(end.offset.saturating_sub(known.offset)),
        false => u64::from(end.offset).max(least),
    };
    let ends = found.chain.known_ends();
    let ends = ends.filter(|end| end.segment >= known.segment);
    let grown = ends.map(behind).sum();
    let len = match found.checkpoint {
        Some(at) => medium.open(&names::checkpoint(at))?.len()?,
        None => 0,
    };
    Ok((grown, enough.max(2 * len)))
}

fn state(
    found: Found,
    (head, reserved): (Head, Option<u32>),
    (grown, grown_enough): (u64, u64),
) -> State {
    let segment = head.segment;
    let cursor = Place {
        segment,
        offset: HEAD,
    };
    let mut chain = found.chain;
    chain.push(segment);
    let log = Log {
        head,
        reserved,
        cursor,
        prepared: segment.index,
        named: segment.index,
        ahead: None,
        chain,
        batch: Batch::default(),
        unwritten: 0,
        last: found.last,
        newest: found.newest,
        written: cursor,
        synced: cursor,
        marked: cursor.position(),
        keys: KeyRoom::default(),
        buffer: Vec::new(),
    };
    State {
        log,
        waiting: Waiting::default(),
        sealed: std::collections::HashMap::new(),
        is_writing: false,
        last_batch: 0,
        is_syncing: false,
        is_preparing: false,
        is_full: false,
        wanted: cursor.position(),
        failed: None,
        is_closing: false,
        checkpoints: found.checkpoints,
        grown,
        grown_enough,
        active: Instant::now(),
        idle: 0,
        leading: Leading::at(cursor.position()),
        regroup: Regroup::default(),
        is_called: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedDisk;

    /// Whatever the segments contain, their heads alone cost later openings time.
    #[test]
    fn a_thousand_openings_are_enough_for_a_checkpoint() {
        let disk = Arc::new(SimulatedDisk::new());
        let settings = || {
            let enough = Some(1024 * u64::from(HEAD) * 100);
            Settings::new()
                .segment(2048)
                .checkpoint_after(enough)
                .by_hand()
        };
        for opening in 0..4 {
            let core = open(disk.clone(), settings()).unwrap();
            let state = core.state();
            assert_eq!(state.grown, opening * u64::from(HEAD) * 100);
            assert_eq!(state.grown_enough, 1024 * u64::from(HEAD) * 100);
            drop(state);
            core.begin_close();
            core.end_close();
        }
    }
}
