//! Reads erasable bytes: all parts of a blob, each opened with the blob's key.

use std::sync::Arc;

use weald_forest::journal::BlobId;

use crate::blob;
use crate::error::Unreadable;
use crate::frame::{HEADER, Kind};
use crate::key_file::KeyEntry;
use crate::medium::Medium;
use crate::place::Place;
use crate::reader::{FrameReader, damaged};

/// The bytes of a blob. `go_on` tells where the journal goes on, if a place is the end of its segment.
pub(crate) fn read(
    medium: &Arc<dyn Medium>,
    go_on: &dyn Fn(Place) -> Option<Place>,
    (id, entry): (BlobId, &KeyEntry),
) -> Result<Vec<u8>, Unreadable> {
    let mut frames = FrameReader::for_few(Arc::clone(medium));
    let (mut place, mut bytes, mut part) = (entry.at, Vec::new(), 0);
    loop {
        if let Some(next) = go_on(place) {
            place = next;
        }
        let wrong = || damaged(place, "it is no part of these erasable bytes");
        let (header, body) = frames.frame(place)?.ok_or_else(wrong)?;
        let opened = (header.kind == Kind::Blob)
            .then(|| blob::open((id, &entry.key), part, body))
            .flatten();
        let (opened, left) = opened.ok_or_else(wrong)?;
        bytes.extend_from_slice(&opened);
        if left == 0 {
            return Ok(bytes);
        }
        place = place.plus(HEADER + header.len);
        part += 1;
    }
}
