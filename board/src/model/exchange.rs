//! A board on its way to another place: its messages one after the other, and a board made of such messages.
//!
//! - One version of a board leaves. Deleted messages leave as deleted; only moderators get their text.
//! - A board that arrives appears whole or not at all: the messages go into a tree that is not a board yet, and becomes
//!   one at the end by its new name. A tree that an interrupted import left is deleted at the next start.
//! - The messages get new numbers, and their histories begin anew.

use std::collections::HashMap;
use std::time::SystemTime;

use weald::forest::{Attributes, Level, NodeId, Sortable, TreeHandle};

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

impl Boards {
    /// Makes a board of messages that come from another one, each after the one that it answers. It is durable when
    /// this returns.
    ///
    /// # Errors
    /// [`BoardError::BoardTaken`]; [`BoardError::Invalid`] about the title; [`BoardError::NoMessage`], if a message
    /// answers one that did not come before it, or is too deep in its thread; [`BoardError::Storage`].
    pub async fn arrive(
        &self,
        name: &BoardName,
        (title, about): (&str, &str),
        messages: &[Traveller],
    ) -> Result<(), BoardError> {
        check(title, about)?;
        if self.0.addresses.find(name).is_some() {
            return Err(BoardError::BoardTaken(name.to_string()));
        }
        let interim = self.interim((name, title, about), None).await?;
        if let Err(error) = fill(&interim, messages).await {
            self.give_up(&interim).await;
            return Err(error);
        }
        self.become_board(interim, name).await
    }
}

async fn fill(tree: &TreeHandle, messages: &[Traveller]) -> Result<(), BoardError> {
    // The new number of each message, and how deep it is.
    let mut places: HashMap<u64, (NodeId, usize)> = HashMap::with_capacity(messages.len());
    let last_answers = last_answers(messages);
    let mut rest = messages;
    while !rest.is_empty() {
        let mut edit = tree.edit().blind();
        let (mut count, mut bytes) = (0, 0);
        for message in rest.iter().take(MESSAGES) {
            let refused = || BoardError::NoMessage(message.parent.unwrap_or(message.id));
            let (above, depth) = match message.parent {
                None => (edit.root(), 0),
                Some(parent) => *places.get(&parent).ok_or_else(refused)?,
            };
            if depth > MAX_DEPTH || places.contains_key(&message.id) {
                return Err(refused());
            }
            let mut attributes = attributes(message);
            if let Some(active) = last_answers.get(&message.id) {
                attributes = attributes.with(attribute::ACTIVE, active.to_sortable());
            }
            let id = edit.append(above, attributes)?;
            if let Some(post) = &message.post {
                edit.put_erasable(id, attribute::POST, post.bytes())?;
                bytes += post.bytes().len();
            }
            places.insert(message.id, (id, depth + 1));
            count += 1;
            if bytes >= BYTES {
                break;
            }
        }
        rest = &rest[count..];
        // The commit that makes it a board comes after all of them, and is durable only with them.
        edit.commit()
            .level(Level::Accepted)
            .bytes(b"import")
            .await?;
    }
    Ok(())
}

/// When each topic was last answered.
fn last_answers(messages: &[Traveller]) -> HashMap<u64, SystemTime> {
    let mut last = HashMap::new();
    let mut topics = HashMap::new();
    for message in messages {
        let above = message.parent.and_then(|parent| topics.get(&parent));
        let topic = above.copied().unwrap_or(message.id);
        topics.insert(message.id, topic);
        let latest = last.entry(topic).or_insert(message.time);
        *latest = message.time.max(*latest);
    }
    last
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
