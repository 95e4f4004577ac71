//! A message with the answers below it: one page of its direct answers, each with the first answers below it, so that a
//! page stays small however long the thread is. Answers that are not shown are counted, and have a page of their own.

use weald::forest::{Node, NodeId};

use super::board_at::{BoardAt, pages};
use super::error::BoardError;
use super::message::Message;
use super::pages::Pages;

/// How many direct answers are on a page.
pub const ANSWERS: usize = 12;
/// How many answers to each message below them are shown.
const BELOW: usize = 3;
/// How many answers below the direct ones are shown on a page.
const NESTED: usize = 13;
/// How many levels are shown.
const LEVELS: usize = 4;

/// A message and the answers below it.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The message.
    pub head: Message,
    /// The message that began its topic; `None` if it did so itself.
    pub topic: Option<Message>,
    /// The answers, each before those below it.
    pub answers: Vec<Shown>,
    /// The page of the direct answers.
    pub pages: Pages,
}

/// An answer as a page shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The answer.
    pub message: Message,
    /// How deep it is below the message of the page, from 1 on.
    pub level: usize,
    /// How many of its own answers are not shown.
    pub unshown: usize,
}

impl BoardAt {
    /// A message and a page of the answers below it, the oldest first.
    ///
    /// # Errors
    /// [`BoardError::NoMessage`]; [`BoardError::NoPage`], if there is no such page.
    pub fn thread(&self, id: NodeId, page: usize) -> Result<Thread, BoardError> {
        let node = self.node(id)?;
        let pages = pages(page, ANSWERS, node.child_count())?;
        let mut shown = Gathering {
            nodes: Vec::new(),
            places: Vec::new(),
            nested: NESTED,
        };
        for child in node.children_in(pages.range()) {
            shown.gather(child, 1);
        }
        let topic = topic_of(node);
        let messages = self.read_all(&shown.nodes).into_iter();
        let answers = messages
            .zip(shown.places)
            .map(|(message, (level, unshown))| Shown {
                message,
                level,
                unshown,
            });
        Ok(Thread {
            head: self.read(node),
            topic: (topic.id() != id).then(|| self.read(topic)),
            answers: answers.collect(),
            pages,
        })
    }
}

/// The node that began the topic of a message.
pub(crate) fn topic_of(node: Node<'_>) -> Node<'_> {
    let not_root = |node: &Node<'_>| node.parent().is_some();
    node.ancestors().filter(not_root).last().unwrap_or(node)
}

struct Gathering<'a> {
    /// The answers.
    nodes: Vec<Node<'a>>,
    /// Of each, how deep it is, and how many of its own answers are not shown.
    places: Vec<(usize, usize)>,
    /// How many more answers below the direct ones there is room for.
    nested: usize,
}

impl<'a> Gathering<'a> {
    /// Recursion is safe here: it ends at [`LEVELS`].
    fn gather(&mut self, node: Node<'a>, level: usize) {
        let children = node.child_count();
        let shown = match level < LEVELS {
            true => children.min(BELOW).min(self.nested),
            false => 0,
        };
        self.nested -= shown;
        self.nodes.push(node);
        self.places.push((level, children - shown));
        for child in node.children_in(0..shown) {
            self.gather(child, level + 1);
        }
    }
}
