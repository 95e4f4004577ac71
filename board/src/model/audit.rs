//! What moderators do to the messages of others, and the log of it.
//!
//! - The log is a tree of the forest's own, `audit`, whose root has an entry for each measure, in order.
//! - An entry is durable before its measure is taken, and gets its outcome afterwards. So nothing is done that is not
//!   in the log; an entry without an outcome was interrupted.
//! - An entry names the board by its tree and the message by its number. It has neither the title of a board nor the
//!   text of a message. The name of a person and the reason are erasable.

use std::time::{SystemTime, UNIX_EPOCH};

use weald::forest::{Attributes, CommitError, NameError, Node, NodeId, Sortable, TreeHandle};
use weald::forest::{Value, Version};

use super::author::Requester;
use super::board_at::pages;
use super::boards::Boards;
use super::draft::{Field, Invalid, MAX_AUTHOR, one_line};
use super::error::BoardError;
use super::name::BoardName;
use super::names::NameKey;
use super::pages::Pages;
use super::revise::Target;

const TREE: &str = "audit";

/// How many entries are on a page of the log.
const ENTRIES: usize = 50;

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
    pub(in crate::model) const OUTCOME: &str = "outcome";
}

/// What a moderator does to a message, to a board, or to a protected name.
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
    const ALL: [Self; 4] = [Self::Delete, Self::Restore, Self::Erase, Self::Free];

    /// Its name in forms, in JSON and in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Restore => "restore",
            Self::Erase => "erase",
            Self::Free => "free",
        }
    }

    /// The measure against a message or a board that has this name.
    pub fn of_message(word: &str) -> Option<Self> {
        Self::of_word(word).filter(|measure| *measure != Self::Free)
    }

    /// The measure of a name.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl Boards {
    /// Takes a measure of a moderator, called `who`, after it is in the log. Returns the version that has it.
    ///
    /// # Errors
    /// [`BoardError::Invalid`], if there is no reason; else those of [`delete`](Self::delete). If the log takes no
    /// entry, nothing is done.
    pub async fn moderate(
        &self,
        (board, id): (&BoardName, NodeId),
        measure: Measure,
        (who, why): (&str, &str),
    ) -> Result<Version, BoardError> {
        let why = check(why)?;
        self.board_or_deleted(board)?.message(id)?;
        let entry = entry_of(who, measure)
            .with(of_entry::BOARD, self.board_of_entry(board)?)
            .with(of_entry::MESSAGE, id.get().to_sortable());
        let noted = self.note(entry, [(of_entry::WHY, &why)]).await?;
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
            Measure::Free => Err(BoardError::no_message(id)),
        };
        self.conclude(noted, outcome).await
    }

    /// Frees a protected name without its passphrase, after that is in the log.
    ///
    /// # Errors
    /// [`BoardError::Invalid`], if there is no reason; else those of [`free`](Self::free). If the log takes no entry,
    /// nothing is done.
    pub async fn free_name(&self, name: &str, (who, why): (&str, &str)) -> Result<(), BoardError> {
        let why = check(why)?;
        let name = one_line(name);
        let key = NameKey::of(&name).filter(|key| self.is_protected(*key));
        let key = key.ok_or(BoardError::NoName)?;
        let entry = entry_of(who, Measure::Free);
        let texts = [(of_entry::NAME, &name), (of_entry::WHY, &why)];
        let noted = self.note(entry, texts).await?;
        let outcome = self.free(key).await;
        self.conclude(noted, outcome).await
    }

    /// Puts an entry into the log, with texts that can be erased.
    pub(super) async fn note<const N: usize>(
        &self,
        entry: Attributes,
        texts: [(&str, &String); N],
    ) -> Result<NodeId, BoardError> {
        let mut edit = self.log().await?.edit().blind();
        let noted = edit.append(edit.root(), entry)?;
        for (name, text) in texts {
            edit.put_erasable(noted, name, text)?;
        }
        self.noted(edit.commit().bytes(b"note").await)?;
        Ok(noted)
    }

    /// Adds the outcome to an entry.
    pub(super) async fn conclude<T>(
        &self,
        noted: NodeId,
        outcome: Result<T, BoardError>,
    ) -> Result<T, BoardError> {
        let told = match &outcome {
            Ok(_) => "done".to_owned(),
            Err(error) => error.to_string(),
        };
        let mut edit = self.log().await?.edit();
        edit.put_attribute(noted, of_entry::OUTCOME, told)?;
        let concluded = edit.commit().bytes(b"outcome").await;
        let value = outcome?;
        concluded?;
        Ok(value)
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
    async fn log(&self) -> Result<TreeHandle, BoardError> {
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

/// What every entry has.
pub(super) fn entry_of(who: &str, measure: Measure) -> Attributes {
    Attributes::new()
        .with(of_entry::TIME, SystemTime::now().to_sortable())
        .with(of_entry::WHO, who)
        .with(of_entry::MEASURE, measure.word())
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
