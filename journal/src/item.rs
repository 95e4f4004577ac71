//! What is to be written at a place: finished bytes, or a frame of something long, which is not copied.

use crate::blob::Sealing;
use crate::body::LongBody;
use crate::frame::Kind;
use crate::place::Place;

/// Bytes that lie one after the other in one segment.
#[derive(Debug)]
pub(crate) enum Item {
    /// Finished frames.
    Bytes(Place, Vec<u8>),
    /// A frame whose body is a part of these pieces, from the offset on, with this length.
    Frame(Place, Kind, LongBody, (usize, usize)),
    /// A frame with this part of a blob.
    Sealed(Place, Sealing, usize),
}
