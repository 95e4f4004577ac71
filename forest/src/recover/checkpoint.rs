//! A checkpoint: the forest at one moment, as a stream. The combiner only names the moment. The caller that asks for
//! the pieces does everything else, while others commit.
//!
//! Each tree is its oldest version as a list of nodes, and the operations that lead from each version to the next. So
//! parts that the versions share are written once, and the time grows with the differences.

use std::sync::Arc;

use weald_tree::NodeId;

use super::frames::{BASE, BLOBS, COPIES, END, FOREST, FORMAT, IDS, NODES, STEP, TAG, TREE, put};
use crate::combine::request::{Answer, Moment, Request, TreeMoment};
use crate::combine::submission::Submission;
use crate::content::erasable::Blobs;
use crate::error::CommitError;
use crate::forest::Forest;
use crate::journal::encode::{
    put_bytes, put_nodes, put_number, put_operation, put_time, put_version,
};
use crate::journal::{Checkpoint, CheckpointError};
use crate::state::forest::ForestState;
use crate::state::root::RootRef;
use crate::version::{Committed, Version};

/// How long a piece is at least, except the last.
const PIECE: usize = 64 << 10;

/// How many nodes or commits a frame has at most. The values of its nodes, without those of the last node, are no
/// longer than a piece.
const ITEMS: usize = 1024;

impl Forest {
    /// The whole forest at this moment, for [`Journal::put_checkpoint`](crate::Journal::put_checkpoint): all trees with
    /// the versions that are kept, tags, indexed attributes, erasable values, and the ids of commits. It contains the
    /// records that the journal has accepted, up to [`Checkpoint::at`]. [`Builder::recover`](crate::Builder::recover)
    /// reads it.
    ///
    /// Others commit meanwhile; they are delayed by a look at each tree and each tag. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchPosition`], if there is no journal or no record;
    /// [`CheckpointError::InJournal`], while the journal takes a record; [`CheckpointError::Failed`], if it failed.
    pub fn checkpoint(
        &self,
    ) -> impl Future<Output = Result<Checkpoint, CheckpointError>> + Send + use<> {
        let shared = Arc::clone(&self.0);
        let submission = Submission::new(Arc::clone(&shared), Request::Checkpoint);
        async move {
            let moment = match submission.await {
                Answer::Moment(moment) => moment,
                Answer::Committed(Err(CommitError::Journal(failed)), _) => {
                    return Err(CheckpointError::Failed(failed.to_string()));
                }
                _ => return Err(CheckpointError::InJournal),
            };
            let at = moment.position.ok_or(CheckpointError::NoSuchPosition)?;
            let forest = &shared.forest;
            forget_copies(forest).await;
            let blobs = forest.blobs.all();
            let mut head = Vec::new();
            put_head(&mut head, &moment, &forest.openings);
            put_blobs(&mut head, &forest.blobs);
            let upto = moment.version;
            put_copies(&mut head, &forest.blobs, upto.number);
            let trees = moment.trees.into_iter();
            let trees = trees.flat_map(move |tree| TreePieces::new(tree, upto));
            let mut end = Vec::new();
            put(&mut end, &[END]);
            let pieces = std::iter::once(head).chain(trees).chain([end]);
            Ok(Checkpoint {
                at,
                blobs: blobs.into_iter().map(|(id, ..)| id).collect(),
                pieces: Box::new(pieces),
            })
        }
    }
}

fn put_head(out: &mut Vec<u8>, moment: &Moment, openings: &[Version]) {
    let mut frame = vec![FOREST];
    put_number(&mut frame, FORMAT);
    put_version(&mut frame, moment.version);
    put_time(&mut frame, moment.time);
    put_number(&mut frame, openings.len() as u64);
    openings
        .iter()
        .for_each(|last| put_version(&mut frame, *last));
    put(out, &frame);
    for ids in moment.ids.iter().flat_map(|ids| ids.chunks(ITEMS)) {
        let mut frame = vec![IDS];
        put_number(&mut frame, ids.len() as u64);
        for (commit, digest) in ids {
            put_commit(&mut frame, commit);
            frame.extend_from_slice(&digest.get().to_le_bytes());
        }
        put(out, &frame);
    }
}

fn put_commit(out: &mut Vec<u8>, commit: &Committed) {
    put_version(out, commit.version);
    out.extend_from_slice(&commit.id.0.to_le_bytes());
    put_time(out, commit.time);
}

fn put_blobs(out: &mut Vec<u8>, blobs: &Blobs) {
    for blobs in blobs.all().chunks(ITEMS) {
        let mut frame = vec![BLOBS];
        put_number(&mut frame, blobs.len() as u64);
        for (id, (tree, node, name), erased) in blobs {
            frame.extend_from_slice(&id.0.to_le_bytes());
            put_number(&mut frame, *tree);
            put_number(&mut frame, node.get());
            put_bytes(&mut frame, name.as_bytes());
            put_number(&mut frame, erased.is_some().into());
            if let Some(when) = erased {
                put_time(&mut frame, *when);
            }
        }
        put(out, &frame);
    }
}

/// Copies that later commits have made are left out: if those commits are lost, nothing was copied.
fn put_copies(out: &mut Vec<u8>, blobs: &Blobs, upto: u64) {
    if !blobs.were_used() {
        return;
    }
    let copies = blobs.copies(upto);
    let (some, rest) = copies.split_at(copies.len().min(ITEMS));
    for copies in std::iter::once(some).chain(rest.chunks(ITEMS)) {
        let mut frame = vec![COPIES];
        put_number(&mut frame, copies.len() as u64);
        for (id, (tree, node, name)) in copies {
            frame.extend_from_slice(&id.0.to_le_bytes());
            put_number(&mut frame, *tree);
            put_number(&mut frame, node.get());
            put_bytes(&mut frame, name.as_bytes());
        }
        put(out, &frame);
    }
}

/// Forgets the copies of blobs that the history no longer has.
async fn forget_copies(forest: &ForestState) {
    let Some(journal) = &forest.journal else {
        return;
    };
    for id in forest.blobs.copied_and_gone() {
        if journal.inner.has_blob(id).await == Ok(false) {
            forest.blobs.forget_copies(id);
        }
    }
}

/// The pieces of one tree.
struct TreePieces {
    /// The frames before the nodes, until they were given.
    head: Vec<u8>,
    /// All versions, the oldest first.
    versions: Vec<RootRef>,
    /// How many of them were written, the first when its nodes were.
    written: usize,
    next_node: Option<NodeId>,
}

impl TreePieces {
    fn new(tree: TreeMoment, upto: Version) -> Self {
        let TreeMoment {
            name,
            state,
            newest,
            gone,
            tags,
            coming,
        } = tree;
        let history = state.history();
        let mut versions: Vec<_> = history
            .kept_and_held()
            // Of those before, an earlier checkpoint may hold some, and not all.
            .filter(|root| root.number() > gone && root.version() <= upto)
            .cloned()
            .collect();
        if versions.is_empty() {
            versions.push(newest.clone()); // The forest has fallen back to an earlier one.
        }
        let gone = gone.min(versions[0].number() - 1);
        let lone = tags.values().map(|tagged| tagged.root.clone());
        let lone = lone.chain(coming);
        versions.extend(lone.filter(|root| root.number() <= gone));
        versions.sort_unstable_by_key(|root| root.number());
        versions.dedup_by_key(|root| root.number());
        let mut frame = vec![TREE];
        put_number(&mut frame, state.number);
        put_bytes(&mut frame, name.as_bytes());
        put_version(&mut frame, history.first());
        frame.extend_from_slice(&history.first_commit().0.to_le_bytes());
        put_number(&mut frame, gone);
        put_number(&mut frame, newest.tree.ids().last());
        let mut head = Vec::new();
        put(&mut head, &frame);
        for (tag, tagged) in &tags {
            let mut frame = vec![TAG];
            put_bytes(&mut frame, tag.as_bytes());
            put_version(&mut frame, tagged.given);
            put_number(&mut frame, tagged.root.number());
            put_time(&mut frame, tagged.until());
            put(&mut head, &frame);
        }
        Self {
            head,
            versions,
            written: 0,
            next_node: NodeId::new(1),
        }
    }

    fn put_nodes(&mut self, from: NodeId, out: &mut Vec<u8>) {
        self.next_node = None;
        let (mut nodes, mut bytes) = (Vec::new(), 0);
        for node in self.versions[0].tree.records_from(from) {
            if nodes.len() == ITEMS || bytes >= PIECE {
                self.next_node = Some(node.id);
                break;
            }
            let attributes = node.attributes.iter();
            bytes += attributes
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
            nodes.push(node);
        }
        let mut frame = vec![NODES];
        put_nodes(&mut frame, nodes.len() as u64, nodes.into_iter());
        put(out, &frame);
    }

    fn put_version(&mut self, out: &mut Vec<u8>) {
        let root = &self.versions[self.written];
        let mut frame = vec![if self.written == 0 { BASE } else { STEP }];
        put_commit(&mut frame, &root.commit());
        put_bytes(&mut frame, root.bytes());
        let indexes = root.all_indexes().all();
        put_number(&mut frame, indexes.len() as u64);
        indexes
            .iter()
            .for_each(|index| put_bytes(&mut frame, index.attribute.as_bytes()));
        if let Some(before) = self.written.checked_sub(1) {
            let operations = self.versions[before].tree.operations_to(&root.tree);
            put_number(&mut frame, operations.len() as u64);
            operations
                .iter()
                .for_each(|step| put_operation(&mut frame, step));
        }
        put(out, &frame);
        self.written += 1;
    }
}

impl Iterator for TreePieces {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = std::mem::take(&mut self.head);
        while out.len() < PIECE {
            match self.next_node {
                Some(from) => self.put_nodes(from, &mut out),
                None if self.written < self.versions.len() => self.put_version(&mut out),
                None => break,
            }
        }
        (!out.is_empty()).then_some(out)
    }
}
