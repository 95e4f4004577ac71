//! A board that is imported, as the lines of JSON that describe it.

use std::iter::once;

use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// A board that arrives.
#[derive(Arbitrary, Debug)]
pub struct Import<'a> {
    pub name: u16,
    pub title: &'a str,
    pub about: &'a str,
    pub messages: Vec<Arriving<'a>>,
    /// A line behind them.
    pub rest: &'a str,
}

/// A message that arrives.
#[derive(Arbitrary, Debug)]
pub struct Arriving<'a> {
    id: u8,
    parent: Option<u8>,
    author: Option<&'a str>,
    title: Option<&'a str>,
    text: Option<&'a str>,
    time: Time<'a>,
    edited: Option<Time<'a>>,
    deleted: Option<Word<'a>>,
    owner: Option<Word<'a>>,
    is_proven: bool,
}

#[derive(Arbitrary, Debug)]
pub enum Time<'a> {
    Sound { day: u8, nanosecond: u32 },
    Any(&'a str),
}

#[derive(Arbitrary, Debug)]
pub enum Word<'a> {
    Known(u8),
    Any(&'a str),
}

/// A board that is taken.
pub fn sound() -> Import<'static> {
    let message = |id, parent, title, deleted| Arriving {
        id,
        parent,
        author: Some("Ada"),
        title,
        text: Some("Green *tea*"),
        time: Time::Sound {
            day: id,
            nanosecond: 7,
        },
        edited: None,
        deleted,
        owner: Some(Word::Known(id)),
        is_proven: true,
    };
    Import {
        name: 0,
        title: "Tea",
        about: "",
        messages: vec![
            message(3, None, Some("Tea"), None),
            message(5, Some(3), None, Some(Word::Known(0))),
            message(4, Some(5), None, Some(Word::Known(1))),
        ],
        rest: "",
    }
}

/// The lines of JSON of a board that arrives.
pub fn lines(import: &Import<'_>) -> String {
    let head = serde_json::json!({
        "format": "weald-board 1",
        "name": format!("i{}", import.name),
        "title": import.title,
        "about": import.about,
    });
    let messages = import.messages.iter().map(|message| {
        let deleted = message.deleted.as_ref().map(|word| match word {
            Word::Known(at) => ["author", "moderator"][usize::from(at % 2)].to_owned(),
            Word::Any(text) => (*text).to_owned(),
        });
        let owner = message.owner.as_ref().map(|word| match word {
            Word::Known(byte) => format!("{byte:032x}"),
            Word::Any(text) => (*text).to_owned(),
        });
        let all = serde_json::json!({
            "id": message.id,
            "parent": message.parent,
            "author": message.author,
            "title": message.title,
            "text": message.text,
            "time": time(&message.time),
            "edited": message.edited.as_ref().map(time),
            "deleted": deleted,
            "owner": owner,
            "proven": message.is_proven,
        });
        all.to_string()
    });
    let all = once(head.to_string()).chain(messages);
    let rest = Some(import.rest).filter(|rest| !rest.is_empty());
    let all: Vec<_> = all.chain(rest.map(str::to_owned)).collect();
    all.join("\n")
}

fn time(time: &Time<'_>) -> String {
    match time {
        Time::Sound { day, nanosecond } => {
            let (day, part) = (day % 28 + 1, nanosecond % 1_000_000_000);
            format!("2025-02-{day:02}T21:44:05.{part:09}Z")
        }
        Time::Any(text) => (*text).to_owned(),
    }
}
