//! The persistent tree: nodes with attributes and ordered children, in versions that never change.
//!
#![doc = include_str!("page.md")]
// To follow an edit, read `edit` → `insert_position` → `apply` → `radix`; to follow a walk, read `walk` → `siblings`.
// A child that follows the last one under the same parent needs no search, and its parent lists it later (`newest`;
// 0058).
// JSON and XML become trees and come back (`document`, `json`, `xml`; 0039).
//
// A merge: an edit leaves a list of its operations and reads, as data (`operation`, `script`). If a newer version is
// unchanged where the edit looked, the operations are applied there. Siblings are ordered by keys that never change
// (`key`). Ids come from one counter for all versions and edits of a tree (`id`), so nodes that concurrent edits create
// have different ids. The leaves of the map (`radix`) hold the records of sixteen consecutive ids; leaves and branches
// are blocks of the crate `memory` (`shared`, `cells`). Walks are quick because of `shape` and `prefetch`. A version
// can be turned into a list of records and back; in that form it is stored (`records`). The methods of `Tree` and
// `Node` are in the files of what they do: `Tree::edit` is in `edit`, `Node::preorder` in `walk`.
//
// Each group of modules below is a layer: a file imports only from its own layer and the layers above it in this list.
#![forbid(unsafe_code)]

// Ids, bytes in place, and the shape of a leaf.
mod id;
mod inline;
mod shape;

// What one record holds: attributes, children, and an order key.
mod attributes;
mod bytes;
mod children;
mod key;
mod rope;

// A version: the map from ids to records.
mod branch;
mod leaf;
mod loose;
mod radix;
mod record;
mod tree;

// Reading one version, and comparing two.
mod census;
mod climb;
mod diff;
mod draw;
mod node;
mod outline;
mod path;
mod prefetch;
mod siblings;
pub mod value;
mod walk;

// Subtrees that are in no version yet, built or read from text.
mod builder;
pub mod document;
mod json;
mod records;
mod subtree;
pub mod xml;

// Operations as data, and their application to a version.
mod apply;
mod error;
mod insert_position;
mod operation;
mod steps;

// An edit, and what it leaves for other versions.
mod deferred;
mod edit;
mod newest;
mod replay;
mod script;

// The way from one version to another, as operations.
mod difference;

pub use attributes::Attributes;
pub use builder::Builder;
pub use bytes::Bytes;
pub use census::Census;
pub use climb::Climb;
pub use diff::{Change, Diff};
pub use document::{DocumentError, DocumentPieces, DocumentReader, NotADocument};
pub use draw::shown;
pub use edit::Edit;
pub use error::EditError;
pub use id::{Ids, NodeId, NotANodeId};
pub use json::{JsonError, JsonPieces, JsonReader, write_value};
pub use key::OrderKey;
pub use node::Node;
pub use operation::{Operation, Target, Where};
pub use outline::Outline;
pub use path::{Path, PathError};
pub use records::{NodeRecord, RecordsError};
pub use replay::Replay;
pub use script::{Read, Script};
pub use siblings::Siblings;
pub use subtree::Subtree;
pub use tree::Tree;
pub use value::{Sortable, ValueError};
pub use walk::{BreadthFirst, Postorder, Preorder};
pub use xml::{NotXml, XmlError, XmlPieces, XmlReader};
// Versions are made of its blocks.
pub use weald_memory::trim;
