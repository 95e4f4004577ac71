//! A tree of any shape as JSON text and back, at once or as a stream.
//!
//! A node is `{"attributes": {name: value, …}, "children": [node, …]}`; either may be missing, and
//! attributes come first. A value that is UTF-8 is a string, any other is `{"hex": "00ff"}`. Ids are not
//! written: reading gives a new tree of the same shape. A forest writes three values more:
//! `{"erasable": value}`, which is plain in a tree unless the caller takes it; and `{"erased": "1763780000"}` and
//! `{"elsewhere": "erasable"}`, which have no bytes and are left out.
//!
//! Writing and reading are also streams: [`JsonPieces`] and [`JsonReader`]. Both keep the open nodes in a list of their
//! own, so only memory bounds the depth.

mod error;
mod grammar;
mod read;
mod tokens;
mod write;

pub use error::JsonError;
pub use read::JsonReader;
pub use write::{JsonPieces, write_value};
