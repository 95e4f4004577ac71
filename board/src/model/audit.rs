//! What moderators do to the messages of others, and the log of it.
//!
//! - The log is a tree of the forest's own, `audit`, whose root has an entry for each measure, in order.
//! - An entry is durable before its measure is taken, and gets its outcome afterwards. So nothing is done that is not
//!   in the log; an entry without an outcome was interrupted.
//! - Measures are taken one after the other. One that is sent again with its token finds its entry: if that was done,
//!   nothing is done again; if it was refused or interrupted, it is taken now, and the entry gets its outcome.
//! - An entry names the board by its tree, the message by its number, and a protected name by its node, so that what
//!   was interrupted is completed though the address or the name is gone. It has neither the title of a board nor the
//!   text of a message. The name of a person and the reason are erasable.

use std::time::{SystemTime, UNIX_EPOCH};

use weald::forest::{Attributes, CommitError, NameError, Node, NodeId, Sortable, TreeHandle};
use weald::forest::{Value, Version};
use weald::sync::MutexGuard;

use super::author::{Requester, hash};
use super::board_at::pages;
use super::boards::Boards;
use super::draft::{Field, Invalid, MAX_AUTHOR, one_line};
use super::error::BoardError;
use super::name::BoardName;
use super::names::{Protection, noted_node};
use super::pages::Pages;
use super::revise::Target;

const TREE: &str = "audit";

/// How many entries are on a page of the log.
const ENTRIES: usize = 50;

/// How many of the newest entries are looked at for a measure that is sent again.
const REMEMBERED: usize = 1_000;

/// The most characters of a reason.
pub const MAX_WHY: usize = 200;

/// The names of the attributes.
pub(super) mod of_entry {
    pub(in crate::model) const TIME: &str = "time";
    pub(in crate::model) const WHO: &str = "who";
    pub(in crate::model) const MEASURE: &str = "measure";
    pub(in crate::model) const BOARD: &str = "board";
    pub(in crate::model) const MESSAGE: &str = "message";
    pub(in crate::model) const NAME: &str = "name";
    pub(in crate::model) const WHY: &str = "why";
    pub(in crate::model) const NODE: &str = "node";
    pub(in crate::model) const FIRST: &str = "first";
    pub(in crate::model) const OUTCOME: &str = "outcome";
    pub(in crate::model) const VERSION: &str = "version";
    pub(in crate::model) const TOKEN: &str = "token";
}

/// The outcome of a measure that was taken.
const DONE: &str = "done";

/// What a moderator does to a message, to a board, or to a protected name; or the import of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// It is hidden; only a moderator can restore it.
    Delete,
    /// It is shown again.
    Restore,
    /// The text of a message, or the title of a board, is removed from every version, for good.
    Erase,
    /// The name is no longer protected: anybody may use it.
    Free,
    /// A board arrived, with names and times of others.
    Import,
}

/// A moderator who takes a measure.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// The name that the moderator signed in with.
    pub who: &'a str,
    /// The reason.
    pub why: &'a str,
    /// A text that the sender chose, by which it is one measure if it is sent twice. The log remembers its newest 1,000
    /// measures.
    pub token: Option<&'a str>,
}

/// A measure that is about to be taken, and what the log already has of it.
pub(super) struct Turn<'a> {
    by: By<'a>,
    measure: Measure,
    /// What the log knows it by, if it has a token.
    key: Option<[u8; 16]>,
    /// Its entry, if it was sent before.
    pub(super) entry: Option<NodeId>,
    /// The board of its entry, as the log names it.
    pub(super) board: Option<String>,
    /// The protected name that its entry is about.
    pub(super) protection: Option<Protection>,
    /// If it was done before, the version that it made.
    pub(super) done: Option<Version>,
    _lock: MutexGuard<'a, ()>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was begun.
    pub time: SystemTime,
    /// The name that the moderator signed in with.
    pub who: String,
    /// The measure; `None` for one that only another version of the program knows.
    pub measure: Option<Measure>,
    /// The name, if it was one.
    pub name: Option<String>,
    /// The address that the board has now.
    pub board: String,
    /// The number of the message; `None` if it was about the board as a whole, or about a name.
    pub message: Option<u64>,
    /// Why.
    pub why: String,
    /// `done`, or why it was refused; `None` if it was interrupted.
    pub outcome: Option<String>,
}

impl Measure {
    const ALL: [Self; 5] = [
        Self::Delete,
        Self::Restore,
        Self::Erase,
        Self::Free,
        Self::Import,
    ];

    /// Its name in forms, in JSON and in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Restore => "restore",
            Self::Erase => "erase",
            Self::Free => "free",
            Self::Import => "import",
        }
    }

    /// The measure against a message or a board that has this name.
    pub fn of_message(word: &str) -> Option<Self> {
        let is_of_message = |it: &Self| !matches!(it, Self::Free | Self::Import);
        Self::of_word(word).filter(is_of_message)
    }

    /// The measure of a name.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl Boards {
    /// Takes a measure of a moderator after it is in the log. Returns a version that has it.
    ///
    /// # Errors
    /// [`BoardError::Invalid`], if there is no reason; [`BoardError::TokenUsed`]; else those of
    /// [`delete`](Self::delete). If the log takes no entry, nothing is done.
    pub async fn moderate(
        &self,
        (board, id): (&BoardName, NodeId),
        measure: Measure,
        by: By<'_>,
    ) -> Result<Version, BoardError> {
        let texts = [(of_entry::WHY, check(by.why)?)];
        let number = id.get().to_sortable();
        let of = [board.as_str().as_bytes(), &number];
        let turn = self.turn((by, measure), &of, &texts).await?;
        if let Some(done) = turn.done {
            return Ok(done);
        }
        let board = &self.address_of_turn(&turn, board)?;
        self.board_or_deleted(board)?.message(id)?;
        let entry = turn
            .entry()
            .with(of_entry::BOARD, self.board_of_entry(board)?)
            .with(of_entry::MESSAGE, number);
        let noted = self.note(&turn, entry, texts).await?;
        let requester = Requester {
            is_moderator: true,
            ..Requester::default()
        };
        let target = Target {
            board,
            id,
            requester,
        };
        let outcome = match measure {
            Measure::Delete => self.delete(target).await,
            Measure::Restore => self.restore(target).await,
            Measure::Erase => self.erase(target).await,
            Measure::Free | Measure::Import => Err(BoardError::no_message(id)),
        };
        self.conclude(noted, outcome).await
    }

    /// Waits until no other measure is being taken, and looks whether the log has this one: a measure against `of`,
    /// with texts that can be erased.
    ///
    /// # Errors
    /// [`BoardError::TokenUsed`], if it was sent before with other texts.
    pub(super) async fn turn<'a>(
        &'a self,
        (by, measure): (By<'a>, Measure),
        of: &[&[u8]],
        texts: &[(&str, String)],
    ) -> Result<Turn<'a>, BoardError> {
        let key = by.token.map(|token| {
            let own = [token, by.who, measure.word()].map(str::as_bytes);
            hash("measure", &[&own, of].concat())
        });
        let mut turn = Turn {
            by,
            measure,
            key,
            entry: None,
            board: None,
            protection: None,
            done: None,
            _lock: self.0.measures.lock().await,
        };
        let trees = self.0.store.trees();
        let (Some(key), Ok(log)) = (key, trees.get(TREE)) else {
            return Ok(turn);
        };
        let snapshot = log.snapshot();
        let root = snapshot.tree().root();
        let count = root.child_count();
        let newest = root.children_in(count.saturating_sub(REMEMBERED)..count);
        let mut newest = newest.filter(|node| node.get(of_entry::TOKEN) == Some(&key[..]));
        let Some(node) = newest.next() else {
            return Ok(turn);
        };
        let is_same = texts.iter().all(|(name, text)| {
            let value = trees.value(node, name);
            value.is_some_and(|value| value.bytes().is_some_and(|it| *it == *text.as_bytes()))
        });
        if !is_same {
            return Err(BoardError::TokenUsed);
        }
        turn.entry = Some(node.id());
        let is_done = node.get_str(of_entry::OUTCOME) == Some(DONE);
        turn.board = node.get_str(of_entry::BOARD).map(str::to_owned);
        let protected = node.get(of_entry::NODE).and_then(noted_node);
        turn.protection = protected.map(|it| Protection::of(it, node.get(of_entry::FIRST)));
        let made = node.get_str(of_entry::VERSION);
        // An older program has not noted it; then a version that has it must do.
        let made = made.and_then(|version| version.parse().ok());
        turn.done = is_done.then(|| made.unwrap_or(snapshot.version()));
        Ok(turn)
    }

    /// Puts an entry into the log, with texts that can be erased, unless an earlier attempt has put it there.
    pub(super) async fn note<const N: usize>(
        &self,
        turn: &Turn<'_>,
        entry: Attributes,
        texts: [(&str, String); N],
    ) -> Result<NodeId, BoardError> {
        if let Some(entry) = turn.entry {
            return Ok(entry);
        }
        let mut edit = self.log().await?.edit().blind();
        let noted = edit.append(edit.root(), entry)?;
        for (name, text) in texts {
            edit.put_erasable(noted, name, &text)?;
        }
        self.noted_text(edit.commit().bytes(b"note").await)?;
        Ok(noted)
    }

    /// Adds the outcome to an entry, and the version that has it.
    pub(super) async fn conclude(
        &self,
        noted: NodeId,
        outcome: Result<Version, BoardError>,
    ) -> Result<Version, BoardError> {
        self.conclude_about(noted, outcome.map(|version| (version, None)))
            .await
    }

    /// The same, and which board the entry is about, where that was not known before.
    pub(super) async fn conclude_about(
        &self,
        noted: NodeId,
        outcome: Result<(Version, Option<String>), BoardError>,
    ) -> Result<Version, BoardError> {
        let told = match &outcome {
            Ok(_) => DONE.to_owned(),
            Err(error) => error.to_string(),
        };
        let mut edit = self.log().await?.edit();
        edit.put_attribute(noted, of_entry::OUTCOME, told)?;
        if let Ok((version, board)) = &outcome {
            edit.put_attribute(noted, of_entry::VERSION, version.to_string())?;
            if let Some(board) = board {
                edit.put_attribute(noted, of_entry::BOARD, board)?;
            }
        }
        let concluded = self.noted(edit.commit().bytes(b"outcome").await);
        let (version, _) = outcome?;
        concluded?;
        Ok(version)
    }

    /// A page of the log; the newest entry comes first.
    ///
    /// # Errors
    /// [`BoardError::NoPage`], if there is no such page.
    pub fn audit(&self, page: usize) -> Result<(Vec<Entry>, Pages), BoardError> {
        let trees = self.0.store.trees();
        let Ok(log) = trees.get(TREE) else {
            return Ok((Vec::new(), pages(page, ENTRIES, 0)?));
        };
        let snapshot = log.snapshot();
        let root = snapshot.tree().root();
        let pages = pages(page, ENTRIES, root.child_count())?;
        let nodes = root.children_in(pages.range_from_end());
        let mut entries: Vec<_> = nodes
            .map(|node| entry(node, |name| trees.value(node, name)))
            .collect();
        for entry in &mut entries {
            entry.board = self.address_of_entry(&entry.board);
        }
        entries.reverse();
        Ok((entries, pages))
    }

    /// The tree of the log, which its first entry makes.
    pub(super) async fn log(&self) -> Result<TreeHandle, BoardError> {
        let trees = self.0.store.trees();
        match trees.get(TREE) {
            Ok(log) => Ok(log),
            Err(_) => match trees.create(TREE).await {
                Err(CommitError::Name(NameError::Taken(_))) => {
                    trees.get(TREE).map_err(|_| BoardError::Crowded)
                }
                created => Ok(created?),
            },
        }
    }
}

impl Turn<'_> {
    /// What every entry has.
    pub(super) fn entry(&self) -> Attributes {
        let entry = Attributes::new()
            .with(of_entry::TIME, SystemTime::now().to_sortable())
            .with(of_entry::WHO, self.by.who)
            .with(of_entry::MEASURE, self.measure.word());
        match self.key {
            Some(key) => entry.with(of_entry::TOKEN, key),
            None => entry,
        }
    }
}

fn entry<'a>(node: Node<'a>, value: impl Fn(&str) -> Option<Value<'a>>) -> Entry {
    let text = |name| node.get_str(name).map(str::to_owned);
    let erasable = |name| {
        let bytes = value(name)?.bytes()?.to_vec();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let time = node.get(of_entry::TIME);
    let message = node.get(of_entry::MESSAGE);
    Entry {
        time: time
            .and_then(|bytes| SystemTime::from_sortable(bytes).ok())
            .unwrap_or(UNIX_EPOCH),
        who: text(of_entry::WHO).unwrap_or_default(),
        measure: node.get_str(of_entry::MEASURE).and_then(Measure::of_word),
        name: erasable(of_entry::NAME),
        board: text(of_entry::BOARD).unwrap_or_default(),
        message: message.and_then(|bytes| u64::from_sortable(bytes).ok()),
        why: erasable(of_entry::WHY).unwrap_or_default(),
        outcome: text(of_entry::OUTCOME),
    }
}

pub(super) fn check(why: &str) -> Result<String, Invalid> {
    let why = one_line(why);
    let mut invalid = Invalid::default();
    invalid.expect_some(Field::Why, "Say why; it stands in the log.", &why);
    invalid.expect_line(Field::Why, &why, MAX_WHY);
    match invalid.0.is_empty() {
        true => Ok(why),
        false => Err(invalid),
    }
}

/// The name of a moderator, as the log has it.
///
/// # Errors
/// [`Invalid`]: it is missing, or too long.
pub fn check_moderator(name: &str) -> Result<String, Invalid> {
    let name = one_line(name);
    let mut invalid = Invalid::default();
    invalid.expect_some(
        Field::Author,
        "Say who you are; it stands in the log.",
        &name,
    );
    invalid.expect_line(Field::Author, &name, MAX_AUTHOR);
    match invalid.0.is_empty() {
        true => Ok(name),
        false => Err(invalid),
    }
}
