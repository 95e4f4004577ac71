//! The handle of a named tree: it reads the tree's versions and submits changes of it.

use std::sync::Arc;
use std::time::SystemTime;

use weald_tree::NodeId;

use crate::combine::request::Action;
use crate::combine::shared::Shared;
use crate::content::index::Index;
use crate::edit::Edit;
use crate::error::{CommitError, MAX_NAME, NameError, VersionError};
use crate::requested::Requested;
use crate::state::history::Tagged;
use crate::state::root::{Snapshot, View};
use crate::state::tree::TreeRef;
use crate::version::{Committed, Version};

/// A tree of a forest. A clone is the same tree; any thread may have one.
#[derive(Clone)]
pub struct TreeHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: TreeRef,
}

impl TreeHandle {
    pub(crate) fn new(shared: Arc<Shared>, state: TreeRef) -> Self {
        Self { shared, state }
    }

    /// Its current name; a deleted tree keeps its last one.
    pub fn name(&self) -> String {
        self.state.name().to_string()
    }

    /// Its number, which stays when the tree is renamed.
    pub fn number(&self) -> u64 {
        self.state.number
    }

    /// Whether it was deleted. A deleted tree can be read as it was last, but not changed.
    pub fn is_deleted(&self) -> bool {
        self.state.is_deleted()
    }

    /// The newest version, to keep. It neither waits nor makes others wait, and keeps nothing alive except
    /// its own version.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.state.slot)
    }

    /// The newest version, to be held briefly. It costs what a [`snapshot`](Self::snapshot) costs.
    #[inline]
    pub fn view(&self) -> View {
        View::of(&self.state.slot)
    }

    /// An edit that begins from the newest version.
    pub fn edit(&self) -> Edit {
        let (shared, state) = (Arc::clone(&self.shared), self.state.clone());
        Edit::new(shared, state, self.snapshot())
    }

    /// An edit that begins from this version; its commit is rebased to the newest version, or conflicts.
    ///
    /// # Panics
    /// If it is a version of another tree, even one from which this tree was created.
    pub fn edit_from(&self, base: &Snapshot) -> Edit {
        let is_of_this_tree = base.tree_number == self.state.number
            && self.shared.forest.has_opened(base.version())
            && base.tree.shares_ids_with(&self.view().tree);
        assert!(
            is_of_this_tree,
            "an edit of a tree begins from a version of that tree"
        );
        Edit::new(Arc::clone(&self.shared), self.state.clone(), base.clone())
    }

    /// The tree as it was in a version of the forest: its newest version up to that one, if memory still keeps it. A
    /// forest on disk shows versions from before that, too, with `DiskForest::at`. Cancel-safe: it never waits.
    ///
    /// # Errors
    /// [`VersionError`], if the version is not kept, does not exist, or is older than the tree.
    #[expect(
        clippy::unused_async,
        reason = "older versions will be rebuilt from the journal"
    )]
    pub async fn at(&self, version: Version) -> Result<Snapshot, VersionError> {
        self.kept_at(version)
    }

    /// Like [`at`](Self::at), for a version that is kept in memory.
    ///
    /// # Errors
    /// [`VersionError`], if the version is not kept, does not exist, or is older than the tree.
    pub fn kept_at(&self, asked: Version) -> Result<Snapshot, VersionError> {
        self.shared.forest.must_exist(asked)?;
        self.state.history().at(asked).cloned().map(Snapshot)
    }

    /// The tree as it was at a time: the newest version that was committed up to then, if memory still keeps it. See
    /// [`at`](Self::at). Cancel-safe: it never waits.
    ///
    /// # Errors
    /// [`VersionError::BeforeTime`], if no version that old is kept.
    #[expect(
        clippy::unused_async,
        reason = "older versions will be rebuilt from the journal"
    )]
    pub async fn at_time(&self, time: SystemTime) -> Result<Snapshot, VersionError> {
        self.state.history().at_time(time).cloned().map(Snapshot)
    }

    /// The versions that are kept without a gap, the oldest first.
    pub fn versions(&self) -> Vec<Snapshot> {
        self.state.history().kept().cloned().map(Snapshot).collect()
    }

    /// The kept versions in which a node was added, changed, moved or deleted, the newest first. The oldest
    /// kept version is among them only if it is the first version of the tree: of any other it is no longer
    /// known what it changed. The call costs a look-up in each kept version.
    pub fn history(&self, node: NodeId) -> Vec<Snapshot> {
        let (versions, is_whole) = {
            let history = self.state.history();
            let versions: Vec<_> = history.kept().cloned().map(Snapshot).collect();
            (versions, history.gone() == 0)
        };
        let mut changed: Vec<_> = versions
            .windows(2)
            .filter(|pair| pair[0].tree.differs_at(&pair[1].tree, node))
            .map(|pair| pair[1].clone())
            .collect();
        changed.reverse();
        let first = versions.into_iter().next();
        changed.extend(first.filter(|first| is_whole && first.tree.node(node).is_some()));
        changed
    }

    /// Creates a version with the nodes of an older one, with their ids. Nothing is lost: the versions between
    /// stay. Edits that began before are rebased to it like to any other version.
    ///
    /// # Errors
    /// [`VersionError`], if the version is not kept; those of a commit.
    pub fn restore(&self, version: Version) -> Requested<Committed> {
        let root = self.kept_at(version);
        self.request(|state| Ok(Action::Restore(state, root?.0, None)))
    }

    /// Gives a version a tag, which keeps the version until the tag is removed: [`at`](Self::at) still finds
    /// it. A tag that exists moves. A tag has 1 to 1024 bytes of UTF-8, none of them a control character.
    ///
    /// # Errors
    /// [`NameError::InvalidTag`], if the text is no tag; [`VersionError`], if the version is not kept, or no longer
    /// when the commit is made; those of a commit.
    pub fn tag(&self, tag: &str, version: Version) -> Requested<Committed> {
        let (tag, root) = (valid_tag(tag), self.kept_at(version));
        self.request(move |state| {
            let tag = tag?;
            let tagged = Box::new(Tagged::new(version, root?.0));
            Ok(Action::Tag(state, tag, tagged))
        })
    }

    /// Removes a tag, if it exists.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn untag(&self, tag: &str) -> Requested<Committed> {
        let tag = tag.into();
        self.request(|state| Ok(Action::Untag(state, tag)))
    }

    /// The version that has this tag.
    pub fn tagged(&self, tag: &str) -> Option<Snapshot> {
        let history = self.state.history();
        let tagged = history.tags().get(tag);
        tagged.map(|tagged| Snapshot(tagged.root.clone()))
    }

    /// All tags and their versions, sorted by tag.
    pub fn tags(&self) -> Vec<(String, Version)> {
        let history = self.state.history();
        let tags = history.tags().iter();
        tags.map(|(tag, tagged)| (tag.to_string(), tagged.root.version()))
            .collect()
    }

    /// Gives an attribute an index, in all versions from now on; does nothing if it has one. The caller builds the
    /// index by a look at every node, and others may write meanwhile.
    ///
    /// # Errors
    /// [`NameError::InvalidIndex`], if the name of the attribute has more than 1024 bytes; those of a commit.
    pub fn add_index(&self, attribute: &str) -> Requested<Committed> {
        let attribute = attribute.to_owned();
        self.request(move |state| {
            if attribute.len() > MAX_NAME {
                return Err(NameError::InvalidIndex(attribute.chars().take(40).collect()).into());
            }
            let base = Snapshot::of(&state.slot);
            let index = Index::of(&attribute, base.tree());
            Ok(Action::AddIndex(state, base.0, index))
        })
    }

    /// Removes the index of an attribute, if it has one, from all versions from now on.
    ///
    /// # Errors
    /// Those of a commit.
    pub fn drop_index(&self, attribute: &str) -> Requested<Committed> {
        let attribute = attribute.into();
        self.request(|state| Ok(Action::DropIndex(state, attribute)))
    }

    /// Erases all bytes that were ever put with [`put_erasable`](Edit::put_erasable) under an attribute of a node, and
    /// all bytes to which the attribute referred because it, or its tree, was copied. From then on every version,
    /// snapshot and export, and the history of the journal, show `Erased` in their place. It works in a deleted tree,
    /// too. The forest's own copy is overwritten with zeros once the erasure is visible, by the future that this
    /// returns: if another thread has served its request, at its next poll, or when it is dropped. Bytes that a
    /// [`Value`](crate::Value) has handed out before stay with their holder. A forest of an earlier moment that was
    /// opened before the erasure keeps the bytes, too, and shows them until it is dropped; a copy that it shares with
    /// this forest is overwritten only then. The erasure is acknowledged when it has reached the strongest level of the
    /// journal, whatever level the forest was built with. If a full journal refuses the commits before the erasure, the
    /// erasure is not refused with them, and is made before all others.
    ///
    /// # Errors
    /// [`CommitError::NothingToErase`], if none are stored and there is no journal (a journal may have bytes
    /// that no version in memory has); [`CommitError::OtherTree`], if another tree gave out the id;
    /// [`CommitError::NameTooLong`], if the name has more than
    /// [`MAX_ERASABLE_NAME`](crate::MAX_ERASABLE_NAME) bytes; those of a commit, except `Deleted`.
    ///
    /// A tree that was deleted before the forest was opened has no handle: see
    /// [`Forest::erase_in`](crate::Forest::erase_in).
    pub fn erase(&self, node: NodeId, name: &str) -> Requested<Committed> {
        let name: Box<str> = name.into();
        self.request(move |state| {
            if Snapshot::of(&state.slot).tree().is_foreign(node) {
                return Err(CommitError::OtherTree(node));
            }
            let place = (state.number, node, name);
            Action::erase(Some(state), place)
        })
    }

    /// The version of the tree before another one.
    pub(crate) fn before(
        &self,
        after: &Snapshot,
        asked: Version,
    ) -> Result<Snapshot, VersionError> {
        let history = self.state.history();
        let first = history.first();
        if after.version() == first {
            return Err(VersionError::NotCreated { asked, first });
        }
        let mut kept = history.kept().rev();
        let is_after = kept.any(|root| root.number() == after.number());
        let before = kept.next().filter(|_| is_after).cloned();
        before.map(Snapshot).ok_or(VersionError::TooOld {
            asked,
            oldest: history.oldest().version(),
        })
    }

    /// The tree as it was before a commit, if that is kept.
    pub(crate) fn before_commit(&self, first: &Committed) -> Option<Snapshot> {
        match self.kept_at(first.version) {
            Ok(after) if after.commit_id() == first.id => self.before(&after, first.version).ok(),
            // The commit was one to other trees, or found nothing to change.
            Ok(same) => Some(same),
            Err(_) => None,
        }
    }

    fn request(
        &self,
        make: impl FnOnce(TreeRef) -> Result<Action, CommitError> + Send + 'static,
    ) -> Requested<Committed> {
        let state = self.state.clone();
        Requested::new(&self.shared, || make(state))
    }
}

fn valid_tag(tag: &str) -> Result<Arc<str>, NameError> {
    if tag.is_empty() || tag.len() > MAX_NAME || tag.contains(char::is_control) {
        return Err(NameError::InvalidTag(tag.chars().take(40).collect()));
    }
    Ok(tag.into())
}

impl std::fmt::Debug for TreeHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "TreeHandle {{ name: {:?}, {:?} }}",
            self.name(),
            self.view().tree()
        )
    }
}
