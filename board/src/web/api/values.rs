//! Boards and messages as JSON.

use serde::{Serialize, Serializer};
use weald::forest::Version;

use crate::model::{
    Answers, BoardAt, BoardError, BoardInfo, Body, Deed, Message, Pages, Shown, State, Topic,
};
use crate::text::moment::{Rfc3339, machine};

use super::super::json::Json;

/// About how many bytes a list has without its messages, and a message without its text.
const HEAD: usize = 512;
const MESSAGE: usize = 256;

/// A board in the list of all.
#[derive(Serialize)]
pub(crate) struct BoardValue<'a> {
    name: &'a str,
    title: &'a str,
    about: &'a str,
    topics: usize,
    messages: u64,
    changed: Rfc3339,
    #[serde(serialize_with = "as_it_is_printed")]
    version: Version,
}

impl<'a> BoardValue<'a> {
    pub(crate) fn new(board: &'a BoardInfo) -> Self {
        Self {
            name: board.name.as_str(),
            title: &board.title,
            about: &board.about,
            topics: board.topics,
            messages: board.messages,
            changed: Rfc3339::of(board.changed),
            version: board.version,
        }
    }

    fn of(board: &'a BoardAt) -> Self {
        Self {
            name: board.name().as_str(),
            title: board.title(),
            about: board.about(),
            topics: board.topic_count(),
            messages: board.message_count(),
            changed: Rfc3339::of(board.time()),
            version: board.version(),
        }
    }

    fn write(&self, json: &mut Json) {
        json.raw("{\"name\":").text(self.name);
        json.raw(",\"title\":").text(self.title);
        json.raw(",\"about\":").text(self.about);
        json.raw(",\"topics\":").number(self.topics as u64);
        json.raw(",\"messages\":").number(self.messages);
        json.raw(",\"changed\":").time(&self.changed);
        json.raw(",\"version\":\"").version(self.version);
        json.raw("\"}");
    }
}

fn as_it_is_printed<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

/// A list of messages, on numbered pages of one version of a board.
#[derive(Serialize)]
pub(crate) struct ListValue<'a> {
    board: BoardValue<'a>,
    page: usize,
    pages: usize,
    messages: Vec<MessageValue<'a>>,
}

impl<'a> ListValue<'a> {
    pub(crate) fn new(board: &'a BoardAt, pages: Pages, messages: Vec<MessageValue<'a>>) -> Self {
        Self {
            board: BoardValue::of(board),
            page: pages.number,
            pages: pages.count,
            messages,
        }
    }

    /// As `serde_json` writes it, for a fraction of the time.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let texts = self
            .messages
            .iter()
            .map(|it| it.text.map_or(0, |it| it.0.len()));
        let room = HEAD + MESSAGE * self.messages.len() + texts.sum::<usize>();
        let mut json = self.head(room);
        json.list(&self.messages, |json, message| message.write(json));
        json.raw("}");
        json.into_bytes()
    }

    fn head(&self, room: usize) -> Json {
        let mut json = Json::with_room(room);
        json.raw("{\"board\":");
        self.board.write(&mut json);
        json.raw(",\"page\":").number(self.page as u64);
        json.raw(",\"pages\":").number(self.pages as u64);
        json.raw(",\"messages\":");
        json
    }
}

/// A page of topics, each of which is read and written before the next one: so none is moved.
///
/// # Errors
/// [`BoardError::NoPage`].
pub(crate) fn topics_to_json(board: &BoardAt, page: usize) -> Result<Vec<u8>, BoardError> {
    let (topics, pages) = board.each_topic(page)?;
    let room = HEAD + 2 * MESSAGE * topics.len();
    let mut json = ListValue::new(board, pages, Vec::new()).head(room);
    json.list(topics, |json, topic| {
        MessageValue::of_topic(&topic).write(json);
    });
    json.raw("}");
    Ok(json.into_bytes())
}

/// A part of a post: UTF-8 that was looked at when the post was read, and is not looked at again to be written.
#[derive(Clone, Copy)]
struct Text<'a>(&'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(str::from_utf8(self.0).unwrap_or_default())
    }
}

/// A message. It borrows what the message says, because a list of messages is what is asked for most.
#[derive(Serialize)]
pub(crate) struct MessageValue<'a> {
    id: u64,
    parent: Option<u64>,
    /// `said`, `deleted` or `erased`.
    state: &'static str,
    author: Option<Text<'a>>,
    /// Whether the name of the author is protected, and was the author's.
    proven: bool,
    title: Option<Text<'a>>,
    text: Option<Text<'a>>,
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
        let parts = message.post().map(crate::model::Post::parts);
        Self {
            id: message.id.get(),
            parent: message.parent.map(weald::forest::NodeId::get),
            state: match message.body {
                Body::Said(_) => "said",
                Body::Deleted(_) => "deleted",
                Body::Erased(_) => "erased",
            },
            author: parts.map(|[author, ..]| Text(author)),
            proven: parts.is_some() && message.is_proven,
            title: parts
                .map(|[_, title, _]| Text(title))
                .filter(|it| !it.0.is_empty()),
            text: parts.map(|[.., text]| Text(text)),
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

    fn write(&self, json: &mut Json) {
        json.raw("{\"id\":").number(self.id);
        // What most messages have in a row is written as one text.
        match (self.parent, self.state) {
            (None, "said") => json.raw(",\"parent\":null,\"state\":\"said\",\"author\":"),
            (parent, state) => {
                match parent {
                    Some(parent) => json.raw(",\"parent\":").number(parent),
                    None => json.raw(",\"parent\":null"),
                };
                json.raw(",\"state\":\"").raw(state).raw("\",\"author\":")
            }
        };
        json.utf8_or_null(self.author.map(|it| it.0));
        json.raw(match self.proven {
            true => ",\"proven\":true,\"title\":",
            false => ",\"proven\":false,\"title\":",
        });
        json.utf8_or_null(self.title.map(|it| it.0));
        json.raw(",\"text\":")
            .utf8_or_null(self.text.map(|it| it.0));
        json.raw(",\"time\":").time(&self.time);
        match &self.edited {
            Some(edited) => json.raw(",\"edited\":").time(edited).raw(",\"replies\":"),
            None => json.raw(",\"edited\":null,\"replies\":"),
        };
        json.number(self.replies as u64);
        if let Some(answers) = self.answers {
            json.raw(",\"answers\":").number(answers as u64);
        }
        if let Some(level) = self.level {
            json.raw(",\"level\":").number(level as u64);
        }
        json.raw("}");
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_list_is_written_as_serde_writes_it() {
        let time = Rfc3339::of(UNIX_EPOCH + Duration::from_secs(1_763_934_245));
        let said = MessageValue {
            id: 7,
            parent: None,
            state: "said",
            author: Some(Text(b"Ada \"A\"")),
            proven: true,
            title: None,
            text: Some(Text("one\ntwo & <three>, fünf".as_bytes())),
            time,
            edited: Some(time),
            replies: 2,
            answers: Some(3),
            level: None,
        };
        let gone = MessageValue {
            id: 8,
            parent: Some(7),
            state: "deleted",
            author: None,
            proven: false,
            title: Some(Text(b"\x01")),
            text: None,
            time,
            edited: None,
            replies: 0,
            answers: None,
            level: Some(1),
        };
        let board = |title: &'static str| BoardValue {
            name: "tea",
            title,
            about: "\\",
            topics: 1,
            messages: 2,
            changed: time,
            version: "1.22".parse().unwrap(),
        };
        for messages in [vec![], vec![said, gone]] {
            let list = ListValue {
                board: board("Tee\t"),
                page: 1,
                pages: 12,
                messages,
            };
            let written = String::from_utf8(list.to_json()).unwrap();
            assert_eq!(written, serde_json::to_string(&list).unwrap());
        }
    }
}
