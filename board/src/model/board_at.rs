//! One board in one version, from which a page is computed: it neither waits, nor changes, nor makes anybody wait.
//!
//! Invariant: a message that is deleted in the newest version is not shown in an older one either.

use std::sync::Arc;
use std::time::SystemTime;

use weald::forest::{Node, NodeId, Query, Snapshot, Version};

use super::error::BoardError;
use super::message::{Body, Message, attribute, deleted_by};
use super::name::BoardName;
use super::pages::Pages;
use super::post::Post;
use super::store::{Source, Store};

/// How many topics are on a page of a board.
pub const TOPICS: usize = 20;

/// The least number of nodes for which it pays to read ahead, as `Forest::prefetch` does.
const LARGE: u64 = 1 << 14;

/// How many answers of a topic are counted; beyond that a page says "more than".
const COUNTED: usize = 99;

/// The names of the attributes of a board's root. The title, what it is about, and the address are erasable; the id is
/// random, and never changes.
pub(crate) mod of_board {
    pub(crate) const TITLE: &str = "title";
    pub(crate) const ABOUT: &str = "about";
    pub(crate) const TOKEN: &str = "token";
    pub(crate) const ADDRESS: &str = "address";
    pub(crate) const ID: &str = "id";
    pub(crate) const HIDDEN: &str = "hidden";
    pub(crate) const CHANGED: &str = "changed";
}

/// The title and the address of a board. They never change, but may be erased. So they are the same in every version,
/// and are read from the tree when the forest is opened.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) title: String,
    pub(crate) about: String,
}

impl Called {
    /// What the root of a board has.
    pub(crate) fn of(board: &Snapshot, store: &Store) -> Self {
        let root = board.tree().root();
        let text = |name| {
            let value = store.trees().value(root, name)?;
            Some(String::from_utf8_lossy(value.bytes()?).into_owned())
        };
        Self {
            title: text(of_board::TITLE).unwrap_or_else(|| "Erased title".to_owned()),
            about: text(of_board::ABOUT).unwrap_or_default(),
        }
    }
}

/// A board in one version.
#[derive(Clone, Debug)]
pub struct BoardAt {
    name: BoardName,
    called: Arc<Called>,
    snapshot: Snapshot,
    source: Source,
    /// If this is an older version: the newest one.
    newest: Option<Snapshot>,
}

/// What a list of boards shows of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardInfo {
    /// Its address.
    pub name: BoardName,
    /// Its title.
    pub title: String,
    /// What it is about, which may be empty.
    pub about: String,
    /// How many topics it has.
    pub topics: usize,
    /// How many messages it has, deleted ones included.
    pub messages: u64,
    /// When it was changed last.
    pub changed: SystemTime,
    /// The version of that change.
    pub version: Version,
}

/// A topic in the list of a board.
#[derive(Clone, Debug)]
pub struct Topic {
    /// The message that begins it.
    pub message: Message,
    /// How many answers it has, at all depths.
    pub answers: Answers,
}

/// How many answers a topic has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// This many.
    Exactly(usize),
    /// This many, and more.
    MoreThan(usize),
}

impl BoardAt {
    pub(crate) fn new(
        (name, called): (BoardName, Arc<Called>),
        (snapshot, source): (Snapshot, Source),
        newest: Option<Snapshot>,
    ) -> Self {
        let newest = newest.filter(|newest| newest.version() != snapshot.version());
        Self {
            name,
            called,
            snapshot,
            source,
            newest,
        }
    }

    /// Its address.
    pub fn name(&self) -> &BoardName {
        &self.name
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.snapshot.version()
    }

    /// When the version was made.
    pub fn time(&self) -> SystemTime {
        self.snapshot.time()
    }

    /// Whether this is an older version than the newest one.
    pub fn is_past(&self) -> bool {
        self.newest.is_some()
    }

    /// Whether it was read from the disk, with all other boards of its moment. They stay in memory as long as this
    /// does.
    pub fn is_from_disk(&self) -> bool {
        matches!(self.source, Source::Past(..))
    }

    /// The version on which the view of a reader depends: the newest one.
    pub fn newest(&self) -> Version {
        self.newest.as_ref().unwrap_or(&self.snapshot).version()
    }

    /// What a list of boards shows of it.
    pub fn info(&self) -> BoardInfo {
        BoardInfo {
            name: self.name.clone(),
            title: self.title().to_owned(),
            about: self.about().to_owned(),
            topics: self.topic_count(),
            messages: self.message_count(),
            changed: self.time(),
            version: self.version(),
        }
    }

    /// How many topics it has.
    pub fn topic_count(&self) -> usize {
        self.root().child_count()
    }

    /// How many messages it has, deleted ones included.
    pub fn message_count(&self) -> u64 {
        self.snapshot.tree().len() - 1
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.called.title
    }

    /// What it is about, which may be empty.
    pub fn about(&self) -> &str {
        &self.called.about
    }

    /// What names it for ever, whatever its address is; empty only before a board of an older program was opened again.
    pub fn id(&self) -> &str {
        self.root().get_str(of_board::ID).unwrap_or_default()
    }

    /// Whether a moderator has deleted it, in the newest version.
    pub fn is_deleted(&self) -> bool {
        is_hidden(self.newest.as_ref().unwrap_or(&self.snapshot))
    }

    /// A message.
    ///
    /// # Errors
    /// [`BoardError::NoMessage`].
    pub fn message(&self, id: NodeId) -> Result<Message, BoardError> {
        self.node(id).map(|node| self.read(node))
    }

    /// A page of topics, the one with the latest message first.
    ///
    /// # Errors
    /// [`BoardError::NoPage`], if there is no such page.
    pub fn topics(&self, page: usize) -> Result<(Vec<Topic>, Pages), BoardError> {
        let (topics, pages) = self.each_topic(page)?;
        Ok((topics.collect(), pages))
    }

    /// The same, each of which is read when it is asked for.
    pub(crate) fn each_topic(
        &self,
        page: usize,
    ) -> Result<(impl ExactSizeIterator<Item = Topic>, Pages), BoardError> {
        let pages = self.pages_of_topics(page)?;
        let nodes: Vec<_> = self.root().children_in(pages.range_from_end()).collect();
        self.prefetch(&nodes);
        let topics = nodes.into_iter().rev().map(|node| self.topic(node));
        Ok((topics, pages))
    }

    /// The page with this number of its topics.
    ///
    /// # Errors
    /// [`BoardError::NoPage`], if there is no such page.
    pub(crate) fn pages_of_topics(&self, page: usize) -> Result<Pages, BoardError> {
        pages(page, TOPICS, self.root().child_count())
    }

    /// The newest messages, the newest first.
    pub fn latest(&self, most: usize) -> Vec<Message> {
        let query = Query::prefix(attribute::TIME, "").reverse().limit(most);
        let found: Vec<_> = self.snapshot.find(&query).collect();
        self.read_all(&found)
    }

    fn topic(&self, node: Node<'_>) -> Topic {
        let counted = match node.child_count() {
            0 => 0,
            _ => node.preorder().skip(1).take(COUNTED + 1).count(),
        };
        let answers = match counted > COUNTED {
            true => Answers::MoreThan(COUNTED),
            false => Answers::Exactly(counted),
        };
        let message = self.read(node);
        Topic { message, answers }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.snapshot.tree().root()
    }

    pub(crate) fn node(&self, id: NodeId) -> Result<Node<'_>, BoardError> {
        let node = self.snapshot.tree().node(id);
        let node = node.filter(|node| node.parent().is_some());
        node.ok_or_else(|| BoardError::no_message(id))
    }

    /// The messages of several nodes, as readers see them.
    pub(crate) fn read_all(&self, nodes: &[Node<'_>]) -> Vec<Message> {
        self.prefetch(nodes);
        nodes.iter().map(|node| self.read(*node)).collect()
    }

    /// Reads ahead what messages need, because a large board is in no cache of the processor.
    fn prefetch(&self, nodes: &[Node<'_>]) {
        self.source.prefetch(nodes, attribute::POST);
        let newest = self.newest.as_ref();
        if let Some(newest) = newest.filter(|newest| newest.tree().len() >= LARGE) {
            let now = nodes
                .iter()
                .filter_map(|node| newest.tree().node(node.id()));
            Node::prefetch(&now.collect::<Vec<_>>());
        }
    }

    /// The message of a node, as readers see it.
    pub(crate) fn read(&self, node: Node<'_>) -> Message {
        let mut message = Message::of(node, self.source.value(node, attribute::POST));
        let newest = self.newest.as_ref();
        let now = newest.and_then(|newest| newest.tree().node(node.id()));
        if let (Body::Said(_), Some(by)) = (&message.body, now.and_then(deleted_by)) {
            message.body = Body::Deleted(by);
        }
        message
    }

    /// What a message says, even if it is deleted; `None` if it was erased.
    pub(crate) fn post(&self, node: Node<'_>) -> Option<Post> {
        let value = self.source.value(node, attribute::POST)?;
        value.bytes().map(|bytes| Post::of_bytes(bytes.into()))
    }
}

/// Whether a board is deleted.
pub(crate) fn is_hidden(board: &Snapshot) -> bool {
    board.tree().root().get(of_board::HIDDEN).is_some()
}

pub(crate) fn pages(number: usize, size: usize, items: usize) -> Result<Pages, BoardError> {
    let pages = Pages::new(number, size, items);
    pages.ok_or(BoardError::NoPage(number))
}
