//! The files of the segments as an opening finds them: which are there, and whether any has got lost.
//!
//! Which files must be there follows from the order in which the journal makes and removes them:
//! - a segment is whole, and has its name, before it gets a head and before the one behind it does;
//! - segments are removed from the oldest on, and only if a checkpoint has all that is in them;
//! - what is behind the end of an earlier opening's segment is cut off once the next opening has its first segment.
//!
//! So a crash leaves no gap and no short file, but a copy that was interrupted may.
//!
//! A segment is looked at only when something is asked about it. The newest checkpoint lists the segments before its
//! own (`segment_list.rs`), so for these the names are enough.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use weald_forest::journal::Position;

use crate::chain::Chain;
use crate::error::{Damage, Unreadable};
use crate::head::{HEAD, Head};
use crate::medium::{Medium, MediumFile};
use crate::names;
use crate::place::{Place, SegmentId};
use crate::reader::damaged;
use crate::segment_list::SegmentList;

/// The segments of a directory.
pub(crate) struct Segments {
    medium: Arc<dyn Medium>,
    ids: BTreeSet<SegmentId>,
    /// What is known of those that were looked at.
    looked: BTreeMap<SegmentId, Looked>,
}

/// What a file has: the head, if the segment was begun, and its length.
#[derive(Clone, Copy, Default)]
struct Looked {
    head: Option<Head>,
    len: u64,
}

impl Segments {
    /// The segments that have one of these names.
    pub(crate) fn named(medium: &Arc<dyn Medium>, names: &[String]) -> Self {
        let ids = names.iter().filter_map(|name| names::segment_of(name));
        Self {
            medium: Arc::clone(medium),
            ids: ids.collect(),
            looked: BTreeMap::new(),
        }
    }

    /// The last opening that has a segment.
    pub(crate) fn newest_epoch(&self) -> Option<u64> {
        self.ids.last().map(|id| id.epoch)
    }

    /// The first segment of the last opening that is still there: those before it may be trimmed.
    pub(crate) fn first_of_newest_epoch(&self) -> Option<SegmentId> {
        let epoch = self.newest_epoch()?;
        self.ids
            .range(SegmentId { epoch, index: 1 }..)
            .next()
            .copied()
    }

    /// Looks at a segment; at nothing, if it is missing.
    fn see(&mut self, id: SegmentId) -> Result<Looked, Unreadable> {
        if let Some(seen) = self.looked.get(&id) {
            return Ok(*seen);
        }
        if !self.ids.contains(&id) {
            return Ok(Looked::default());
        }
        let file = self.medium.open(&names::segment(id))?;
        let (head, len) = (read_head(&*file, id)?, file.len()?);
        let seen = Looked { head, len };
        self.looked.insert(id, seen);
        Ok(seen)
    }

    /// The head of a segment that must have been begun.
    pub(crate) fn head(&mut self, id: SegmentId) -> Result<Head, Unreadable> {
        match self.see(id)?.head {
            Some(head) => Ok(head),
            None if self.ids.contains(&id) => Err(no_head(id).into()),
            None => Err(missing(id).into()),
        }
    }

    /// Whether there is a segment before one that was begun. One that was never begun proves nothing: it may be of a
    /// writer that was overtaken.
    fn has_before(&mut self, segment: SegmentId) -> Result<bool, Unreadable> {
        let older: Vec<_> = self.ids.range(..segment).copied().collect();
        for id in older {
            if self.see(id)?.head.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The segments up to a given one: each head says where the segment before it ends. Also given are the position of
    /// the newest checkpoint, and what it lists.
    pub(crate) fn chain_before(
        &mut self,
        last: Head,
        (checkpoint, list): (Option<Position>, Option<SegmentList>),
    ) -> Result<Chain, Unreadable> {
        // The heads are followed back to the checkpoint's own segment, if it lists those before.
        let own = checkpoint.filter(|_| list.is_some());
        let own = own.map(|at| Place::of(at).segment);
        let (mut chain, mut ends) = (Chain::default(), Vec::new());
        let mut head = last;
        while head.before != Place::default() && own.is_none_or(|own| own < head.segment) {
            let end = head.before;
            let Some(before) = self.see(end.segment)?.head else {
                if self.ids.contains(&end.segment) {
                    return Err(no_head(end.segment).into());
                }
                if self.has_before(end.segment)? || checkpoint < Some(end.position()) {
                    return Err(missing(end.segment).into());
                }
                chain = Chain::behind_removed(end);
                break;
            };
            if before.journal != last.journal {
                return Err(no_head(before.segment).into());
            }
            // Without this, heads that were made by hand may lead round for ever.
            if before.segment >= head.segment {
                let what = "its head says that a later segment is before it";
                return Err(damaged(Place::begin_of(head.segment), what).into());
            }
            ends.push(end);
            head = before;
        }
        if let Some(list) = list {
            let ends_behind = ends
                .last()
                .is_none_or(|end| checkpoint <= Some(end.position()));
            if own != Some(head.segment) || head.before != list.end() || !ends_behind {
                let what = "its head leads to other segments than the newest checkpoint lists";
                return Err(damaged(Place::begin_of(head.segment), what).into());
            }
            chain = self.listed(list)?;
        }
        for end in ends.into_iter().rev() {
            chain.push(end.segment);
            chain.end_at(end);
        }
        chain.push(last.segment);
        Ok(chain)
    }

    /// The listed segments that are there. The others were removed, and so were all segments before
    /// those.
    fn listed(&self, mut list: SegmentList) -> Result<Chain, Damage> {
        let is_there = |end: &Place| self.ids.contains(&end.segment);
        let lost = list.ends.iter().rposition(|end| !is_there(end));
        if let Some(lost) = lost {
            let end = list.ends[lost];
            if list.ends[..lost].iter().any(is_there) {
                return Err(missing(end.segment));
            }
            list.ends.drain(..=lost);
            list.removed = end.position();
        }
        Ok(Chain::of(list))
    }

    /// Finds segments of the last opening, from its `first` on, that are missing; and of the segments from one on,
    /// files that have lost their end.
    pub(crate) fn must_be_whole(
        &mut self,
        chain: &Chain,
        (first, from): (SegmentId, SegmentId),
    ) -> Result<(), Unreadable> {
        // A segment is named only when the one before it is, so a later name proves the earlier ones, begun or not.
        let mut expected = first;
        for id in self.ids.range(first..) {
            if expected < *id {
                return Err(missing(expected).into());
            }
            expected = id.next();
        }
        let ends = chain.known_ends().filter(|end| end.segment >= from);
        let mut due: Vec<_> = ends.map(|end| (end.segment, end.offset)).collect();
        // The files of earlier openings were cut. All files of this opening have their full length, including those
        // that were only prepared; only the last one may not be whole yet.
        let last_opening: Vec<_> = self.ids.range(first.max(from)..).copied().collect();
        let mut capacity = 0;
        for id in &last_opening {
            let head = self.see(*id)?.head;
            capacity = head.map_or(capacity, |head| head.capacity);
            if head.is_some() || Some(id) != last_opening.last() {
                due.push((*id, capacity));
            }
        }
        for (id, due) in due {
            if self.see(id)?.len < due.into() {
                let what = "the file has lost its end, as by a copy that was interrupted";
                return Err(damaged(Place::begin_of(id), what).into());
            }
        }
        Ok(())
    }
}

fn read_head(file: &dyn MediumFile, id: SegmentId) -> Result<Option<Head>, Unreadable> {
    let mut bytes = [0; HEAD as usize];
    let read = file.read_at(&mut bytes, 0)?;
    match Head::read(&bytes[..read]) {
        Some(head) if head.segment != id => {
            let what = "its head is that of another segment, so files were exchanged";
            Err(damaged(Place::begin_of(id), what).into())
        }
        Some(head) => Ok(Some(head)),
        None => match Head::unknown_format(&bytes[..read]) {
            Some(format) => {
                let file = names::segment(id);
                Err(Unreadable::UnknownFormat { file, format })
            }
            None => Ok(None),
        },
    }
}

/// Reads the heads of segments of a journal: an opening reads those before the newest checkpoint's own segment only if
/// that checkpoint is lost.
pub(crate) fn check_heads(
    medium: &dyn Medium,
    (journal, segments): (u128, Vec<SegmentId>),
) -> Result<(), Unreadable> {
    for id in segments {
        let head = read_head(&*medium.open(&names::segment(id))?, id)?;
        if head.is_none_or(|head| head.journal != journal) {
            return Err(no_head(id).into());
        }
    }
    Ok(())
}

/// The segment behind a place, if it was begun there.
pub(crate) fn begun_behind(
    medium: &dyn Medium,
    place: Place,
) -> Result<Option<SegmentId>, Unreadable> {
    let next = place.segment.next();
    let file = match medium.open(&names::segment(next)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let head = read_head(&*file, next)?;
    Ok(head.filter(|head| head.before == place).map(|_| next))
}

fn no_head(segment: SegmentId) -> Damage {
    damaged(Place::begin_of(segment), "its head is not valid")
}

pub(crate) fn missing(segment: SegmentId) -> Damage {
    damaged(Place::begin_of(segment), "it is missing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedDisk;

    #[test]
    fn heads_that_lead_round_are_damage() {
        let [first, second] = [1, 2].map(|epoch| SegmentId { epoch, index: 0 });
        let head = |segment, before| Head {
            segment,
            before: Place {
                segment: before,
                offset: HEAD,
            },
            ..Head::default()
        };
        let heads = [head(first, second), head(second, first)];
        let seen = heads.map(|head| {
            let (head, segment) = (Some(head), head.segment);
            (segment, Looked { head, len: 0 })
        });
        let mut segments = Segments {
            medium: Arc::new(SimulatedDisk::new()),
            ids: BTreeSet::from([first, second]),
            looked: BTreeMap::from(seen),
        };
        let damage = segments.chain_before(heads[1], (None, None)).unwrap_err();
        assert!(damage.to_string().contains("later segment"), "{damage}");
    }
}
