//! Reads erasable bytes: all parts of a blob, each opened with the blob's key.

use std::sync::Arc;

use weald_forest::journal::BlobId;
use zeroize::Zeroizing;

use crate::blob;
use crate::error::Unreadable;
use crate::frame::{HEADER, Kind};
use crate::key_file::KeyEntry;
use crate::medium::Medium;
use crate::place::Place;
use crate::reader::{FrameReader, damaged};

/// Reads blobs, the bytes around one of which may be those of the next.
pub(crate) struct BlobReader<'a> {
    frames: FrameReader,
    /// Where the journal goes on, if a place is the end of its segment.
    go_on: &'a dyn Fn(Place) -> Option<Place>,
}

impl<'a> BlobReader<'a> {
    /// For one blob.
    pub(crate) fn for_one(
        medium: &Arc<dyn Medium>,
        go_on: &'a dyn Fn(Place) -> Option<Place>,
    ) -> Self {
        let frames = FrameReader::for_few(Arc::clone(medium));
        Self { frames, go_on }
    }

    /// For many, which are read in the order of their places.
    pub(crate) fn for_many(
        medium: &Arc<dyn Medium>,
        go_on: &'a dyn Fn(Place) -> Option<Place>,
    ) -> Self {
        let frames = FrameReader::new(Arc::clone(medium));
        Self { frames, go_on }
    }

    /// The bytes of a blob. No copy of them is left in memory.
    pub(crate) fn read(&mut self, id: BlobId, entry: &KeyEntry) -> Result<Vec<u8>, Unreadable> {
        let (mut place, mut bytes, mut part) = (entry.at, Zeroizing::new(Vec::new()), 0);
        loop {
            if let Some(next) = (self.go_on)(place) {
                place = next;
            }
            let wrong = || damaged(place, "it is no part of these erasable bytes");
            let (header, body) = self.frames.frame(place)?.ok_or_else(wrong)?;
            let opened = (header.kind == Kind::Blob)
                .then(|| blob::open((id, &entry.key), part, body))
                .flatten();
            let (opened, left) = opened.ok_or_else(wrong)?;
            let opened = Zeroizing::new(opened);
            if left == 0 && part == 0 {
                return Ok(take(opened));
            }
            // No part is longer than the first, so the bytes never move.
            let parts = usize::try_from(left).unwrap_or(0).saturating_add(1);
            if part == 0 {
                bytes.reserve_exact(opened.len().saturating_mul(parts).min(MOST));
            }
            bytes.extend_from_slice(&opened);
            if left == 0 {
                return Ok(take(bytes));
            }
            place = place.plus(HEADER + header.len);
            part += 1;
        }
    }

    /// Gives the bytes of many blobs, in the order in which they lie in the journal; none for those without a key.
    pub(crate) fn read_all(
        &mut self,
        asked: Vec<(BlobId, Option<KeyEntry>)>,
        take: &mut dyn FnMut(BlobId, Option<Vec<u8>>),
    ) -> Result<(), Unreadable> {
        let mut asked = asked;
        asked.sort_unstable_by_key(|(_, entry)| entry.as_ref().map(|entry| entry.at));
        for (id, entry) in asked {
            let bytes = entry.map(|entry| self.read(id, &entry)).transpose()?;
            take(id, bytes);
        }
        Ok(())
    }
}

/// The longest value for which a part may ask for memory: what a part says was checked, but whoever has the key may say anything.
const MOST: usize = 1 << 30;

fn take(mut bytes: Zeroizing<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *bytes)
}
