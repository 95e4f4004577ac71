//! Reads erasable bytes: all parts of a blob, each opened with the blob's key.

use std::io;
use std::sync::Arc;

use weald_forest::journal::{BlobId, notice};
use zeroize::Zeroizing;

use crate::blob;
use crate::error::Unreadable;
use crate::frame::{HEADER, Kind};
use crate::key_file::KeyEntry;
use crate::medium::Medium;
use crate::place::Place;
use crate::reader::{FrameReader, damaged};
use crate::segments::missing;

/// Reads blobs. What was read around one blob is kept, because it may be the next blob.
pub(crate) struct BlobReader<'a> {
    frames: FrameReader,
    /// Where the journal continues, if a place is the end of its segment.
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
            let wrong = || {
                let what = "it is no part of these erasable bytes. `Settings::skip_damaged_values` and `weald forest --skip-damaged-values` open the forest without them";
                damaged(place, what)
            };
            let frame = self.frames.frame(place);
            let frame = frame.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => missing(place.segment).into(),
                _ => Unreadable::from(error),
            });
            let (header, body) = frame?.ok_or_else(wrong)?;
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

    /// Gives the bytes of many blobs, in the order in which they lie in the journal; none for those without a key, and,
    /// if they are skipped in the medium of this name, for those that are damaged.
    pub(crate) fn read_all(
        &mut self,
        asked: Vec<(BlobId, Option<KeyEntry>)>,
        skipped_in: Option<&str>,
        take: &mut dyn FnMut(BlobId, Option<Vec<u8>>),
    ) -> Result<(), Unreadable> {
        let mut asked = asked;
        asked.sort_unstable_by_key(|(_, entry)| entry.as_ref().map(|entry| entry.at));
        for (id, entry) in asked {
            let read = entry.map(|entry| self.read(id, &entry)).transpose();
            let bytes = match (read, skipped_in) {
                (Err(error), Some(name)) if error.is_lasting() => {
                    let name = name.to_owned();
                    notice(move || {
                        tracing::error!("{name}: an erasable value reads as erased: {error}");
                    });
                    None
                }
                (read, _) => read?,
            };
            take(id, bytes);
        }
        Ok(())
    }
}

/// The longest value for which a part may ask for memory: the check of a part was right, but a program with the
/// key can write any length.
const MOST: usize = 1 << 30;

fn take(mut bytes: Zeroizing<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *bytes)
}
