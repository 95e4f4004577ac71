//! A board on its way to another place: its messages one after the other, and a board made of such messages.
//!
//! - One version of a board leaves. Deleted messages leave as deleted; only moderators get their text.
//! - A board that arrives appears whole or not at all: the messages go into a tree that is not a board yet, and becomes
//!   one at the end by its new name. If it does not come to its end, the tree is deleted, at the latest at the next
//!   start.
//! - Only a commit of messages is in memory on the way, and where each message went; so a board of any size arrives.
//! - The messages get new numbers, and their histories begin anew.

use std::collections::HashMap;
use std::time::SystemTime;

use weald::forest::{Attributes, Edit, Level, NodeId, Sortable, TreeHandle};

use super::audit::{By, Measure, check as check_why, of_entry};
use super::author::Owner;
use super::board_at::BoardAt;
use super::boards::Boards;
use super::create::check;
use super::error::BoardError;
use super::message::{Body, Deed, DeletedBy, attribute};
use super::name::BoardName;
use super::post::Post;
use super::write::MAX_DEPTH;

/// How many messages, and about how many bytes of them, are in one commit.
const MESSAGES: usize = 256;
const BYTES: usize = 64 << 10;

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traveller {
    /// Its number in the board that it comes from.
    pub id: u64,
    /// The number of the message that it answers.
    pub parent: Option<u64>,
    /// What it says; `None` if that does not leave with it.
    pub post: Option<Post>,
    /// Whether it is hidden, and by whom. An erased message arrives as deleted by a moderator.
    pub deleted: Option<DeletedBy>,
    /// When it was written.
    pub time: SystemTime,
    /// When it was edited last.
    pub edited: Option<SystemTime>,
    /// The owner, who may change it; only moderators send it.
    pub owner: Option<Owner>,
    /// Whether its author's name was protected.
    pub is_proven: bool,
}

/// The place in a board up to which its messages have left.
#[derive(Clone, Debug)]
pub struct Departure {
    board: BoardAt,
    is_moderator: bool,
    /// The messages above the next one, each with the number of its next child.
    above: Vec<(NodeId, usize)>,
}

impl BoardAt {
    /// Its messages, each before its answers.
    pub fn leave(self, is_moderator: bool) -> Departure {
        Departure {
            above: vec![(self.root().id(), 0)],
            board: self,
            is_moderator,
        }
    }
}

impl Departure {
    /// The board.
    pub fn board(&self) -> &BoardAt {
        &self.board
    }

    fn traveller(&self, id: NodeId) -> Option<Traveller> {
        let node = self.board.node(id).ok()?;
        let message = self.board.read(node);
        let (post, deleted) = match &message.body {
            Body::Said(post) => (Some(post.clone()), None),
            Body::Deleted(by) if self.is_moderator => (self.board.post(node), Some(*by)),
            Body::Deleted(by) => (None, Some(*by)),
            Body::Erased(_) => (None, Some(DeletedBy::Moderator)),
        };
        Some(Traveller {
            id: id.get(),
            parent: message.parent.map(NodeId::get),
            post,
            deleted,
            time: message.time,
            edited: message.edited(),
            owner: message.owner.filter(|_| self.is_moderator),
            is_proven: message.is_proven,
        })
    }
}

impl Iterator for Departure {
    type Item = Traveller;

    fn next(&mut self) -> Option<Traveller> {
        loop {
            let (above, at) = self.above.last_mut()?;
            let node = self.board.snapshot().tree().node(*above)?;
            let Some(next) = node.child(*at) else {
                self.above.pop();
                continue;
            };
            *at += 1;
            let id = next.id();
            self.above.push((id, 0));
            return self.traveller(id);
        }
    }
}

/// A board that arrives, message by message. It becomes a board when it is [finished](Self::finish); dropped before, it
/// leaves nothing.
pub struct Arrival {
    boards: Boards,
    name: BoardName,
    /// `None` once it is a board.
    interim: Option<TreeHandle>,
    /// The new place of each message that came.
    places: HashMap<u64, Place>,
    batch: Batch,
}

/// Where a message is.
#[derive(Clone, Copy)]
struct Place {
    id: NodeId,
    /// The message that begins its topic, which was answered last at this time.
    topic: NodeId,
    depth: usize,
}

/// The messages of one commit.
#[derive(Default)]
struct Batch {
    edit: Option<Edit>,
    /// The topics that have new messages, and when the latest of these was written.
    latest: HashMap<NodeId, SystemTime>,
    count: usize,
    bytes: usize,
}

impl Boards {
    /// Begins a board of messages that come from another one.
    ///
    /// # Errors
    /// [`BoardError::BoardTaken`]; [`BoardError::Invalid`] about the title; [`BoardError::Storage`].
    pub async fn arrival(
        &self,
        name: &BoardName,
        (title, about): (&str, &str),
    ) -> Result<Arrival, BoardError> {
        check(title, about)?;
        if self.0.addresses.find(name).is_some() {
            return Err(BoardError::BoardTaken(name.to_string()));
        }
        Ok(Arrival {
            interim: Some(self.interim((name, title, about), None).await?),
            boards: self.clone(),
            name: name.clone(),
            places: HashMap::new(),
            batch: Batch::default(),
        })
    }
}

impl Arrival {
    /// Takes the next message. The one that it answers must have come before it.
    ///
    /// # Errors
    /// [`BoardError::NoMessage`], if a message answers one that did not come before it, is too deep in its thread, or
    /// has the number of an earlier one; [`BoardError::Storage`].
    pub async fn put(&mut self, message: &Traveller) -> Result<(), BoardError> {
        let refused = || BoardError::NoMessage(message.parent.unwrap_or(message.id));
        let above = match message.parent {
            None => None,
            Some(parent) => Some(*self.places.get(&parent).ok_or_else(refused)?),
        };
        let depth = above.map_or(0, |above| above.depth + 1);
        if depth > MAX_DEPTH || self.places.contains_key(&message.id) {
            return Err(refused());
        }
        let batch = &mut self.batch;
        let tree = self.interim.as_ref().ok_or_else(refused)?;
        let edit = batch.edit.get_or_insert_with(|| tree.edit().blind());
        let parent = above.map_or(edit.root(), |above| above.id);
        let attributes = match above {
            Some(_) => attributes(message),
            None => attributes(message).with(attribute::ACTIVE, message.time.to_sortable()),
        };
        let id = edit.append(parent, attributes)?;
        if let Some(post) = &message.post {
            edit.put_erasable(id, attribute::POST, post.bytes())?;
            batch.bytes += post.bytes().len();
        }
        batch.count += 1;
        let topic = above.map_or(id, |above| above.topic);
        if above.is_some() {
            let latest = batch.latest.entry(topic).or_insert(message.time);
            *latest = message.time.max(*latest);
        }
        let place = Place { id, topic, depth };
        self.places.insert(message.id, place);
        match batch.count >= MESSAGES || batch.bytes >= BYTES {
            true => self.commit().await,
            false => Ok(()),
        }
    }

    /// Makes it a board, durably.
    ///
    /// # Errors
    /// [`BoardError::BoardTaken`], if there is one with its address by now; [`BoardError::Storage`].
    pub async fn finish(mut self) -> Result<(), BoardError> {
        self.commit().await?;
        match self.interim.take() {
            Some(interim) => self.boards.become_board(interim, &self.name).await,
            None => Ok(()),
        }
    }

    /// The same by a moderator, after it is in the log. The entry names the board in the commit of its outcome, because
    /// the board has no tree of its own before.
    ///
    /// # Errors
    /// As [`finish`](Self::finish); [`BoardError::Invalid`], if there is no reason. If the log takes no entry, there is
    /// no board.
    pub async fn finish_by(self, by: By<'_>) -> Result<(), BoardError> {
        let texts = [(of_entry::WHY, check_why(by.why)?)];
        let (boards, name) = (self.boards.clone(), self.name.clone());
        let turn = boards.turn((by, Measure::Import), &[], &texts).await?;
        let noted = boards.note(&turn, turn.entry(), texts).await?;
        let outcome = self.finish().await.and_then(|()| {
            let version = boards.tree_or_deleted(&name)?.view().version();
            Ok((version, Some(boards.board_of_entry(&name)?)))
        });
        boards.conclude_about(noted, outcome).await?;
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), BoardError> {
        let batch = std::mem::take(&mut self.batch);
        let Some(mut edit) = batch.edit else {
            return Ok(());
        };
        for (topic, latest) in batch.latest {
            let before = edit.tree().node(topic);
            let before = before.and_then(|node| node.get(attribute::ACTIVE));
            let latest = latest.to_sortable();
            if before.is_none_or(|before| before < &latest[..]) {
                edit.put_attribute(topic, attribute::ACTIVE, latest)?;
            }
        }
        // The commit that makes it a board comes after all of them, and is durable only with them.
        let commit = edit.commit().level(Level::Accepted).bytes(b"import");
        self.boards.noted_text(commit.await)?;
        Ok(())
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if let Some(interim) = self.interim.take() {
            let boards = self.boards.clone();
            // Nobody waits for it. If it does not happen, the next start does it.
            weald::spawn(async move { boards.give_up(&interim).await }).detach();
        }
    }
}

fn attributes(message: &Traveller) -> Attributes {
    let mut attributes = Attributes::new().with(attribute::TIME, message.time.to_sortable());
    if let Some(owner) = &message.owner {
        attributes = attributes.with(attribute::OWNER, owner.bytes());
    }
    if message.is_proven {
        attributes = attributes.with(attribute::PROVEN, b"1");
    }
    if let Some(edited) = message.edited {
        attributes = attributes
            .with(attribute::DID, Deed::Edit.word())
            .with(attribute::CHANGED, edited.to_sortable());
    }
    match (message.deleted, &message.post) {
        (Some(by), _) => attributes.with(attribute::HIDDEN, by.word()),
        // A message without a text is not shown.
        (None, None) => attributes.with(attribute::HIDDEN, DeletedBy::Moderator.word()),
        (None, Some(_)) => attributes,
    }
}
