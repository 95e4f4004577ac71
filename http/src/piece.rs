//! What hyper gets of a response's body: the frames of the service, and large ones in pieces.
//!
//! Hyper copies what it gets into one buffer, behind the head of the response (`writev(false)`). For the usual small
//! body that is cheaper than a list of buffers, which hyper would make anew for each write. For a large body it is not,
//! and the copy takes memory as long as the client does not read. So:
//! - a large frame goes in pieces of [`PIECE`];
//! - no more than [`AHEAD`] is given between two writes to the socket ([`Pace`]).
//!
//! Called by the response's body, and by the connection, which polls hyper again when a piece waited for a write.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::{Buf, Bytes};

/// The longest piece.
const PIECE: usize = 64 << 10;
/// When this much was given, the next piece waits for a write.
const AHEAD: usize = 64 << 10;

/// A frame, or a part of one.
pub(crate) enum Piece<D> {
    Whole(D),
    Part(Bytes),
}

impl<D: Buf> Buf for Piece<D> {
    fn remaining(&self) -> usize {
        match self {
            Piece::Whole(data) => data.remaining(),
            Piece::Part(part) => part.len(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Piece::Whole(data) => data.chunk(),
            Piece::Part(part) => part,
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Piece::Whole(data) => data.advance(count),
            Piece::Part(part) => part.advance(count),
        }
    }
}

/// Takes the next piece of `data`. Returns the rest too, if there is one.
pub(crate) fn split<D: Buf>(mut data: D) -> (Piece<D>, Option<D>) {
    if data.remaining() <= PIECE {
        return (Piece::Whole(data), None);
    }
    // Of `Bytes` this copies nothing.
    let part = data.copy_to_bytes(PIECE);
    (Piece::Part(part), Some(data))
}

/// How far the bodies of a connection's responses are ahead of its socket. Only the connection's job uses it, so plain
/// stores are enough.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// How much was given since the last write.
    given: AtomicUsize,
    /// Whether a piece waits for a write.
    waits: AtomicBool,
}

impl Pace {
    /// This much is given.
    pub(crate) fn give(&self, bytes: usize) {
        let given = self.given.load(Ordering::Relaxed);
        self.given
            .store(given.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Something was written.
    pub(crate) fn wrote(&self) {
        self.given.store(0, Ordering::Relaxed);
    }

    /// Whether the next piece must wait for a write.
    pub(crate) fn must_wait(&self) -> bool {
        let must_wait = self.given.load(Ordering::Relaxed) >= AHEAD;
        if must_wait {
            self.waits.store(true, Ordering::Relaxed);
        }
        must_wait
    }

    /// Whether a piece has waited since the last call.
    pub(crate) fn has_waited(&self) -> bool {
        let waits = self.waits.load(Ordering::Relaxed);
        if waits {
            self.waits.store(false, Ordering::Relaxed);
        }
        waits
    }
}
