//! The state of a forest while it is read back from a checkpoint and the records after it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use weald_tree::{Bytes, Ids, NodeRecord, Operation, Tree};

use super::decoded::Decoded;
use super::error::RecoverError;
use super::frames::{
    BASE, BLOBS, COPIES, END, FOREST, FORMAT, FrameError, Frames, IDS, NODES, STEP, TAG, TREE,
};
use super::happened::{beside, happening};
use super::recovered_tree::{RecoveredTree, Stamp, Step, TagAt};
use crate::combine::commit_ids::CommitIds;
use crate::content::erasable::{BlobId, BlobPlace, Blobs, Referred};
use crate::content::references::{references_in, references_of_tree};
use crate::journal::decode::Reader;
use crate::journal::{Change, Position, RecordError, Stored, StoredCheckpoint};
use crate::state::happenings::HappeningLog;
use crate::state::root::Beside;
use crate::version::{CommitId, Committed, Version};

/// The numbers of tagged versions that the first pass had discarded, for each tree number.
pub(super) type Needed = BTreeMap<u64, BTreeSet<u64>>;

/// Whether one of these has a number in a range.
fn has_one(needed: Option<&BTreeSet<u64>>, numbers: Range<u64>) -> bool {
    !numbers.is_empty() && needed.is_some_and(|needed| needed.range(numbers).next().is_some())
}

pub(super) struct Recovery {
    keep: usize,
    pub(super) needed: Needed,
    /// The trees and versions that tags name, but that were passed already. If there are any, the forest is not
    /// complete.
    pub(super) passed: Vec<(u64, Version)>,
    pub(super) blobs: Arc<Blobs>,
    /// Blobs to which records refer, and which neither the checkpoint nor an earlier record brings: they were brought
    /// back from the history.
    pub(super) brought_back: BTreeSet<BlobId>,
    pub(super) trees: BTreeMap<u64, RecoveredTree>,
    /// The number of the tree of a checkpoint whose versions are being read.
    tree_of_checkpoint: u64,
    /// The format of the checkpoint.
    format: u64,
    /// The newest commit.
    pub(super) last: Version,
    pub(super) time: SystemTime,
    pub(super) position: Option<Position>,
    /// The number of the checkpoint's version; 0, if there was none. It has the ids that its opening had skipped.
    pub(super) checkpoint: u64,
    pub(super) ids: CommitIds,
    /// The last versions of the openings before the one of `last`.
    pub(super) openings: Vec<Version>,
    /// What the records tell of names, tags and erasures.
    pub(super) happenings: HappeningLog,
}

impl Recovery {
    pub(super) fn new(keep: usize, needed: Needed) -> Self {
        let nothing = Version {
            incarnation: 0,
            number: 0,
        };
        Self {
            keep,
            needed,
            passed: Vec::new(),
            blobs: Arc::new(Blobs::to_recover()),
            brought_back: BTreeSet::new(),
            trees: BTreeMap::new(),
            tree_of_checkpoint: 0,
            format: FORMAT,
            last: nothing,
            time: SystemTime::UNIX_EPOCH,
            position: None,
            checkpoint: 0,
            ids: CommitIds::default(),
            openings: Vec::new(),
            happenings: HappeningLog::default(),
        }
    }

    /// Applies one record.
    pub(super) fn replay(&mut self, record: Decoded) -> Result<(), RecoverError> {
        let position = record.position;
        let wrong = |error| RecoverError::Record { position, error };
        let stored = record.stored.map_err(wrong)?;
        let impossible = |what: String| RecoverError::Impossible { position, what };
        if stored.version <= self.last || stored.version.number <= self.last.number {
            let what = format!("version {} comes after {}", stored.version, self.last);
            return Err(impossible(what));
        }
        let changes = match record.changes {
            Some(changes) => changes,
            None => {
                let (trees, blobs) = (&self.trees, &self.blobs);
                let ids = |tree| {
                    trees
                        .get(&tree)
                        .map(|recovered: &RecoveredTree| recovered.ids().clone())
                };
                stored
                    .changes_with(&mut { ids }, Some(&|id| blobs.reference(id)))
                    .map_err(wrong)?
            }
        };
        let beside = beside(&changes);
        for change in changes {
            if let Some(happening) = happening(&change, (&self.trees, stored.version.number)) {
                self.happenings.add(committed(&stored), happening);
            }
            let stamp = Stamp {
                commit: committed(&stored),
                bytes: Bytes::new(&stored.bytes),
                beside: beside.clone(),
            };
            self.change(stamp, change).map_err(impossible)?;
        }
        if self.last.number > 0 && stored.version.incarnation != self.last.incarnation {
            self.openings.push(self.last);
        }
        let commit = committed(&stored);
        (self.last, self.time) = (commit.version, commit.time.max(self.time));
        self.position = Some(position);
        if let Some(digest) = stored.digest {
            self.ids.add(commit, digest);
        }
        Ok(())
    }

    fn change(&mut self, stamp: Stamp, change: Change) -> Result<(), String> {
        let commit = stamp.commit;
        let number = commit.version.number;
        match change {
            Change::Create { name, content } => {
                let first = (commit.version, commit.id);
                self.note((number, number), references_of_tree(&content));
                let recovered = RecoveredTree::new((number, name.into()), first, (content, stamp));
                self.trees.insert(number, recovered);
            }
            Change::Edit {
                tree,
                operations,
                blobs,
            } => {
                for place in blobs {
                    self.blobs.add_absent(tree, place);
                }
                self.note((tree, number), references_in(&operations));
                self.step(tree, (stamp, operations), None)?;
            }
            Change::AddIndex { tree, attribute } => {
                let mut indexed = self.recovered(tree)?.indexed().to_vec();
                indexed.push(attribute);
                self.step(tree, (stamp, Vec::new()), Some(indexed))?;
            }
            Change::DropIndex { tree, attribute } => {
                let mut indexed = self.recovered(tree)?.indexed().to_vec();
                indexed.retain(|known| *known != attribute);
                self.step(tree, (stamp, Vec::new()), Some(indexed))?;
            }
            Change::Rename { tree, name } => self.recovered(tree)?.name = name.into(),
            Change::Delete { tree } => {
                self.recovered(tree)?;
                self.trees.remove(&tree);
            }
            Change::Erase(erasure) => drop(self.blobs.erase(&erasure, commit.time)),
            Change::Tag { tree, tag, version } => {
                if !self.recovered(tree)?.tag(&tag, version, commit.time) {
                    self.passed.push((tree, version));
                }
            }
            Change::Untag { tree, tag } => self.recovered(tree)?.untag(&tag),
        }
        Ok(())
    }

    /// References that a record brought to a tree.
    fn note(&mut self, tree: (u64, u64), references: Vec<Referred>) {
        if !references.is_empty() {
            let ids = references.iter().map(|(.., id)| *id);
            self.brought_back.extend(self.blobs.without_shelf(ids));
            self.blobs.note(tree, references);
        }
    }

    fn recovered(&mut self, tree: u64) -> Result<&mut RecoveredTree, String> {
        self.trees.get_mut(&tree).ok_or_else(|| unknown(tree))
    }

    fn step(
        &mut self,
        tree: u64,
        (stamp, operations): (Stamp, Vec<Operation>),
        indexed: Option<Vec<String>>,
    ) -> Result<(), String> {
        let (keep, needed) = (self.keep, self.needed.get(&tree));
        let is_needed = |number, next| has_one(needed, number..next);
        let step = Step {
            stamp,
            operations,
            indexed: indexed.map(Arc::new),
        };
        let recovered = self.trees.get_mut(&tree).ok_or_else(|| unknown(tree))?;
        let added = recovered.add(step, keep, &is_needed);
        added.map_err(|error| error.to_string())
    }

    /// Begins with a checkpoint.
    pub(super) fn read(&mut self, checkpoint: StoredCheckpoint) -> Result<(), RecoverError> {
        let at = checkpoint.at;
        let read = self.read_frames(Frames::new(checkpoint.pieces));
        read.map_err(|error| match error {
            FrameError::Read(error) => RecoverError::Read(error),
            FrameError::Record(error) => RecoverError::Checkpoint(error),
        })?;
        (self.position, self.checkpoint) = (Some(at), self.last.number);
        self.happenings.begin_after(self.last);
        Ok(())
    }

    fn read_frames<I>(&mut self, mut frames: Frames<I>) -> Result<(), FrameError>
    where
        I: Iterator<Item = Result<Vec<u8>, crate::journal::ReadError>>,
    {
        let mut tree: Option<TreeHead> = None;
        loop {
            let frame = frames.next()?;
            let Some((kind, rest)) = frame.split_first() else {
                return Err(FrameError::Record(RecordError::Short));
            };
            if *kind == END {
                return Ok(());
            }
            self.read_frame((*kind, rest), &mut tree)
                .map_err(FrameError::Record)?;
        }
    }

    fn read_frame(
        &mut self,
        (kind, rest): (u8, &[u8]),
        tree: &mut Option<TreeHead>,
    ) -> Result<(), RecordError> {
        let blobs = Arc::clone(&self.blobs);
        let refer = |id| blobs.reference(id);
        let mut reader = Reader::with_references(rest, &refer);
        match kind {
            FOREST => self.read_forest(&mut reader),
            IDS => {
                let ids = reader.list(|reader| Ok((read_commit(reader)?, reader.digest()?)))?;
                for (commit, digest) in ids {
                    self.ids.add(commit, digest);
                }
                Ok(())
            }
            BLOBS => {
                reader.list(|reader| self.read_blob(reader))?;
                Ok(())
            }
            COPIES => {
                self.blobs.note_use();
                reader.list(|reader| self.read_copy(reader))?;
                Ok(())
            }
            TREE => {
                *tree = Some(TreeHead::read(&mut reader)?);
                Ok(())
            }
            TAG => {
                let tag = reader.text()?.to_owned();
                let at = TagAt {
                    given: reader.version()?,
                    number: reader.number()?,
                    until: reader.time()?,
                };
                let tree = tree.as_mut().ok_or(RecordError::Invalid("a tag"))?;
                tree.tags.push((tag, at));
                Ok(())
            }
            NODES => {
                let tree = tree
                    .as_mut()
                    .ok_or(RecordError::Invalid("a list of nodes"))?;
                tree.nodes.extend(reader.nodes()?);
                Ok(())
            }
            BASE => {
                let tree = tree.take().ok_or(RecordError::Invalid("a tree"))?;
                let (stamp, indexed) = read_stamp(&mut reader)?;
                let (recovered, references) = tree.begin(self.format, (stamp, indexed))?;
                self.blobs
                    .note((recovered.number, self.last.number), references);
                self.tree_of_checkpoint = recovered.number;
                self.trees.insert(recovered.number, recovered);
                Ok(())
            }
            STEP => self.read_step(&mut reader),
            _ => Err(RecordError::Invalid("a kind of frame")),
        }
    }

    /// The newest version that a checkpoint contains, and its time.
    pub(super) fn newest_in(
        checkpoint: StoredCheckpoint,
    ) -> Result<(Version, SystemTime), FrameError> {
        let frame = Frames::new(checkpoint.pieces).next()?;
        let mut recovery = Recovery::new(1, Needed::new());
        match frame.split_first() {
            Some((&FOREST, rest)) => recovery
                .read_forest(&mut Reader::new(rest))
                .map_err(FrameError::Record)?,
            _ => return Err(FrameError::Record(RecordError::Invalid("a first frame"))),
        }
        Ok((recovery.last, recovery.time))
    }

    fn read_forest(&mut self, reader: &mut Reader<'_>) -> Result<(), RecordError> {
        self.format = reader.number()?;
        if !(1..=FORMAT).contains(&self.format) {
            return Err(RecordError::Invalid("a format"));
        }
        (self.last, self.time) = (reader.version()?, reader.time()?);
        self.openings = reader.list(Reader::version)?;
        Ok(())
    }

    fn read_blob(&self, reader: &mut Reader<'_>) -> Result<(), RecordError> {
        let id = reader.blob_id()?;
        let (tree, node) = (reader.number()?, reader.node()?);
        let name = reader.text()?.into();
        self.blobs.add_absent(tree, BlobPlace { id, node, name });
        if reader.number()? > 0 {
            self.blobs.set_erased(id, reader.time()?);
        }
        Ok(())
    }

    fn read_copy(&self, reader: &mut Reader<'_>) -> Result<(), RecordError> {
        let id = reader.blob_id()?;
        let place = (reader.number()?, reader.node()?, reader.text()?.into());
        self.blobs.add_copy((id, place), self.last.number);
        Ok(())
    }

    /// The next version of the tree that was begun last.
    fn read_step(&mut self, reader: &mut Reader<'_>) -> Result<(), RecordError> {
        let keep = self.keep;
        let none = RecordError::Invalid("a version");
        let number = self.tree_of_checkpoint;
        let Some(recovered) = self.trees.get_mut(&number) else {
            return Err(none);
        };
        let tree_ids = recovered.ids().clone();
        let (stamp, indexed) = read_stamp(reader)?;
        let ids = |_| Some(tree_ids.clone());
        let operations = reader.list(|reader| reader.operation(number, &mut { ids }))?;
        self.blobs
            .note((number, self.last.number), references_in(&operations));
        let step = Step {
            stamp,
            operations,
            indexed: Some(Arc::new(indexed)),
        };
        let needed = self.needed.get(&number);
        let is_needed = |number, next| has_one(needed, number..next);
        recovered.add(step, keep, &is_needed).map_err(|_| none)
    }
}

/// A tree of a checkpoint before its first version.
struct TreeHead {
    number: u64,
    name: Arc<str>,
    first: (Version, CommitId),
    gone: u64,
    ids: u64,
    tags: Vec<(String, TagAt)>,
    nodes: Vec<NodeRecord>,
}

impl TreeHead {
    fn read(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            number: reader.number()?,
            name: reader.text()?.into(),
            first: (reader.version()?, reader.commit_id()?),
            gone: reader.number()?,
            ids: reader.last_id()?,
            tags: Vec::new(),
            nodes: Vec::new(),
        })
    }

    fn begin(
        self,
        format: u64,
        (stamp, indexed): (Stamp, Vec<String>),
    ) -> Result<(RecoveredTree, Vec<Referred>), RecordError> {
        let tree = Tree::from_records(Ids::above(self.ids), self.nodes)?;
        let references = references_of_tree(&tree);
        let mut recovered = RecoveredTree::new((self.number, self.name), self.first, (tree, stamp));
        recovered.set(format, (self.gone, Arc::new(indexed)));
        for (tag, at) in self.tags {
            recovered.put_tag(&tag, at);
        }
        Ok((recovered, references))
    }
}

fn unknown(tree: u64) -> String {
    format!("there is no tree {tree}")
}

fn committed(stored: &Stored) -> Committed {
    Committed {
        id: stored.id,
        version: stored.version,
        time: stored.time,
    }
}

fn read_commit(reader: &mut Reader<'_>) -> Result<Committed, RecordError> {
    Ok(Committed {
        version: reader.version()?,
        id: reader.commit_id()?,
        time: reader.time()?,
    })
}

fn read_stamp(reader: &mut Reader<'_>) -> Result<(Stamp, Vec<String>), RecordError> {
    let stamp = Stamp {
        commit: read_commit(reader)?,
        bytes: Bytes::new(reader.bytes()?),
        beside: Some(Arc::new(Beside::Unknown)),
    };
    let indexed = reader.list(|reader| reader.text().map(str::to_owned))?;
    Ok((stamp, indexed))
}
