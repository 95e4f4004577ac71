//! A message as one version of its board has it, and the attributes of its node.
//!
//! | attribute | what it has |
//! |---|---|
//! | `post` | what it says; erasable ([`Post`]) |
//! | `time` | when it was written; indexed |
//! | `owner` | the hash of its author's secret |
//! | `active` | of a topic: when somebody last answered |
//! | `did` | what was done to it last: `edit`, `delete`, `restore` |
//! | `changed` | when that was |
//! | `was` | the last version before that change, so that the history of a message is a chain |
//! | `undid` | when the change was made that was taken back last |
//! | `proven` | its author knew the passphrase of the name |
//! | `hidden` | it is deleted: by its `author`, or by a `moderator` |

use std::time::{SystemTime, UNIX_EPOCH};

use weald::forest::{Node, NodeId, Sortable, Value, Version};

use super::author::Owner;
use super::post::Post;

/// The names of the attributes.
pub(crate) mod attribute {
    pub(crate) const POST: &str = "post";
    pub(crate) const TIME: &str = "time";
    pub(crate) const OWNER: &str = "owner";
    pub(crate) const ACTIVE: &str = "active";
    pub(crate) const DID: &str = "did";
    pub(crate) const CHANGED: &str = "changed";
    pub(crate) const WAS: &str = "was";
    pub(crate) const UNDID: &str = "undid";
    pub(crate) const PROVEN: &str = "proven";
    pub(crate) const HIDDEN: &str = "hidden";
}

/// The same as bytes: a name is compared, and not looked at as text first.
mod bytes_of {
    use super::attribute;

    pub(super) const TIME: &[u8] = attribute::TIME.as_bytes();
    pub(super) const OWNER: &[u8] = attribute::OWNER.as_bytes();
    pub(super) const ACTIVE: &[u8] = attribute::ACTIVE.as_bytes();
    pub(super) const DID: &[u8] = attribute::DID.as_bytes();
    pub(super) const CHANGED: &[u8] = attribute::CHANGED.as_bytes();
    pub(super) const WAS: &[u8] = attribute::WAS.as_bytes();
    pub(super) const PROVEN: &[u8] = attribute::PROVEN.as_bytes();
    pub(super) const HIDDEN: &[u8] = attribute::HIDDEN.as_bytes();
}

/// A message in one version of its board.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its number, the same in every version.
    pub id: NodeId,
    /// The message that it answers; `None` if it begins a topic.
    pub parent: Option<NodeId>,
    /// What readers see of it.
    pub body: Body,
    /// When it was written.
    pub time: SystemTime,
    /// The last change, and when it was made.
    pub change: Option<(Deed, SystemTime)>,
    /// When somebody last answered in the topic that it begins.
    pub active: Option<SystemTime>,
    /// How many messages answer it directly.
    pub replies: usize,
    /// The owner, who may change it.
    pub owner: Option<Owner>,
    /// Whether its author's name is protected, and was when the message was written.
    pub is_proven: bool,
    /// The last version before its last change.
    pub(crate) was: Option<Version>,
}

/// The readable part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// What it says.
    Said(Post),
    /// It was deleted, and may come back.
    Deleted(DeletedBy),
    /// It was erased from every version, at this time.
    Erased(SystemTime),
}

/// Who deleted a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletedBy {
    /// The author.
    Author,
    /// A moderator.
    Moderator,
}

/// A change of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It says something else.
    Edit,
    /// It is hidden from readers.
    Delete,
    /// It is shown again.
    Restore,
}

impl Deed {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Restore => "restore",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        let all = [Self::Edit, Self::Delete, Self::Restore];
        all.into_iter().find(|deed| deed.word() == word)
    }
}

impl DeletedBy {
    fn of_word(word: &[u8]) -> Self {
        match word {
            b"author" => Self::Author,
            _ => Self::Moderator,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Moderator => "moderator",
        }
    }
}

impl Message {
    /// The message of a node, whose post was read from the forest that has the bytes.
    pub(crate) fn of(node: Node<'_>, post: Option<Value<'_>>) -> Self {
        let parent = node.parent().filter(|parent| parent.parent().is_some());
        let mut message = Self {
            id: node.id(),
            parent: parent.map(Node::id),
            body: Body::Deleted(DeletedBy::Author),
            time: UNIX_EPOCH,
            change: None,
            active: None,
            replies: node.child_count(),
            owner: None,
            is_proven: false,
            was: None,
        };
        let (mut deed, mut changed, mut hidden) = (None, None, None);
        // A message has few attributes, so one look at all takes less time than a search for each.
        for (name, value) in node.attributes().iter_bytes() {
            let text = || str::from_utf8(value).ok();
            let time = || SystemTime::from_sortable(value).ok();
            match name {
                bytes_of::TIME => message.time = time().unwrap_or(UNIX_EPOCH),
                bytes_of::OWNER => message.owner = Owner::of_bytes(value),
                bytes_of::ACTIVE => message.active = time(),
                bytes_of::DID => deed = text().and_then(Deed::of_word),
                bytes_of::CHANGED => changed = time(),
                bytes_of::WAS => message.was = text().and_then(|was| was.parse().ok()),
                bytes_of::PROVEN => message.is_proven = true,
                bytes_of::HIDDEN => hidden = Some(DeletedBy::of_word(value)),
                _ => {}
            }
        }
        message.change = deed.zip(changed);
        message.body = body(post, hidden);
        message
    }

    /// What it says, if readers see that.
    pub fn post(&self) -> Option<&Post> {
        match &self.body {
            Body::Said(post) => Some(post),
            Body::Deleted(_) | Body::Erased(_) => None,
        }
    }

    /// Whether it begins a topic.
    pub fn is_topic(&self) -> bool {
        self.parent.is_none()
    }

    /// When it was edited last, if that was its last change.
    pub fn edited(&self) -> Option<SystemTime> {
        let edit = self.change.filter(|(deed, _)| *deed == Deed::Edit);
        edit.map(|(_, when)| when)
    }
}

fn body(post: Option<Value<'_>>, deleted: Option<DeletedBy>) -> Body {
    match (post, deleted) {
        (Some(Value::Erased { when }), _) => Body::Erased(when),
        (_, Some(by)) => Body::Deleted(by),
        (Some(Value::Erasable(bytes)), None) => Body::Said(Post::of_bytes(bytes)),
        (Some(Value::Plain(bytes)), None) => Body::Said(Post::of_bytes(bytes.into())),
        // A message is never brought from another forest.
        (None | Some(Value::Elsewhere), None) => Body::Said(Post::new("", "", "")),
    }
}

/// Who deleted the message of a node, if it is deleted.
pub(crate) fn deleted_by(node: Node<'_>) -> Option<DeletedBy> {
    node.get(attribute::HIDDEN).map(DeletedBy::of_word)
}
