//! An XML document as a tree and back, at once or as a stream.
//!
//! Each part is a node. The attribute whose name begins with `#` says what the part is; no attribute of XML has such a
//! name.
//!
//! | attribute | the node is | the attribute has |
//! |---|---|---|
//! | `#document` | the document: the root of the tree | what is in the declaration, such as `version="1.0"`; or nothing |
//! | `#element` | an element, whose other attributes are those of the element | its name |
//! | `#text`, `#cdata` | text | the text, with references resolved |
//! | `#comment` | a comment | its text |
//! | `#instruction` | a processing instruction | its target and its data |
//!
//! So a document comes back as what it means, and read again it is the same tree. What has no meaning in XML is lost:
//! the order of the attributes of an element, the space in its tags, which quotes and references were written, and
//! whether an empty element had one tag or two. Ends of lines become `\n`, as XML demands. Of texts that an edit puts
//! side by side one comes back, and none of an empty one.
//!
//! - *Space* is kept, all of it: only a schema says which of it counts.
//! - *Prefixes* of namespaces are parts of names. What they stand for is declared by attributes above (`xmlns:x`), so a
//!   node that moves to another document may need the declaration there.
//! - *A document type* is refused (`<!DOCTYPE`), and so is every reference to an entity that one would declare: what
//!   such an entity stands for can be as large as an attacker likes.
//! - The text is UTF-8; a declaration of another encoding is refused.
//!
//! Reader and writer keep the open elements in a list of their own, so only memory bounds the depth.

mod characters;
mod part;
mod read;
mod tag;
mod write;

pub use read::{XmlError, XmlReader};
pub use write::{NotXml, XmlPieces};
