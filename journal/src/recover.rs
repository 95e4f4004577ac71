//! Finds out what a journal has when it is opened: where its records end, and whether anything is damaged.
//!
//! These are steps 2 to 5 of "Opening" in `docs/journal.md`. `find` and `check_the_rest` change nothing; `make_durable`
//! writes again what was found, in place. The first segment of the new opening, which is the cut, is begun in `open.rs`
//! (`begin_segment`).

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use weald_forest::journal::{Position, Stored};
use weald_forest::{CommitId, Version};

use crate::chain::Chain;
use crate::checkpoint;
use crate::error::{Damage, Unreadable};
use crate::frame::{HEADER, Kind, MARK, mark_at};
use crate::head::{HEAD, Head};
use crate::medium::{Medium, STEP, read_some, write_all};
use crate::names;
use crate::needed_keys::NeededKeys;
use crate::place::{Place, SegmentId};
use crate::reader::{FrameReader, RecordReader, Step, damaged};
use crate::segment_list::SegmentList;
use crate::segments::{Segments, begun_behind, missing};

const NOTHING: [u8; 256] = [0; 256];

/// What a directory has.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) chain: Chain,
    /// The random number of the journal; `None`, if the journal is new.
    pub(crate) journal: Option<u128>,
    /// Where it ends.
    pub(crate) end: Place,
    /// Everything before this place is known to be durable.
    pub(crate) durable: Place,
    pub(crate) last: Option<(Position, CommitId)>,
    /// The number of the newest version among the records that were read.
    pub(crate) newest: u64,
    /// The newest checkpoint.
    pub(crate) checkpoint: Option<Position>,
    /// All that the history needs, oldest first.
    pub(crate) checkpoints: Vec<Position>,
    /// What the records say about keys.
    pub(crate) needed: NeededKeys,
    /// The names of files that are of no use any more once the cut is made.
    pub(crate) useless: Vec<String>,
}

/// Looks at all files and changes nothing.
pub(crate) fn find(medium: &Arc<dyn Medium>) -> Result<Found, Unreadable> {
    // This is read first: what is read later can only be more.
    let noted_end = match medium.open(names::LOCK) {
        Ok(lock) => names::noted_end(&*lock).map(Place::of),
        Err(_) => None,
    };
    let names = medium.list()?;
    let mut segments = Segments::named(medium, &names);
    let checkpoints: BTreeSet<_> = names
        .iter()
        .filter_map(|name| names::checkpoint_of(name))
        .collect();
    let checkpoint = checkpoints.last().copied();
    let mut found = Found {
        chain: Chain::default(),
        journal: None,
        end: Place::default(),
        durable: Place::default(),
        last: None,
        newest: 0,
        checkpoint,
        checkpoints: Vec::new(),
        needed: NeededKeys::default(),
        useless: Vec::new(),
    };
    if let Some(end) = noted_end
        && segments.newest_epoch() < Some(end.segment.epoch)
    {
        let what = "it is missing, and the file `lock` notes that the journal went on there. If this is an older copy, \
                    put its own `lock` back as well, or remove `lock`";
        return Err(damaged(Place::begin_of(end.segment), what).into());
    }
    if let Some(first) = segments.first_of_newest_epoch() {
        let mut before = segments.head(first)?;
        found.journal = Some(before.journal);
        let list = match checkpoint {
            Some(at) => SegmentList::read(&**medium, before.journal, at)?,
            None => None,
        };
        let keys = list.as_ref().map_or(0, |list| list.keys);
        found.needed.number = before.keys.max(keys);
        // Segments that the newest checkpoint lists need not be looked at.
        let own = checkpoint.filter(|_| list.is_some());
        let from = own.map_or(SegmentId::default(), |at| Place::of(at).segment);
        if from > first {
            before = segments.head(from)?;
        }
        found.chain = segments.chain_before(before, (checkpoint, list))?;
        segments.must_be_whole(&found.chain, (first, from))?;
        read_last_opening(medium, &mut found, (&mut segments, before))?;
        // When the journal was closed, all of this was on the medium.
        if let Some(end) = noted_end
            && end.segment.epoch == found.end.segment.epoch
            && found.end < end
        {
            return Err(damaged(found.end, "what was there when it was closed is missing").into());
        }
    } else if let Some(at) = checkpoint {
        return Err(missing(Place::of(at).segment).into());
    } else if let Some(number) = names.iter().filter_map(|name| names::keys_of(name)).max() {
        // A journal has no keys before it has a segment, and a new journal would destroy these.
        return Err(Unreadable::Damaged(Damage {
            file: names::keys(number),
            offset: 0,
            what: "the segments to which its keys belong are missing",
        }));
    }
    // Where records were trimmed, an older one leads nowhere.
    let trimmed = found.chain.trimmed;
    found.checkpoints = checkpoints.range(trimmed..).copied().collect();
    found.useless = useless(&found.chain, names);
    Ok(found)
}

/// The files that are no part of the journal any more.
fn useless(chain: &Chain, names: Vec<String>) -> Vec<String> {
    // Somebody may have put back a segment from before the first one.
    let first = chain.first().map(|first| first.segment);
    let is_useless = |name: &String| {
        names::segment_of(name).is_some_and(|id| first <= Some(id) && !chain.has(id))
            || names::checkpoint_of(name).is_some_and(|at| at < chain.trimmed)
    };
    names.into_iter().filter(is_useless).collect()
}

/// The head of the segment at which reading the last opening's segments begins, if everything before a place is known.
fn first_to_read(
    medium: &Arc<dyn Medium>,
    found: &mut Found,
    (segments, first): (&mut Segments, Head),
    known: Option<Place>,
) -> Result<Head, Unreadable> {
    let mut head = first;
    while known.is_some_and(|known| head.segment < known.segment) {
        let next = head.segment.next();
        head = segments.head(next)?;
        found.chain.end_at(head.before);
        found.chain.push(next);
    }
    while goes_on_a_record(medium, head.segment)?
        && let Some(earlier) = found.chain.in_front_of(head.segment)
    {
        head = segments.head(earlier)?;
    }
    Ok(head)
}

/// Finds the end of the last opening's segments.
fn read_last_opening(
    medium: &Arc<dyn Medium>,
    found: &mut Found,
    (segments, first): (&mut Segments, Head),
) -> Result<(), Unreadable> {
    let begin = Place {
        segment: first.segment,
        offset: HEAD,
    };
    // Everything in a checkpoint was durable before it, and so were the heads up to there.
    let known = found
        .checkpoint
        .map(Place::of)
        .filter(|place| *place > begin);
    let head = first_to_read(medium, found, (&mut *segments, first), known)?;
    let mut last = head.last;
    let place = Place {
        offset: HEAD,
        segment: head.segment,
    };
    let mut durable = known.unwrap_or(begin);
    let mut end = place;
    let mut reader = RecordReader::new(Arc::clone(medium), place);
    let mut is_second = false;
    loop {
        let step = reader.step()?;
        if !matches!(step, Step::Invalid) {
            match step {
                Step::Erasure(place, erasure) => found.needed.erasure(place, erasure),
                Step::Blob(place, id) => found.needed.blob(place, id),
                Step::Record(position, record) => {
                    found.needed.record(&record, known);
                    end = Place::of(position);
                    let (version, id) = commit_of(&record, end)?;
                    last = Some((position, id));
                    found.newest = found.newest.max(version.number);
                }
                Step::Mark(position, behind) => {
                    end = behind;
                    durable = durable.max(Place::of(position));
                }
                Step::Part | Step::Invalid => {}
            }
            continue;
        }
        drop(step);
        if let Some(next) = begun_behind(&**medium, reader.place)? {
            found.chain.end_at(reader.place);
            found.chain.push(next);
            reader.place = Place {
                segment: next,
                offset: HEAD,
            };
            continue;
        }
        if is_second {
            break;
        }
        durable = durable.max(highest_mark_behind(medium, reader.place)?);
        if durable <= end {
            break;
        }
        // If a program writes meanwhile, the mark may be about bytes that were written after the frame was
        // read.
        is_second = true;
        reader.frames.forget();
    }
    if durable > end {
        // Where a segment is not full, the damage is rather in the head of the one behind it, and that file is named.
        if durable.segment > reader.place.segment && is_unused(medium, reader.place)? {
            segments.head(reader.place.segment.next())?;
        }
        return Err(damaged(reader.place, "what was durable there is not valid").into());
    }
    // The end may lie in an earlier segment than the last that was reached, if a record is torn over several.
    found.chain.cut(end);
    (found.end, found.durable, found.last) = (end, durable, last);
    Ok(())
}

/// Whether no frame was ever begun at a place.
fn is_unused(medium: &Arc<dyn Medium>, place: Place) -> io::Result<bool> {
    let file = medium.open(&names::segment(place.segment))?;
    let bytes = read_some(&*file, place.offset.into(), HEADER)?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}

/// Whether a segment begins within a record.
pub(crate) fn goes_on_a_record(medium: &Arc<dyn Medium>, segment: SegmentId) -> io::Result<bool> {
    let mut frames = FrameReader::new(Arc::clone(medium));
    let place = Place {
        segment,
        offset: HEAD,
    };
    let frame = frames.frame(place)?;
    Ok(frame.is_some_and(|(header, _)| matches!(header.kind, Kind::Middle | Kind::Last)))
}

fn commit_of(record: &[u8], place: Place) -> Result<(Version, CommitId), Damage> {
    let commit = Stored::commit(record);
    commit.map_err(|_| damaged(place, "the record that ends here cannot be decoded"))
}

/// The highest position that is marked as durable behind a place at which the frames cannot be read.
fn highest_mark_behind(medium: &Arc<dyn Medium>, broken: Place) -> io::Result<Place> {
    let mut highest = Place::default();
    let mut place = broken;
    while place.segment.index < u32::MAX {
        let file = match medium.open(&names::segment(place.segment)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            other => other?,
        };
        // A step ends within a mark at most, and the next one begins before that.
        loop {
            let bytes = read_some(&*file, place.offset.into(), STEP)?;
            highest = highest.max(highest_mark_in(place, &bytes));
            let step = (bytes.len() == STEP).then_some(STEP - MARK);
            let step = step.and_then(|step| u32::try_from(step).ok());
            match step.and_then(|step| place.offset.checked_add(step)) {
                Some(offset) => place.offset = offset,
                None => break,
            }
        }
        place = Place {
            segment: place.segment.next(),
            offset: HEAD,
        };
    }
    Ok(highest)
}

/// The highest position that a mark in these bytes says, which lie at a place.
fn highest_mark_in(place: Place, bytes: &[u8]) -> Place {
    let mut highest = Place::default();
    let mut at = 0;
    while at < bytes.len() {
        // A mark begins with a byte that is not zero, and most bytes of the rest of a segment are
        // zero.
        if bytes[at..].starts_with(&NOTHING) {
            at += NOTHING.len();
            continue;
        }
        let offset = u32::try_from(at).ok();
        let offset = offset.and_then(|at| place.offset.checked_add(at));
        let mark = offset.and_then(|offset| mark_at(Place { offset, ..place }, &bytes[at..]));
        if let Some(position) = mark {
            highest = highest.max(Place::of(position));
        }
        at += 1;
    }
    highest
}

/// Reads what `find` has not: the newest checkpoint, and the records between it and the last opening. The forest reads
/// them later, when the cut is made; but damage is to be found before anything changes.
pub(crate) fn check_the_rest(
    medium: &Arc<dyn Medium>,
    found: &mut Found,
) -> Result<(), Unreadable> {
    let Some(journal) = found.journal else {
        return Ok(());
    };
    if let Some(at) = found.checkpoint {
        checkpoint::check(&**medium, journal, at)?;
        // The forest says later what it cannot read.
        let newest = checkpoint::get(&**medium, journal, at)?.newest();
        found.newest = found
            .newest
            .max(newest.map_or(0, |(version, _)| version.number));
    }
    let last_opening = Place {
        segment: SegmentId {
            index: 1,
            ..found.end.segment
        },
        offset: HEAD,
    };
    let Some(begin) = found.chain.after(found.checkpoint.unwrap_or_default()) else {
        return Ok(());
    };
    let mut reader = RecordReader::new(Arc::clone(medium), begin);
    let (chain, newest) = (&found.chain, &mut found.newest);
    let go_on = |place| chain.go_on(place);
    while let Some(entry) = reader.next(&go_on, last_opening.position())? {
        let (version, _) = commit_of(&entry.record, reader.place)?;
        *newest = version.number.max(*newest);
    }
    Ok(())
}

/// Makes sure that what was found lies on the medium, and not only in the memory of the system.
pub(crate) fn make_durable(medium: &dyn Medium, found: &Found) -> io::Result<()> {
    let mut place = found.durable;
    if found.journal.is_none() {
        return Ok(());
    }
    while place.segment <= found.end.segment {
        let file = medium.open(&names::segment(place.segment))?;
        let is_last = place.segment == found.end.segment;
        let end = if is_last { found.end.offset } else { u32::MAX };
        while place.offset < end {
            let most = usize::try_from(end - place.offset)
                .unwrap_or(STEP)
                .min(STEP);
            let bytes = read_some(&*file, place.offset.into(), most)?;
            if bytes.is_empty() {
                break;
            }
            write_all(&*file, &bytes, place.offset.into())?;
            place.offset = place
                .offset
                .saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        file.sync()?;
        place = Place {
            segment: place.segment.next(),
            offset: 0,
        };
    }
    // A segment may have been named by a process that ended before it made the name durable.
    medium.sync_names()
}
