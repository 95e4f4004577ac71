//! The state of one tree while a forest is recovered. Its records are applied in place to one working version, the
//! base, which stays behind the newest by as many versions as are to be kept. Only these, and the tagged ones,
//! become versions.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use weald_tree::{Bytes, EditError, Ids, Operation, Replay, Tree};

use super::frames::{FORMAT, HAS_TAGGED};
use crate::content::index::{Index, Indexes};
use crate::state::history::{History, Tagged, just_before};
use crate::state::root::{Beside, Root, RootRef};
use crate::version::{CommitId, Committed, Version};

/// A commit, with its author's bytes.
#[derive(Clone)]
pub(super) struct Stamp {
    pub(super) commit: Committed,
    pub(super) bytes: Bytes,
    /// As in a root.
    pub(super) beside: Option<Arc<Beside>>,
}

/// What a commit did to a tree.
pub(super) struct Step {
    pub(super) stamp: Stamp,
    pub(super) operations: Vec<Operation>,
    /// The indexed attributes, if the commit changed them.
    pub(super) indexed: Option<Arc<Vec<String>>>,
}

/// A tag: the version of the forest that has it, the number of the tree's own version, and the last time at which the
/// tree is known to have had that version.
pub(super) struct TagAt {
    pub(super) given: Version,
    pub(super) number: u64,
    pub(super) until: SystemTime,
}

pub(super) struct RecoveredTree {
    pub(super) number: u64,
    pub(super) name: Arc<str>,
    first: (Version, CommitId),
    ids: Ids,
    base: Replay,
    base_stamp: Stamp,
    indexed: Arc<Vec<String>>,
    /// What came after the base.
    pending: VecDeque<Step>,
    tags: BTreeMap<Arc<str>, TagAt>,
    /// No tag speaks for a later time.
    latest: Option<SystemTime>,
    /// How many tags a version has, by its number.
    tagged: HashMap<u64, usize>,
    /// Versions before the base that a tag names, or that a later record will tag.
    lone: BTreeMap<u64, Lone>,
    /// The number of the newest version that was let go.
    gone: u64,
    /// Before this number, versions may be missing between those that a checkpoint has.
    gaps_before: u64,
    /// The format of that checkpoint.
    format: u64,
}

struct Lone {
    stamp: Stamp,
    tree: Tree,
    indexed: Arc<Vec<String>>,
    /// The commit after it.
    next: Committed,
}

impl RecoveredTree {
    /// A tree that begins with a version.
    pub(super) fn new(
        (number, name): (u64, Arc<str>),
        first: (Version, CommitId),
        (tree, stamp): (Tree, Stamp),
    ) -> Self {
        Self {
            number,
            name,
            first,
            ids: tree.ids().clone(),
            base: Replay::from(tree.numbered(number)),
            base_stamp: stamp,
            indexed: Arc::default(),
            pending: VecDeque::new(),
            tags: BTreeMap::new(),
            latest: None,
            tagged: HashMap::new(),
            lone: BTreeMap::new(),
            gone: 0,
            gaps_before: 0,
            format: FORMAT,
        }
    }

    /// Sets what a checkpoint knows besides the versions.
    pub(super) fn set(&mut self, format: u64, (gone, indexed): (u64, Arc<Vec<String>>)) {
        self.format = format;
        (self.gone, self.gaps_before, self.indexed) = (gone, gone, indexed);
    }

    pub(super) fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The number of the newest version.
    pub(super) fn newest(&self) -> u64 {
        let newest = self.pending.back().map(|step| &step.stamp);
        newest.unwrap_or(&self.base_stamp).commit.version.number
    }

    /// The indexed attributes of the newest version.
    pub(super) fn indexed(&self) -> Arc<Vec<String>> {
        let changed = self
            .pending
            .iter()
            .rev()
            .find_map(|step| step.indexed.clone());
        changed.unwrap_or_else(|| Arc::clone(&self.indexed))
    }

    /// Applies one commit. `is_needed` tells which versions to keep besides the newest `keep` and the tagged ones; it
    /// is called with the number of a version and that of the next one.
    pub(super) fn add(
        &mut self,
        step: Step,
        keep: usize,
        is_needed: &dyn Fn(u64, u64) -> bool,
    ) -> Result<(), EditError> {
        // As the history does it.
        let time = step.stamp.commit.time;
        if self.latest == Some(time) {
            for tag in self.tags.values_mut() {
                tag.until = tag.until.min(just_before(time));
            }
            self.latest = Some(just_before(time));
        }
        self.pending.push_back(step);
        while self.pending.len() >= keep.max(1) {
            self.pass(is_needed)?;
        }
        Ok(())
    }

    /// Lets the base go, and takes the next version as the base.
    fn pass(&mut self, is_needed: &dyn Fn(u64, u64) -> bool) -> Result<(), EditError> {
        let Some(step) = self.pending.pop_front() else {
            return Ok(());
        };
        let (number, next) = (self.base_number(), step.stamp.commit);
        if self.tagged.contains_key(&number) || is_needed(number, next.version.number) {
            let lone = Lone {
                stamp: self.base_stamp.clone(),
                tree: self.base.version(),
                indexed: Arc::clone(&self.indexed),
                next,
            };
            self.lone.insert(number, lone);
        }
        self.gone = self.gone.max(number);
        for operation in &step.operations {
            self.base.apply(operation)?;
        }
        self.base_stamp = step.stamp;
        self.indexed = step.indexed.unwrap_or_else(|| Arc::clone(&self.indexed));
        Ok(())
    }

    fn base_number(&self) -> u64 {
        self.base_stamp.commit.version.number
    }

    /// Sets a tag in a commit of this time; `false`, if the version was passed and is not kept. Then the tag is none,
    /// so that this reading keeps nothing for it that the next one will not keep.
    pub(super) fn tag(&mut self, tag: &str, given: Version, now: SystemTime) -> bool {
        let Some((number, until)) = self.version_at(given, now) else {
            self.untag(tag);
            return false;
        };
        self.put_tag(
            tag,
            TagAt {
                given,
                number,
                until,
            },
        );
        true
    }

    pub(super) fn put_tag(&mut self, tag: &str, at: TagAt) {
        self.untag(tag);
        *self.tagged.entry(at.number).or_default() += 1;
        self.latest = self.latest.max(Some(at.until));
        self.tags.insert(tag.into(), at);
    }

    /// The number of the version that the tree had in one of the forest, and the last time at which it did.
    fn version_at(&self, given: Version, now: SystemTime) -> Option<(u64, SystemTime)> {
        let behind = |step: &Step| step.stamp.commit.version <= given;
        let later = self.pending.partition_point(behind);
        let stamp = match later.checked_sub(1) {
            Some(at) => &self.pending[at].stamp,
            None if self.base_stamp.commit.version <= given => &self.base_stamp,
            None => return self.lone_at(given),
        };
        let (own, next) = (stamp.commit, self.pending.get(later));
        if own.version.number < self.gaps_before {
            return self.among_gaps(own, given);
        }
        let until = match next {
            Some(next) => just_before(next.stamp.commit.time),
            None => now.max(own.time),
        };
        Some((own.version.number, until))
    }

    fn lone_at(&self, given: Version) -> Option<(u64, SystemTime)> {
        let mut before = self.lone.range(..=given.number).rev();
        let (_, lone) = before.find(|(_, lone)| lone.stamp.commit.version <= given)?;
        let own = lone.stamp.commit;
        let number = own.version.number;
        if given >= lone.next.version {
            return None;
        }
        if number < self.gaps_before {
            return self.among_gaps(own, given);
        }
        Some((number, just_before(lone.next.time)))
    }

    /// The same for the newest version before `given` that a checkpoint has before its gaps. A checkpoint of an older
    /// format may lack a newer one that was tagged, so there only another tag can tell.
    fn among_gaps(&self, own: Committed, given: Version) -> Option<(u64, SystemTime)> {
        let number = own.version.number;
        let mut tags = self.tags.values().filter(|tag| tag.number == number);
        let is_known = self.format >= HAS_TAGGED || own.version == given;
        let is_known = is_known || tags.any(|tag| given <= tag.given);
        is_known.then_some((number, own.time))
    }

    pub(super) fn untag(&mut self, tag: &str) {
        if let Some(old) = self.tags.remove(tag)
            && let Some(count) = self.tagged.get_mut(&old.number)
        {
            *count -= 1;
            if *count == 0 {
                self.tagged.remove(&old.number);
            }
        }
    }

    /// The history of the tree, all versions made.
    pub(super) fn finish(mut self, keep: usize) -> Result<History, EditError> {
        let mut made = Making::new(self.number);
        let mut roots = BTreeMap::new();
        let tagged = std::mem::take(&mut self.tagged);
        for (number, lone) in std::mem::take(&mut self.lone) {
            if tagged.contains_key(&number) {
                made.leap(&lone.tree);
                let root = made.root((lone.tree, &lone.indexed), lone.stamp);
                roots.insert(number, root);
            }
        }
        let mut kept = VecDeque::new();
        let base = self.base.version();
        made.leap(&base);
        kept.push_back(made.root((base, &self.indexed), self.base_stamp.clone()));
        while let Some(step) = self.pending.pop_front() {
            for operation in &step.operations {
                let before = self.base.version().len();
                self.base.apply(operation)?;
                made.steps += 1 + before.abs_diff(self.base.version().len());
            }
            self.indexed = step.indexed.unwrap_or(self.indexed);
            kept.push_back(made.root((self.base.version(), &self.indexed), step.stamp));
        }
        // Versions of a checkpoint from before a gap are kept for tags only.
        while kept.len() > 1 && (kept.len() > keep || kept[0].number() <= self.gone) {
            let Some(root) = kept.pop_front() else { break };
            self.gone = self.gone.max(root.number());
            roots.insert(root.number(), root);
        }
        roots.extend(kept.iter().map(|root| (root.number(), root.clone())));
        let tags = self.tags.into_iter().filter_map(|(tag, at)| {
            let root = roots.get(&at.number)?.clone();
            Some((tag, Tagged::recovered(at.given, root, at.until)))
        });
        Ok(History::recovered(
            self.first,
            (kept, self.gone),
            tags.collect(),
        ))
    }
}

/// Makes the versions of a tree, one after the other.
struct Making {
    number: u64,
    steps: u64,
    last: Option<RootRef>,
}

impl Making {
    fn new(number: u64) -> Self {
        Self {
            number,
            steps: 0,
            last: None,
        }
    }

    /// The next version may differ from the last one by all nodes of both.
    fn leap(&mut self, next: &Tree) {
        self.steps += self
            .last
            .as_ref()
            .map_or(0, |last| last.tree.len() + next.len());
    }

    /// The next version. Its indexes are those of the one before, brought up to date.
    fn root(&mut self, (tree, indexed): (Tree, &[String]), stamp: Stamp) -> RootRef {
        let before = self.last.take();
        let mut indexes = match &before {
            Some(before) => before.all_indexes().updated(&before.tree, &tree),
            None => Indexes::default(),
        };
        for attribute in indexed {
            if indexes.get(attribute).is_none() {
                indexes = indexes.with(Index::of(attribute, &tree));
            }
        }
        let gone = |index: &Index| !indexed.iter().any(|known| **known == *index.attribute);
        let gone: Vec<_> = indexes
            .all()
            .iter()
            .filter(|index| gone(index))
            .cloned()
            .collect();
        for index in gone {
            indexes = indexes.without(&index.attribute);
        }
        let Stamp {
            commit,
            bytes,
            beside,
        } = stamp;
        let content = (tree, indexes, self.steps);
        let root = RootRef::new(Root::new(self.number, content, (commit, bytes), beside));
        self.last = Some(root.clone());
        root
    }
}
