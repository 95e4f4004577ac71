//! A JSON document, as the world writes it, as a tree and back; at once or as a stream.
//!
//! Each value is a node. Its attributes are
//!
//! | attribute | what it is |
//! |---|---|
//! | `type` | `object`, `array`, `string`, `number`, `boolean` or `null` |
//! | `value` | of a string its text, of a number and a boolean what the document has, character by character |
//! | `key` | of a member of an object its name |
//!
//! So every document comes back as it was, except for the space between its parts and the way in which its strings are
//! escaped: numbers keep their digits, members keep their order, half a surrogate pair (`"\ud800"`) stays half a pair,
//! and a name that comes twice comes twice again. A tree of any shape is written by
//! [`Node::to_json`](crate::Node::to_json) instead.
//!
//! Reader and writer keep the open values in a list of their own, so only memory bounds the depth.

mod kind;
mod number;
mod read;
mod text;
mod write;

pub use read::{DocumentError, DocumentReader};
pub use write::{DocumentPieces, NotADocument};
