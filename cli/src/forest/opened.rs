//! A forest that is open for reading, and its trees at the moments that a command line names.

use std::path::Path;

use pollster::block_on;
use weald_forest::{Forest, Node, NodeId, Snapshot, Tree, TreeHandle, VersionError};
use weald_journal::{ReadOnlyForest, Settings};
use weald_lab::nearest::nearest;

use super::failure::Failure;
use super::moment::Moment;
use super::past;
use super::records::unless_removed;

/// A tree at a moment, and the forest that has its erasable values.
pub(crate) struct Seen {
    pub(crate) forest: ReadOnlyForest,
    pub(crate) snapshot: Snapshot,
}

/// A forest that is open for reading.
pub(crate) struct Opened(pub(crate) ReadOnlyForest);

impl Opened {
    pub(crate) fn open(directory: &Path, settings: &Settings) -> Result<Self, Failure> {
        let opened = ReadOnlyForest::open_sealed(directory, settings, Forest::builder);
        Ok(Self(unless_removed(block_on(opened)?)?))
    }

    pub(crate) fn tree(&self, name: &str) -> Result<TreeHandle, Failure> {
        self.0.get(name).map_err(|_| absent(&self.0, name))
    }

    /// A tree at a moment: from memory, or from the records up to then.
    pub(crate) fn seen(&self, name: &str, moment: &Moment) -> Result<Seen, Failure> {
        let now = self.0.get(name).ok();
        let kept = match (&now, moment) {
            (None, Moment::Now | Moment::Tag(_)) => return Err(absent(&self.0, name)),
            (None, _) => None,
            (Some(tree), _) => kept(tree, moment)?,
        };
        if let Some(snapshot) = kept {
            let forest = self.0.clone();
            return Ok(Seen { forest, snapshot });
        }
        let forest = self.earlier(moment)?;
        // It may have had another name then.
        let number = now.map(|tree| tree.number());
        let all = forest.list();
        let same = all.iter().filter_map(|name| forest.get(name).ok());
        let same = same.into_iter().find(|tree| Some(tree.number()) == number);
        let tree = same.or_else(|| forest.get(name).ok());
        let tree = tree.ok_or_else(|| {
            Failure::Absent(format!("there was no tree named `{name}` at that moment."))
        })?;
        let snapshot = tree.snapshot();
        Ok(Seen { forest, snapshot })
    }

    /// The forest as it was at a moment.
    pub(crate) fn earlier(&self, moment: &Moment) -> Result<ReadOnlyForest, Failure> {
        match moment {
            Moment::Now => Ok(self.0.clone()),
            _ => past::earlier(self.0.journal(), moment),
        }
    }
}

fn absent(forest: &Forest, name: &str) -> Failure {
    let all = forest.list();
    let all = all.iter().map(String::as_str);
    let meant = nearest(name, all).map(|near| format!(" Did you mean `{near}`?"));
    let meant = meant.unwrap_or_default();
    Failure::Absent(format!(
        "no tree is named `{name}`.{meant} `weald forest DIR ls` lists the names."
    ))
}

/// The version of a tree, if it is in memory.
fn kept(tree: &TreeHandle, moment: &Moment) -> Result<Option<Snapshot>, Failure> {
    let found = match moment {
        Moment::Now => return Ok(Some(tree.snapshot())),
        Moment::Tag(tag) => {
            let tags: Vec<_> = tree.tags().into_iter().map(|(tag, _)| tag).collect();
            let tags = match tags.is_empty() {
                true => "It has no tags".to_owned(),
                false => format!("It has: {}", tags.join(", ")),
            };
            let found = tree
                .tagged(tag)
                .ok_or_else(|| Failure::Absent(format!("the tree has no tag `{tag}`. {tags}.")));
            return found.map(Some);
        }
        Moment::Version(version) => tree.kept_at(*version),
        Moment::Time(time) => block_on(tree.at_time(*time)),
        Moment::Number(number) => {
            let is_reached = |version: &Snapshot| version.version().number <= *number;
            let versions = tree.versions();
            let later = versions.partition_point(is_reached);
            // Whether a number beyond the newest one exists is not known to the tree.
            let is_sure = later > 0 && later < versions.len()
                || versions
                    .last()
                    .is_some_and(|last| last.version().number == *number);
            return Ok(is_sure.then(|| versions[later - 1].clone()));
        }
    };
    match found {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(VersionError::TooOld { .. } | VersionError::BeforeTime { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The node that a word names; the root without one.
pub(crate) fn node<'a>(tree: &'a Tree, word: Option<&str>) -> Result<Node<'a>, Failure> {
    let Some(word) = word else {
        return Ok(tree.root());
    };
    let digits = word.strip_prefix('#').unwrap_or(word);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
        let id = digits.parse().ok().and_then(NodeId::new);
        let node = id.and_then(|id| tree.node(id));
        return node.ok_or_else(|| {
            Failure::Absent(format!(
                "there is no node {word} at that moment. `log NAME --node {word}` may know when it went."
            ))
        });
    }
    let path = word.parse();
    let path: weald_forest::Path = path.map_err(|error| {
        Failure::Usage(format!(
            "{error}. A node is a number or a path, as 5 or -1,0,2."
        ))
    })?;
    tree.at(&path)
        .map_err(|error| Failure::Absent(format!("{error}.")))
}
