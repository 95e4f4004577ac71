//! A forest that is open for reading, and its trees at the moments that a command line names.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

use pollster::block_on;
use weald_forest::journal::{Entry, Journal, Position, ReadError, Stored};
use weald_forest::{Forest, Node, NodeId, Snapshot, Tree, TreeHandle, Version, VersionError};
use weald_journal::{OpenForestError, ReadOnlyForest, ReadOnlyJournal, Settings};
use weald_lab::nearest::nearest;

use super::failure::Failure;
use super::times;

/// How many records are read at a time.
const MANY: usize = 256;

/// When.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The newest that is durable.
    Now,
    Version(Version),
    /// The version of this number, or the last one before.
    Number(u64),
    Time(SystemTime),
    Tag(String),
}

impl Moment {
    /// The moment that a word names.
    pub(crate) fn read(word: Option<&str>) -> Result<Self, Failure> {
        let Some(word) = word else {
            return Ok(Self::Now);
        };
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(tag) = word.strip_prefix("tag:") {
            Ok(Self::Tag(tag.to_owned()))
        } else if let Some(number) = word.parse().ok().filter(|_| is_number) {
            Ok(Self::Number(number))
        } else if let Ok(version) = word.parse() {
            Ok(Self::Version(version))
        } else if let Some(time) = times::read(word) {
            Ok(Self::Time(time))
        } else {
            Err(Failure::Usage(format!(
                "`{word}` is no moment. Write a version (3.17 or 17), a time (2026-05-30 or \
                 2026-05-30T12:00:00Z, in UTC) or a tag (tag:NAME)."
            )))
        }
    }

    /// Whether a commit is not later.
    fn is_reached(&self, stored: &Stored) -> bool {
        match self {
            Self::Now | Self::Tag(_) => true,
            Self::Version(version) => stored.version <= *version,
            Self::Number(number) => stored.version.number <= *number,
            Self::Time(time) => stored.time <= *time,
        }
    }
}

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
        Ok(Self(block_on(opened)?))
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
            Moment::Now => return Ok(self.0.clone()),
            Moment::Tag(_) => {
                let text = "a tag belongs to a tree; add the name of the tree.";
                return Err(Failure::Usage(text.to_owned()));
            }
            _ => {}
        }
        let journal = self.0.journal();
        let (mut found, mut first, mut newest) = (None, None, None);
        each(journal, |entry, stored| {
            first = first.or(Some((stored.version, stored.time)));
            newest = Some(stored.version);
            if !moment.is_reached(&stored) {
                return Ok(ControlFlow::Break(()));
            }
            found = Some((entry, stored.version));
            Ok(ControlFlow::Continue(()))
        })?;
        let (Some((first, time)), Some(newest)) = (first, newest) else {
            let text = "there is no commit that can be shown; all records were trimmed.";
            return Err(Failure::Absent(text.to_owned()));
        };
        let Some((entry, version)) = found else {
            let time = times::shown(time);
            let why = match journal.is_trimmed() {
                true => "what was before was trimmed",
                false => "it is the first one",
            };
            return Err(Failure::Absent(format!(
                "the oldest commit that can be shown is {first} of {time}; {why}."
            )));
        };
        let is_beyond = match moment {
            Moment::Version(asked) => *asked > newest && version == newest,
            Moment::Number(asked) => *asked > newest.number,
            _ => false,
        };
        if is_beyond {
            return Err(Failure::Absent(format!(
                "that version does not exist yet; the newest is {newest}."
            )));
        }
        let journal = journal.as_of(&entry).map_err(|error| match error {
            ReadError::TooOld { .. } => Failure::Absent(format!(
                "version {version} cannot be shown any more: records before it were trimmed."
            )),
            error => Failure::Damaged(format!("{error}.")),
        })?;
        let forest = ReadOnlyForest::recover(Forest::builder().keep(1), journal.clone());
        block_on(forest).map_err(|error| failed(&journal, error))
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

/// Calls `take` with each record that there is, the oldest first, until it breaks.
pub(crate) fn each(
    journal: &ReadOnlyJournal,
    mut take: impl FnMut(Entry, Stored) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    let mut after: Position = journal.begin();
    loop {
        let entries = block_on(journal.read(after, MANY));
        let entries = entries.map_err(|error| match journal.is_whole() {
            true => Failure::Damaged(format!("{error}.")),
            false => removed(),
        })?;
        let Some(last) = entries.last() else {
            return Ok(());
        };
        after = last.position;
        for entry in entries {
            let position = entry.position;
            let stored = Stored::read(&entry.record).map_err(|error| {
                Failure::Damaged(format!("the record at {position:?} is damaged: {error}."))
            })?;
            if take(entry, stored)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Why a forest was not made from a journal.
pub(crate) fn failed(journal: &ReadOnlyJournal, error: OpenForestError) -> Failure {
    match journal.is_whole() {
        true => error.into(),
        false => removed(),
    }
}

fn removed() -> Failure {
    let text = "the program that has the forest open has removed records meanwhile; do it again.";
    Failure::Failed(text.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_moment_or_none() {
        let read = |word| Moment::read(Some(word)).ok();
        let version = Version {
            incarnation: 3,
            number: 17,
        };
        assert_eq!(read("3.17"), Some(Moment::Version(version)));
        assert_eq!(read("17"), Some(Moment::Number(17)));
        assert_eq!(read("tag:17"), Some(Moment::Tag("17".into())));
        assert!(matches!(read("2026-05-30"), Some(Moment::Time(_))));
        for word in ["", "yesterday", "3.", "-1"] {
            assert_eq!(read(word), None, "{word}");
        }
    }
}
