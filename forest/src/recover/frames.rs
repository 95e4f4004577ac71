//! The bytes of a checkpoint: frames, each with its length in front. Pieces of any length make them up.
//!
//! | frame | |
//! |---|---|
//! | forest | the format, the newest version and its time, the last versions of the openings |
//! | ids | commits whose authors gave them an id, with the digests of what they asked for |
//! | blobs | erasable bytes: their ids, their places, and whether they were erased |
//! | copies | to which attributes references to erasable bytes were copied; written even if there are none, once the forest ever had a reference |
//! | tree | a tree: its number, its name, its first version, the number up to which versions were let go |
//! | tag | a tag of it |
//! | nodes | nodes of its oldest version, by rising ids; several frames |
//! | base | ends these, with the commit of that version |
//! | step | the next version: its commit, and the operations that lead to it |
//! | end | nothing follows |
//!
//! Numbers, texts, nodes and operations are encoded as in a record (`journal/encode.rs`).

use crate::journal::decode::Reader;
use crate::journal::encode::put_bytes;
use crate::journal::{ReadError, RecordError};

/// The format of a checkpoint. In format 1 there were no copies.
pub(super) const FORMAT: u64 = 3;

/// The first format in which each version that a record behind the checkpoint tags is in the checkpoint or behind it.
pub(super) const HAS_TAGGED: u64 = 3;

pub(super) const FOREST: u8 = 1;
pub(super) const IDS: u8 = 2;
pub(super) const BLOBS: u8 = 3;
pub(super) const TREE: u8 = 4;
pub(super) const TAG: u8 = 5;
pub(super) const NODES: u8 = 6;
pub(super) const BASE: u8 = 7;
pub(super) const STEP: u8 = 8;
pub(super) const END: u8 = 9;
pub(super) const COPIES: u8 = 10;

/// Appends a frame.
pub(super) fn put(out: &mut Vec<u8>, frame: &[u8]) {
    put_bytes(out, frame);
}

/// Frames out of pieces.
pub(super) struct Frames<I> {
    pieces: I,
    left: Vec<u8>,
    /// How much of it was read.
    at: usize,
}

/// Why there is no next frame.
pub(super) enum FrameError {
    Read(ReadError),
    Record(RecordError),
}

impl<I: Iterator<Item = Result<Vec<u8>, ReadError>>> Frames<I> {
    pub(super) fn new(pieces: I) -> Self {
        Self {
            pieces,
            left: Vec::new(),
            at: 0,
        }
    }

    /// The next frame. No more memory is taken for it than there are bytes.
    pub(super) fn next(&mut self) -> Result<Vec<u8>, FrameError> {
        loop {
            let mut reader = Reader::new(&self.left[self.at..]);
            if let Ok(frame) = reader.bytes() {
                let frame = frame.to_vec();
                self.at = self.left.len() - reader.left();
                return Ok(frame);
            }
            match self.pieces.next() {
                Some(piece) => {
                    let piece = piece.map_err(FrameError::Read)?;
                    self.left.drain(..self.at);
                    self.at = 0;
                    self.left.extend_from_slice(&piece);
                }
                None => return Err(FrameError::Record(RecordError::Short)),
            }
        }
    }
}
