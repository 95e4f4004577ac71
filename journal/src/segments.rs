//! The files of the segments as an opening finds them: which are there, and whether any has got lost.
//!
//! What must be there follows from the order in which the journal makes and removes files:
//! - a segment is whole, and has its name, before it gets a head and before the one behind it does;
//! - segments are removed from the oldest on, and only if a checkpoint has all that is in them;
//! - what is behind the end of an earlier opening's segment is cut off once the next opening has its first segment.
//!
//! So a crash leaves no gap and no short file, but a copy that was interrupted may.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use weald_forest::journal::Position;

use crate::chain::Chain;
use crate::error::{Damage, Unreadable};
use crate::head::{HEAD, Head};
use crate::medium::{Medium, MediumFile};
use crate::names;
use crate::place::{Place, SegmentId};
use crate::reader::damaged;

/// The segments of a directory.
pub(crate) struct Segments {
    ids: BTreeSet<SegmentId>,
    /// The heads of the segments that were begun.
    heads: BTreeMap<SegmentId, Head>,
    /// The lengths of their files.
    lens: BTreeMap<SegmentId, u64>,
}

impl Segments {
    /// Reads the heads of all segments that have one of these names.
    pub(crate) fn read(medium: &dyn Medium, names: &[String]) -> Result<Self, Unreadable> {
        let ids = names.iter().filter_map(|name| names::segment_of(name));
        let ids: BTreeSet<_> = ids.collect();
        let (mut heads, mut lens) = (BTreeMap::new(), BTreeMap::new());
        for id in &ids {
            let file = medium.open(&names::segment(*id))?;
            if let Some(head) = read_head(&*file, *id)? {
                heads.insert(*id, head);
                lens.insert(*id, file.len()?);
            }
        }
        Ok(Self { ids, heads, lens })
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

    pub(crate) fn head(&self, id: SegmentId) -> Result<&Head, Damage> {
        self.heads.get(&id).ok_or_else(|| no_head(id))
    }

    /// The segments up to one: each head says where the segment before ends. With the newest checkpoint.
    pub(crate) fn chain_before(
        &self,
        last: Head,
        checkpoint: Option<Position>,
    ) -> Result<Chain, Damage> {
        let (mut chain, mut ends) = (Chain::default(), Vec::new());
        let mut head = last;
        while head.before != Place::default() {
            let end = head.before;
            let Some(before) = self.heads.get(&end.segment) else {
                // One that was never begun proves nothing: it may be of a writer that was overtaken.
                let has_older = self.heads.range(..end.segment).next().is_some();
                if self.ids.contains(&end.segment) {
                    return Err(no_head(end.segment));
                }
                if has_older || checkpoint < Some(end.position()) {
                    return Err(missing(end.segment));
                }
                chain.trimmed = end.position();
                break;
            };
            if before.journal != last.journal {
                return Err(no_head(before.segment));
            }
            // Without this, heads that were made by hand may lead round for ever.
            if before.segment >= head.segment {
                let what = "its head says that a later segment is before it";
                return Err(damaged(Place::begin_of(head.segment), what));
            }
            ends.push(end);
            head = *before;
        }
        for end in ends.into_iter().rev() {
            chain.push(end.segment);
            chain.end_at(end);
        }
        chain.push(last.segment);
        Ok(chain)
    }

    /// Finds segments of the last opening, from its `first` on, that are missing, and files that have lost their end.
    pub(crate) fn must_be_whole(&self, chain: &Chain, first: SegmentId) -> Result<(), Damage> {
        let must_have = |id, len: u32| match self.lens.get(&id) {
            Some(found) if *found < len.into() => {
                let what = "the file has lost its end, as by a copy that was interrupted";
                Err(damaged(Place::begin_of(id), what))
            }
            _ => Ok(()),
        };
        for end in chain.known_ends() {
            must_have(end.segment, end.offset)?;
        }
        // A segment is named only when the one before it is, so a later name proves the earlier ones, begun or not.
        let mut expected = first;
        for id in self.ids.range(first..) {
            if expected < *id {
                return Err(missing(expected));
            }
            expected = id.next();
        }
        for (id, head) in self.heads.range(first..) {
            must_have(*id, head.capacity)?;
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
        head => Ok(head),
    }
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
        let segments = Segments {
            ids: BTreeSet::from([first, second]),
            heads: BTreeMap::from([(first, head(first, second)), (second, head(second, first))]),
            lens: BTreeMap::new(),
        };
        let damage = segments
            .chain_before(segments.heads[&second], None)
            .unwrap_err();
        assert!(damage.what.contains("later segment"), "{damage:?}");
    }
}
