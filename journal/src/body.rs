//! A record that waits for its place, with the frames that precede it: those of its blobs, and those of its erasures.
//! Long bytes are shared with the author, and not copied.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use weald_forest::journal::{BlobId, Erasure, Record};

use crate::blob::{self, Sealing};
use crate::key_file::entry_len;

/// How much of the last segment that is prepared a record may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// What erasing does not need when the disk is full.
    Most,
    /// All of it: the record erases.
    All,
}

/// The bytes of a long record.
pub(crate) type LongBody = Arc<Vec<Arc<Vec<u8>>>>;

/// The part of a long record, as slices.
pub(crate) fn slices(
    body: &LongBody,
    (from, len): (usize, usize),
) -> impl Iterator<Item = &[u8]> + Clone {
    let mut at = 0;
    let begins = body.iter().map(move |piece| {
        let begin = at;
        at += piece.len();
        (begin, piece)
    });
    begins.filter_map(move |(begin, piece)| {
        let start = from.max(begin);
        let end = (from + len).min(begin + piece.len());
        (start < end).then(|| &piece[start - begin..end - begin])
    })
}

/// A record in a form that can wait, with what comes before it.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) blobs: Vec<Sealing>,
    erasure: Option<Erasure>,
    pub(crate) record: RecordBody,
}

#[derive(Clone, Debug)]
pub(crate) enum RecordBody {
    Short(Vec<u8>),
    Long(LongBody, usize),
}

impl Body {
    /// No frame has a body of more than `most` bytes, and no record of more than `short` is copied. Blobs that their
    /// author has sealed are taken from `sealed`.
    pub(crate) fn of(
        record: &Record<'_>,
        (short, most): (usize, usize),
        sealed: &mut HashMap<BlobId, Sealing>,
    ) -> io::Result<Self> {
        let len = record.len();
        let mut bytes = Vec::new();
        let blobs = record
            .blobs
            .iter()
            .map(|blob| match sealed.remove(&blob.id) {
                Some(sealing) => Ok(sealing),
                None => Sealing::new(blob, most),
            });
        let (blobs, erasure) = (blobs.collect::<io::Result<_>>()?, record.erases.cloned());
        let record = if len <= short {
            record.write(&mut bytes);
            RecordBody::Short(bytes)
        } else {
            record.write_head(&mut bytes);
            let pieces = std::iter::once(Arc::new(bytes)).chain(record.changes.iter().cloned());
            RecordBody::Long(Arc::new(pieces.collect()), len)
        };
        Ok(Self {
            blobs,
            erasure,
            record,
        })
    }

    pub(crate) fn share(&self) -> Share {
        match self.erasure {
            Some(_) => Share::All,
            None => Share::Most,
        }
    }

    /// What the keys of its blobs need in the key file.
    pub(crate) fn keys_len(&self) -> u64 {
        keys_len(self.blobs.iter())
    }
}

/// What the keys of blobs need in the key file.
pub(crate) fn keys_len<'a>(blobs: impl Iterator<Item = &'a Sealing>) -> u64 {
    blobs.map(|sealing| entry_len(&sealing.blob.name)).sum()
}

/// A frame that comes before a record.
pub(crate) enum Before<'a> {
    Sealed(&'a Sealing, usize),
    /// With what it erases, if it is the last one of these.
    Erasure(Option<&'a Erasure>, Vec<u8>),
}

/// Which frames come before a record, and how long their bodies are: at most `most`.
pub(crate) fn frames_before(body: &Body, most: usize) -> Vec<(Before<'_>, usize)> {
    let mut frames = Vec::new();
    for sealing in &body.blobs {
        let parts = 0..sealing.parts();
        frames.extend(parts.map(|part| (Before::Sealed(sealing, part), sealing.body_len(part))));
    }
    if let Some(erasure) = &body.erasure {
        let mut bodies = blob::write_erasure(erasure, most).into_iter().peekable();
        while let Some(bytes) = bodies.next() {
            let len = bytes.len();
            let is_last = bodies.peek().is_none();
            frames.push((Before::Erasure(is_last.then_some(erasure), bytes), len));
        }
    }
    frames
}
