//! The versions of one tree that are kept in memory: the newest without a gap, and the tagged ones.
//!
//! - The newest version is always kept, and is the one in the tree's slot.
//! - Versions that are let go are handed to the caller, which drops them when it holds no lock.
//! - Only the combiner adds. Readers look up under the same short lock; no foreign code runs and no version
//!   is freed while it is held.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime};

use super::deferred::Deferred;
use super::kept::KeptRoots;
use super::root::RootRef;
use crate::error::VersionError;
use crate::version::{CommitId, Version};

/// More steps than this from one version to the next are many.
const LARGE: u64 = 1000;

pub(crate) struct History {
    /// With what most trees never have; a forest may have very many trees.
    kept: KeptRoots<Rare>,
}

/// What a history has only if its forest is on a medium, or if the tree has tags, watches or checkpoints.
#[derive(Default)]
struct Rare {
    /// Versions that were let go, although one of them may be the newest that the medium has. There are few unless the
    /// medium is far behind, and none if no medium can lose commits.
    unsettled: VecDeque<RootRef>,
    /// The checkpoints of this tree that are being made, and the versions that were let go meanwhile and that one of
    /// them needs: a tag may be given to one, and a checkpoint that is put later must have it.
    holds: Vec<Hold>,
    held: Vec<RootRef>,
    tags: BTreeMap<Arc<str>, Tagged>,
    /// No tag speaks for a later time.
    latest: Option<SystemTime>,
    /// The wakers of the watches that wait for the next version, by the number of the watch.
    wakers: BTreeMap<u64, Waker>,
}

static NO_TAGS: BTreeMap<Arc<str>, Tagged> = BTreeMap::new();

/// The versions that a checkpoint needs: those after the newest that was let go when it began, up to its moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    gone: u64,
    upto: u64,
}

/// A version that is kept for a tag.
#[derive(Clone)]
pub(crate) struct Tagged {
    /// The version of the forest that was given the tag; the tree's own may be older.
    pub(crate) given: Version,
    pub(crate) root: RootRef,
    /// The last time at which the tree is known to have had this root as its newest; before that of the root, if the
    /// next version has the same time.
    until: SystemTime,
}

impl Tagged {
    pub(crate) fn new(given: Version, root: RootRef) -> Self {
        Self {
            given,
            until: root.time(),
            root,
        }
    }

    /// One that was read back.
    pub(crate) fn recovered(given: Version, root: RootRef, until: SystemTime) -> Self {
        Self { given, root, until }
    }

    /// The last time at which the tree is known to have had this root.
    pub(crate) fn until(&self) -> SystemTime {
        self.until
    }

    /// Whether the tree is known to have had this root in a version of the forest.
    fn was_in(&self, asked: Version) -> bool {
        self.root.version() <= asked && asked <= self.given
    }
}

impl History {
    pub(crate) fn new(first: RootRef) -> Self {
        Self {
            kept: KeptRoots::One(first),
        }
    }

    /// One that was read back: the first version, all that are kept with the number of the newest that was let go, and
    /// the tags.
    pub(crate) fn recovered(
        first: (Version, CommitId),
        (roots, gone): (VecDeque<RootRef>, u64),
        tags: BTreeMap<Arc<str>, Tagged>,
    ) -> Self {
        let rare = (!tags.is_empty()).then(|| {
            Box::new(Rare {
                latest: tags.values().map(Tagged::until).max(),
                tags,
                ..Rare::default()
            })
        });
        Self {
            kept: KeptRoots::recovered(first, (roots, gone), rare),
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.kept.many().more.get_or_insert_default()
    }

    /// The tags, and the versions that have them.
    pub(crate) fn tags(&self) -> &BTreeMap<Arc<str>, Tagged> {
        self.kept.more().map_or(&NO_TAGS, |rare| &rare.tags)
    }

    /// Puts a tag as it was before, or takes it away. Returns what it was.
    pub(crate) fn put_tag(&mut self, tag: Arc<str>, tagged: Option<Tagged>) -> Option<Tagged> {
        match tagged {
            Some(tagged) => self.rare().tags.insert(tag, tagged),
            None => self.kept.more_mut()?.tags.remove(&tag),
        }
    }

    /// A watch waits for the next version. Returns the waker that it had left before.
    pub(crate) fn wait(&mut self, watch: u64, waker: Waker) -> Option<Waker> {
        self.rare().wakers.insert(watch, waker)
    }

    /// A watch waits no more.
    pub(crate) fn end_wait(&mut self, watch: u64) -> Option<Waker> {
        self.kept.more_mut()?.wakers.remove(&watch)
    }

    /// The wakers of all watches that wait, if there are any.
    #[inline]
    pub(crate) fn take_wakers(&mut self) -> Option<BTreeMap<u64, Waker>> {
        let rare = self.kept.more_mut().filter(|rare| !rare.wakers.is_empty());
        rare.map(|rare| std::mem::take(&mut rare.wakers))
    }

    /// The version in which the tree was created.
    pub(crate) fn first(&self) -> Version {
        self.kept.first().0
    }

    pub(crate) fn add(&mut self, root: RootRef) {
        // Commits of one group have one time, so a version may have the time for which a tag of an older one speaks.
        let rare = self.kept.more_mut();
        if let Some(rare) = rare.filter(|rare| rare.latest == Some(root.time())) {
            let before = just_before(root.time());
            for tagged in rare.tags.values_mut() {
                tagged.until = tagged.until.min(before);
            }
            rare.latest = Some(before);
        }
        self.kept.add(root);
    }

    /// Lets the oldest versions go until `keep` are left. Those that may have to come back, because no version after
    /// them is `settled`, are no longer shown.
    pub(crate) fn shrink(&mut self, keep: usize, settled: u64, deferred: &mut Deferred) {
        while self.kept.len() > keep.max(1) {
            if let Some(root) = self.kept.let_go() {
                if let Some(rare) = self.kept.more_mut()
                    && rare.is_held(&root)
                {
                    rare.held.push(root.clone());
                }
                let rare = self.kept.more();
                let is_settled = rare.is_none_or(|rare| rare.unsettled.is_empty());
                if is_settled && self.oldest().number() <= settled {
                    free(root, self.oldest().steps, deferred);
                } else {
                    self.rare().unsettled.push_back(root);
                }
            }
        }
        self.free_settled(settled, deferred);
    }

    /// Frees those that were let go and need not come back.
    fn free_settled(&mut self, settled: u64, deferred: &mut Deferred) {
        let left = |rare: &&Rare| !rare.unsettled.is_empty();
        while let Some(rare) = self.kept.more().filter(left) {
            let next = rare.unsettled.get(1).unwrap_or_else(|| self.kept.oldest());
            let (number, steps) = (next.number(), next.steps);
            if number > settled {
                return;
            }
            if let Some(root) = self.rare().unsettled.pop_front() {
                free(root, steps, deferred);
            }
        }
    }

    /// From now on, the versions that are kept, up to a number, stay known for a checkpoint that is being made.
    pub(crate) fn hold(&mut self, upto: u64) -> Hold {
        let hold = Hold {
            gone: self.kept.gone(),
            upto,
        };
        self.rare().holds.push(hold);
        hold
    }

    /// Ends a [`hold`](Self::hold). Returns the versions that no other checkpoint needs, which the caller drops when it
    /// holds no lock. If they stayed for as long as there is any other one, checkpoints that overlap would keep the
    /// whole history.
    #[must_use]
    pub(crate) fn end_hold(&mut self, hold: Hold) -> Vec<RootRef> {
        let rare = self.rare();
        if let Some(at) = rare.holds.iter().position(|other| *other == hold) {
            rare.holds.swap_remove(at);
        }
        let held = std::mem::take(&mut rare.held);
        let (held, unneeded) = held.into_iter().partition(|root| rare.is_held(root));
        rare.held = held;
        unneeded
    }

    /// The versions that are kept, and those that are held.
    pub(crate) fn kept_and_held(&self) -> impl Iterator<Item = &RootRef> {
        let held = self.kept.more().map_or(&[][..], |rare| &rare.held[..]);
        held.iter().chain(self.kept.iter())
    }

    /// Takes back all versions after a number, and returns them. If none is left, because the tree was created later,
    /// the first one stays.
    pub(crate) fn fall_back(&mut self, number: u64) -> Vec<RootRef> {
        let rare = self.kept.more_mut();
        let unsettled = rare.map(|rare| std::mem::take(&mut rare.unsettled));
        self.kept.fall_back(number, unsettled.unwrap_or_default())
    }

    /// Sets a tag, in a commit of this time. Returns what it was before.
    pub(crate) fn tag(
        &mut self,
        tag: Arc<str>,
        mut tagged: Tagged,
        now: SystemTime,
    ) -> Option<Tagged> {
        let number = tagged.root.number();
        tagged.until = match self.after(number) {
            // The next version was let go. Another tag keeps this one, and knows what there is to know.
            _ if number < self.kept.gone() => {
                let same = self.tags().values().filter(|it| it.root.number() == number);
                let known = same.map(Tagged::until).max();
                known.unwrap_or(tagged.root.time())
            }
            // At the time of the next version the tree has that one.
            Some(next) => just_before(next.time()),
            None => now.max(tagged.root.time()),
        };
        let rare = self.rare();
        rare.latest = rare.latest.max(Some(tagged.until));
        rare.tags.insert(tag, tagged)
    }

    /// The id of the commit that created the tree.
    pub(crate) fn first_commit(&self) -> CommitId {
        self.kept.first().1
    }

    pub(crate) fn newest(&self) -> &RootRef {
        self.kept.newest()
    }

    pub(crate) fn oldest(&self) -> &RootRef {
        self.kept.oldest()
    }

    /// The number of the newest version that was let go; 0, if none was.
    pub(crate) fn gone(&self) -> u64 {
        self.kept.gone()
    }

    /// All versions that are kept without a gap, the oldest first.
    pub(crate) fn kept(&self) -> impl DoubleEndedIterator<Item = &RootRef> + ExactSizeIterator {
        self.kept.iter()
    }

    /// The tree as it was in a version of the forest. The caller has checked that this version exists.
    pub(crate) fn at(&self, asked: Version) -> Result<&RootRef, VersionError> {
        let first = self.first();
        if asked < first {
            return Err(VersionError::NotCreated { asked, first });
        }
        let behind = self.kept.count_while(|root| root.version() <= asked);
        let kept = behind.checked_sub(1).and_then(|at| self.kept.get(at));
        let tagged = || self.tags().values().find(|tagged| tagged.was_in(asked));
        let tagged = || tagged().map(|tagged| &tagged.root);
        kept.or_else(tagged).ok_or(VersionError::TooOld {
            asked,
            oldest: self.oldest().version(),
        })
    }

    /// Refuses a version that was let go, even if its author holds it.
    pub(crate) fn must_have(&self, wanted: &Tagged) -> Result<(), VersionError> {
        let number = wanted.root.number();
        let is_tagged = |tagged: &Tagged| tagged.root.number() == number;
        let oldest = self.oldest();
        match number >= oldest.number() || self.tags().values().any(is_tagged) {
            true => Ok(()),
            false => Err(VersionError::TooOld {
                asked: wanted.given,
                oldest: oldest.version(),
            }),
        }
    }

    pub(crate) fn at_time(&self, time: SystemTime) -> Result<&RootRef, VersionError> {
        let behind = self.kept.count_while(|root| root.time() <= time);
        let kept = behind.checked_sub(1).and_then(|at| self.kept.get(at));
        let was_then = |tagged: &&Tagged| tagged.root.time() <= time && time <= tagged.until;
        let tagged = || {
            let roots = self
                .tags()
                .values()
                .filter(was_then)
                .map(|tagged| &tagged.root);
            roots.max_by_key(|root| root.number())
        };
        kept.or_else(tagged).ok_or(VersionError::BeforeTime {
            oldest: self.oldest().version(),
        })
    }

    /// The first version after a number, which is not below [`gone`](Self::gone).
    pub(crate) fn after(&self, number: u64) -> Option<&RootRef> {
        let behind = self.kept.count_while(|root| root.number() <= number);
        self.kept.get(behind)
    }
}

impl Rare {
    fn is_held(&self, root: &RootRef) -> bool {
        let needs = |hold: &Hold| hold.gone < root.number() && root.number() <= hold.upto;
        self.holds.iter().any(needs)
    }
}

/// The last time at which there may have been an older version than one of this time.
pub(crate) fn just_before(time: SystemTime) -> SystemTime {
    time - Duration::from_nanos(1)
}

/// Later frees a version that was let go: the parts of it that the next version, which has these steps,
/// no longer has.
fn free(root: RootRef, next_steps: u64, deferred: &mut Deferred) {
    if next_steps - root.steps > LARGE {
        deferred.free_large_later(root);
    } else {
        deferred.free_later(Some(root));
    }
}
