//! Boards and messages as JSON.

use serde::Serialize;

use crate::model::{Answers, BoardAt, BoardInfo, Body, Deed, Message, Pages, Shown, State, Topic};
use crate::text::moment::{Rfc3339, machine};

/// A board in the list of all.
#[derive(Serialize)]
pub(crate) struct BoardValue {
    name: String,
    title: String,
    about: String,
    topics: usize,
    messages: u64,
    changed: String,
    version: String,
}

impl BoardValue {
    pub(crate) fn new(board: &BoardInfo) -> Self {
        Self {
            name: board.name.to_string(),
            title: board.title.clone(),
            about: board.about.clone(),
            topics: board.topics,
            messages: board.messages,
            changed: machine(board.changed),
            version: board.version.to_string(),
        }
    }
}

/// A list of messages, on numbered pages of one version of a board.
#[derive(Serialize)]
pub(crate) struct ListValue<'a> {
    board: BoardValue,
    page: usize,
    pages: usize,
    messages: Vec<MessageValue<'a>>,
}

impl<'a> ListValue<'a> {
    pub(crate) fn new(board: &BoardAt, pages: Pages, messages: Vec<MessageValue<'a>>) -> Self {
        Self {
            board: BoardValue::new(&board.info()),
            page: pages.number,
            pages: pages.count,
            messages,
        }
    }
}

/// A message. It borrows what the message says, because a list of messages is what is asked for most.
#[derive(Serialize)]
pub(crate) struct MessageValue<'a> {
    id: u64,
    parent: Option<u64>,
    /// `said`, `deleted` or `erased`.
    state: &'static str,
    author: Option<&'a str>,
    /// Whether the name of the author is protected, and was the author's.
    proven: bool,
    title: Option<&'a str>,
    text: Option<&'a str>,
    time: Rfc3339,
    edited: Option<Rfc3339>,
    /// How many messages answer it directly.
    replies: usize,
    /// Of a topic in a list: how many answers it has at all depths.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<usize>,
    /// Of an answer in a thread: how deep it is below the message that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<usize>,
}

impl<'a> MessageValue<'a> {
    pub(crate) fn new(message: &'a Message) -> Self {
        let post = message.post();
        let title = post
            .map(|post| post.title())
            .filter(|title| !title.is_empty());
        Self {
            id: message.id.get(),
            parent: message.parent.map(weald::forest::NodeId::get),
            state: match message.body {
                Body::Said(_) => "said",
                Body::Deleted(_) => "deleted",
                Body::Erased(_) => "erased",
            },
            author: post.map(|post| post.author()),
            proven: post.is_some() && message.is_proven,
            title,
            text: post.map(|post| post.text()),
            time: Rfc3339::of(message.time),
            edited: message.edited().map(Rfc3339::of),
            replies: message.replies,
            answers: None,
            level: None,
        }
    }

    pub(crate) fn of_topic(topic: &'a Topic) -> Self {
        let (Answers::Exactly(answers) | Answers::MoreThan(answers)) = topic.answers;
        Self {
            answers: Some(answers),
            ..Self::new(&topic.message)
        }
    }

    pub(crate) fn of_answer(answer: &'a Shown) -> Self {
        Self {
            level: Some(answer.level),
            ..Self::new(&answer.message)
        }
    }
}

/// A message with a page of the answers below it.
#[derive(Serialize)]
pub(crate) struct ThreadValue<'a> {
    pub(crate) version: String,
    pub(crate) message: MessageValue<'a>,
    pub(crate) page: usize,
    pub(crate) pages: usize,
    pub(crate) answers: Vec<MessageValue<'a>>,
}

/// The receipt of a change.
#[derive(Serialize)]
pub(crate) struct ReceiptValue {
    pub(crate) id: u64,
    /// The version of the board that has the change.
    pub(crate) version: String,
}

/// A message as it was for a while.
#[derive(Serialize)]
pub(crate) struct StateValue {
    /// `write`, `edit`, `delete` or `restore`.
    did: &'static str,
    time: String,
    version: String,
    author: Option<String>,
    title: Option<String>,
    text: Option<String>,
}

impl StateValue {
    pub(crate) fn new(state: &State) -> Self {
        let post = state.post.as_ref();
        Self {
            did: state.deed.map_or("write", Deed::word),
            time: machine(state.time),
            version: state.version.to_string(),
            author: post.map(|post| post.author().to_owned()),
            title: post.map(|post| post.title().to_owned()),
            text: post.map(|post| post.text().to_owned()),
        }
    }
}
