//! Reads what `encode.rs` writes. The bytes come from a medium, so nothing in them is believed. Whatever they
//! are, the result is a list of changes or an error, and takes no more memory than the bytes justify.

use std::time::{Duration, SystemTime};

use weald_tree::{
    Attributes, Bytes, Ids, NodeId, NodeRecord, Operation, OrderKey, Subtree, Target, Tree, Where,
};

use super::encode::{change, operation};
use super::record::{Change, Digest, RecordError, Stored};
use crate::content::erasable::{BlobId, BlobPlace, Erasure, referred};
use crate::version::{CommitId, Version};

/// The most ids that a source gives out.
const IDS: u64 = 1 << 62;

impl Stored {
    /// Reads a record.
    ///
    /// # Errors
    /// [`RecordError`], if the bytes before the changes are not those of a record.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader::new(bytes);
        let (stored, bytes) = Self::head(&mut reader)?;
        Ok(Self {
            bytes: bytes.to_vec(),
            changes: reader.bytes.to_vec(),
            ..stored
        })
    }

    /// Which commit a record is of, without a copy of anything in it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn commit(bytes: &[u8]) -> Result<(Version, CommitId), RecordError> {
        let (stored, _) = Self::head(&mut Reader::new(bytes))?;
        Ok((stored.version, stored.id))
    }

    /// What precedes the changes, without the author's bytes, which are returned beside it.
    fn head<'a>(reader: &mut Reader<'a>) -> Result<(Self, &'a [u8]), RecordError> {
        let incarnation = u64::from_le_bytes(reader.array()?);
        let number = u64::from_le_bytes(reader.array()?);
        let id = CommitId(u128::from_le_bytes(reader.array()?));
        let time = reader.time()?;
        let digest = Digest::new(u64::from_le_bytes(reader.array()?));
        let bytes = reader.bytes()?;
        let version = Version {
            incarnation,
            number,
        };
        let stored = Self {
            version,
            id,
            time,
            digest,
            bytes: Vec::new(),
            changes: Vec::new(),
        };
        Ok((stored, bytes))
    }

    /// What it changes. `ids` returns the id source of a tree, into which spliced nodes are read.
    ///
    /// # Errors
    /// [`RecordError`], if its bytes are no list of changes.
    pub fn changes(
        &self,
        ids: &mut dyn FnMut(u64) -> Option<Ids>,
    ) -> Result<Vec<Change>, RecordError> {
        self.changes_with(ids, None)
    }

    /// What it changes, with references to erasable bytes.
    pub(crate) fn changes_with(
        &self,
        ids: &mut dyn FnMut(u64) -> Option<Ids>,
        refer: Option<Refer<'_>>,
    ) -> Result<Vec<Change>, RecordError> {
        let bytes = &self.changes[..];
        let mut reader = Reader { bytes, refer };
        let mut all = Vec::new();
        while !reader.bytes.is_empty() {
            all.push(reader.change(ids)?);
        }
        Ok(all)
    }
}

fn time_at(seconds: i64, nanoseconds: u32) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(whole)?,
        _ => SystemTime::UNIX_EPOCH.checked_sub(whole)?,
    };
    if nanoseconds >= 1_000_000_000 {
        return None;
    }
    time.checked_add(Duration::from_nanos(nanoseconds.into()))
}

/// The value that refers to erasable bytes.
pub(crate) type Refer<'a> = &'a dyn Fn(BlobId) -> Bytes;

/// The bytes that are left.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Makes the references; if there is none, references stay plain bytes.
    refer: Option<Refer<'a>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, refer: None }
    }

    pub(crate) fn with_references(bytes: &'a [u8], refer: Refer<'a>) -> Self {
        let refer = Some(refer);
        Self { bytes, refer }
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    fn reference(&self, value: &[u8]) -> Option<Bytes> {
        Some((self.refer?)(referred(value)?))
    }

    pub(crate) fn time(&mut self) -> Result<SystemTime, RecordError> {
        let seconds = i64::from_le_bytes(self.array()?);
        let nanoseconds = u32::from_le_bytes(self.array()?);
        time_at(seconds, nanoseconds).ok_or(RecordError::Invalid("a time"))
    }

    pub(crate) fn digest(&mut self) -> Result<Digest, RecordError> {
        let digest = Digest::new(u64::from_le_bytes(self.array()?));
        digest.ok_or(RecordError::Invalid("a digest"))
    }

    pub(crate) fn commit_id(&mut self) -> Result<CommitId, RecordError> {
        Ok(CommitId(u128::from_le_bytes(self.array()?)))
    }

    /// The last id that a source has given out.
    pub(crate) fn last_id(&mut self) -> Result<u64, RecordError> {
        let last = self.number()?;
        (last < IDS)
            .then_some(last)
            .ok_or(RecordError::Invalid("an id"))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let (taken, left) = self.bytes.split_at_checked(len).ok_or(RecordError::Short)?;
        self.bytes = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| RecordError::Short)
    }

    pub(crate) fn number(&mut self) -> Result<u64, RecordError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits || byte == 0 && shift > 0 {
                break; // It is too large, or could be shorter.
            }
            number |= bits << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(RecordError::Invalid("a number"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let len = usize::try_from(self.number()?).map_err(|_| RecordError::Short)?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, RecordError> {
        str::from_utf8(self.bytes()?).map_err(|_| RecordError::Invalid("a text"))
    }

    pub(crate) fn node(&mut self) -> Result<NodeId, RecordError> {
        NodeId::new(self.number()?).ok_or(RecordError::Invalid("a node"))
    }

    /// The items of a list. Each takes a byte at least, so a length beyond the bytes is not believed.
    pub(crate) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let len = usize::try_from(self.number()?).map_err(|_| RecordError::Short)?;
        if len > self.bytes.len() {
            return Err(RecordError::Short);
        }
        (0..len).map(|_| item(self)).collect()
    }

    pub(crate) fn version(&mut self) -> Result<Version, RecordError> {
        Ok(Version {
            incarnation: self.number()?,
            number: self.number()?,
        })
    }

    fn change(&mut self, ids: &mut dyn FnMut(u64) -> Option<Ids>) -> Result<Change, RecordError> {
        let [kind] = self.array()?;
        if kind == change::CREATE {
            let name = self.text()?.to_owned();
            let last = self.last_id()?;
            let content = Tree::from_records(Ids::above(last), self.nodes()?)?;
            return Ok(Change::Create { name, content });
        }
        let tree = self.number()?;
        let text = |text: &str| text.to_owned();
        Ok(match kind {
            change::EDIT => Change::Edit {
                tree,
                operations: self.list(|reader| reader.operation(tree, ids))?,
                blobs: self.list(Self::blob)?,
            },
            change::RENAME => Change::Rename {
                tree,
                name: self.text().map(text)?,
            },
            change::DELETE => Change::Delete { tree },
            change::ADD_INDEX => Change::AddIndex {
                tree,
                attribute: self.text().map(text)?,
            },
            change::DROP_INDEX => Change::DropIndex {
                tree,
                attribute: self.text().map(text)?,
            },
            change::ERASE => Change::Erase(Erasure {
                place: (tree, self.node()?, self.text()?.into()),
                ids: self.list(Self::blob_id)?,
            }),
            change::TAG => Change::Tag {
                tree,
                tag: self.text().map(text)?,
                version: self.version()?,
            },
            change::UNTAG => Change::Untag {
                tree,
                tag: self.text().map(text)?,
            },
            _ => return Err(RecordError::Invalid("a kind of change")),
        })
    }

    pub(crate) fn operation(
        &mut self,
        tree: u64,
        ids: &mut dyn FnMut(u64) -> Option<Ids>,
    ) -> Result<Operation, RecordError> {
        let [kind] = self.array()?;
        if kind == operation::SPLICE {
            let target = self.target()?;
            let ids = ids(tree).ok_or(RecordError::UnknownTree(tree))?;
            let subtree = Subtree::recovered(&ids, self.nodes()?)?;
            return Ok(Operation::Splice { subtree, target });
        }
        let node = self.node()?;
        Ok(match kind {
            operation::ADD => Operation::Add {
                node,
                target: self.target()?,
                attributes: self.attributes()?,
            },
            operation::MOVE => Operation::Move {
                node,
                target: self.target()?,
            },
            operation::DELETE => Operation::Delete { node },
            operation::PUT => Operation::PutAttribute {
                node,
                name: Bytes::from(self.text()?),
                value: self.value()?,
            },
            operation::UNPUT => Operation::DeleteAttribute {
                node,
                name: Bytes::from(self.text()?),
            },
            operation::REPLACE_ROOT => Operation::ReplaceRoot {
                node,
                attributes: self.attributes()?,
            },
            operation::POP_ROOT => Operation::PopRoot { node },
            operation::PUSH_ROOT => Operation::PushRoot {
                node,
                attributes: self.attributes()?,
            },
            _ => return Err(RecordError::Invalid("a kind of operation")),
        })
    }

    fn target(&mut self) -> Result<Target, RecordError> {
        let parent = self.node()?;
        Ok(Target {
            at: Where::Last(parent),
            parent,
            key: self.key()?,
        })
    }

    fn key(&mut self) -> Result<OrderKey, RecordError> {
        let words = self.list(Self::number)?;
        OrderKey::from_words(&words).ok_or(RecordError::Invalid("an order key"))
    }

    fn attributes(&mut self) -> Result<Attributes, RecordError> {
        let pairs = self.list(|reader| Ok((reader.text()?, reader.bytes()?)))?;
        if !pairs.is_sorted_by(|one, other| one.0 < other.0) {
            return Err(RecordError::Invalid("a list of attributes"));
        }
        let plain: Attributes = pairs.iter().copied().collect();
        let references = pairs.iter().filter_map(|(name, value)| {
            let reference = self.reference(value)?;
            Some((*name, reference))
        });
        let with =
            |all: Attributes, (name, reference): (&str, Bytes)| all.with_bytes(name, &reference);
        Ok(references.fold(plain, with))
    }

    fn value(&mut self) -> Result<Bytes, RecordError> {
        let value = self.bytes()?;
        Ok(self.reference(value).unwrap_or_else(|| Bytes::from(value)))
    }

    pub(crate) fn nodes(&mut self) -> Result<Vec<NodeRecord>, RecordError> {
        let mut last = 0_u64;
        self.list(|reader| {
            let id = last.checked_add(reader.number()?).and_then(NodeId::new);
            let id = id.ok_or(RecordError::Invalid("a node"))?;
            last = id.get();
            Ok(NodeRecord {
                id,
                parent: NodeId::new(reader.number()?),
                key: reader.key()?,
                attributes: reader.attributes()?,
            })
        })
    }

    pub(crate) fn blob_id(&mut self) -> Result<BlobId, RecordError> {
        Ok(BlobId(u128::from_le_bytes(self.array()?)))
    }

    fn blob(&mut self) -> Result<BlobPlace, RecordError> {
        Ok(BlobPlace {
            id: self.blob_id()?,
            node: self.node()?,
            name: self.text()?.into(),
        })
    }
}
