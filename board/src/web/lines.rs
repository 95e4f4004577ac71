//! A board as lines of JSON: the first is the board's, each other one a message, after the one that it answers.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::model::{
    BoardAt, BoardName, DeletedBy, Draft, Kind, MAX_DEPTH, NotAName, Owner, Post, Traveller,
};
use crate::text::moment::{machine, machine_exact, parse_exact};

use super::visitor::{hex, of_hex};

/// The word in the first line that says what the lines are.
const FORMAT: &str = "weald-board 1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardLine {
    format: String,
    name: String,
    title: String,
    #[serde(default)]
    about: String,
    /// The version that left, and when it was made; they mean nothing elsewhere.
    #[serde(default)]
    version: String,
    #[serde(default)]
    changed: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageLine {
    id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edited: Option<String>,
    /// By whom: `author` or `moderator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    proven: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The first line.
pub(crate) fn head(board: &BoardAt) -> Vec<u8> {
    line(&BoardLine {
        format: FORMAT.to_owned(),
        name: board.name().to_string(),
        title: board.title().to_owned(),
        about: board.about().to_owned(),
        version: board.version().to_string(),
        changed: machine(board.time()),
    })
}

/// The line of a message.
pub(crate) fn message(message: &Traveller) -> Vec<u8> {
    let post = message.post.as_ref();
    let title = post.map(Post::title).filter(|title| !title.is_empty());
    line(&MessageLine {
        id: message.id,
        parent: message.parent,
        author: post.map(|post| post.author().to_owned()),
        title: title.map(str::to_owned),
        text: post.map(|post| post.text().to_owned()),
        time: machine_exact(message.time),
        edited: message.edited.map(machine_exact),
        deleted: message.deleted.map(|by| by.word().to_owned()),
        owner: message.owner.map(|owner| hex(owner.bytes())),
        proven: message.is_proven,
    })
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// How far the clock of the other place may be ahead.
const AHEAD: Duration = Duration::from_secs(24 * 3_600);

/// What the first line says.
pub(crate) struct Head {
    pub(crate) name: BoardName,
    pub(crate) title: String,
    pub(crate) about: String,
}

/// Reads lines as they come. A mistake is told as a sentence with the number of its line.
pub(crate) struct Reader {
    /// How many lines were read.
    at: usize,
    /// How deep each message is in its thread.
    depths: HashMap<u64, usize>,
    /// The latest time that a message may have.
    latest: SystemTime,
}

impl Reader {
    pub(crate) fn new(now: SystemTime) -> Self {
        Self {
            at: 0,
            depths: HashMap::new(),
            latest: now + AHEAD,
        }
    }

    /// Reads the first line.
    pub(crate) fn head(&mut self, line: &[u8]) -> Result<Head, String> {
        self.at += 1;
        let board: BoardLine = self.parse(line)?;
        if board.format != FORMAT {
            return Err(self.wrong(&format!("the format is not “{FORMAT}”")));
        }
        let name = board.name.parse();
        let name = name.map_err(|error: NotAName| self.wrong(&error.to_string()))?;
        Ok(Head {
            name,
            title: board.title,
            about: board.about,
        })
    }

    /// Reads a further line; an empty one has no message.
    pub(crate) fn message(&mut self, line: &[u8]) -> Result<Option<Traveller>, String> {
        self.at += 1;
        if line.is_empty() {
            return Ok(None);
        }
        let read = self.parse(line)?;
        let message = traveller(read).map_err(|why| self.wrong(&why))?;
        let fits = fits(&message, &mut self.depths, self.latest);
        fits.map_err(|why| self.wrong(&why))?;
        Ok(Some(message))
    }

    /// A line that has no end within the bytes that are read at once.
    pub(crate) fn too_long(&self, most: usize) -> String {
        let at = self.at + 1;
        format!("Line {at}: it is longer than {} KiB.", most >> 10)
    }

    fn parse<'a, T: Deserialize<'a>>(&self, line: &'a [u8]) -> Result<T, String> {
        serde_json::from_slice(line).map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&self, why: &str) -> String {
        // What is wrong with a field is told in whole sentences.
        format!("Line {}: {}.", self.at, why.trim_end_matches('.'))
    }
}

/// Whether a message fits behind those that came before it. `depths` has the depth of each of them.
fn fits(
    message: &Traveller,
    depths: &mut HashMap<u64, usize>,
    latest: SystemTime,
) -> Result<(), String> {
    let depth = match message.parent {
        None => 0,
        Some(parent) => match depths.get(&parent) {
            Some(depth) => depth + 1,
            None => {
                return Err(format!(
                    "message {parent}, which it answers, comes nowhere before it"
                ));
            }
        },
    };
    if depth > MAX_DEPTH {
        return Err(format!("its thread is deeper than {MAX_DEPTH} answers"));
    }
    if message.edited.unwrap_or(message.time).max(message.time) > latest {
        return Err("its time is still to come".to_owned());
    }
    match depths.insert(message.id, depth) {
        None => Ok(()),
        Some(_) => Err(format!("there was a message {} before", message.id)),
    }
}

fn traveller(line: MessageLine) -> Result<Traveller, String> {
    let time = |text: &str| parse_exact(text).ok_or_else(|| format!("“{text}” is no time"));
    let kind = match line.parent {
        None => Kind::Topic,
        Some(_) => Kind::Reply,
    };
    let post = match line.text {
        None => None,
        Some(text) => {
            let draft = Draft {
                author: line.author.unwrap_or_default(),
                title: line.title.unwrap_or_default(),
                text,
            };
            Some(draft.check(kind).map_err(|invalid| invalid.to_string())?)
        }
    };
    let deleted = match line.deleted.as_deref() {
        None => None,
        Some("author") => Some(DeletedBy::Author),
        Some("moderator") => Some(DeletedBy::Moderator),
        Some(other) => return Err(format!("“{other}” deletes nothing")),
    };
    let owner = match &line.owner {
        None => None,
        Some(text) => {
            let owner = of_hex(text).and_then(|bytes| Owner::of_bytes(&bytes));
            Some(owner.ok_or_else(|| format!("“{text}” is no owner"))?)
        }
    };
    Ok(Traveller {
        id: line.id,
        parent: line.parent,
        post,
        deleted,
        time: time(&line.time)?,
        edited: line.edited.as_deref().map(time).transpose()?,
        owner,
        is_proven: line.proven,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"format\":\"weald-board 1\",\"name\":\"tea\",\"title\":\"Tea\"}\n";
    const TIME: &str = "\"time\":\"2026-11-23T21:44:05.000000007Z\"";

    fn now() -> SystemTime {
        parse_exact("2026-11-24T00:00:00.000000000Z").unwrap()
    }

    fn read(text: &str) -> Result<(Head, Vec<Traveller>), String> {
        let mut reader = Reader::new(now());
        let mut lines = text.as_bytes().split(|byte| *byte == b'\n');
        let head = reader.head(lines.next().unwrap_or_default())?;
        let messages = lines.map(|line| reader.message(line));
        let messages: Result<Vec<_>, _> = messages.collect();
        Ok((head, messages?.into_iter().flatten().collect()))
    }

    fn deep() -> String {
        let answers = (1..60).map(|id| format!("{{\"id\":{},\"parent\":{id},{TIME}}}\n", id + 1));
        format!("{HEAD}{{\"id\":1,{TIME}}}\n{}", answers.collect::<String>())
    }

    #[test]
    fn a_message_comes_back_as_it_left() {
        let lines = [
            format!("{{\"id\":7,\"author\":\"Ada\",\"title\":\"T\",\"text\":\"one\",{TIME}}}\n"),
            format!(
                "{{\"id\":9,\"parent\":7,\"author\":\"Alan\",\"text\":\"two\",{TIME},\"edited\":\"2026-11-24T00:00:00.000000000Z\",\
                 \"deleted\":\"author\",\"owner\":\"000102030405060708090a0b0c0d0e0f\",\"proven\":true}}\n"
            ),
        ];
        let (head, messages) = read(&format!("{HEAD}{}", lines.concat())).unwrap();
        assert_eq!((head.name.as_str(), head.title.as_str()), ("tea", "Tea"));
        let again: Vec<_> = messages.iter().map(message).collect();
        assert_eq!(again, lines.map(String::into_bytes));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let said = |rest: &str| format!("{HEAD}\n{{\"id\":7,{TIME}{rest}}}");
        for (text, told) in [
            (String::new(), "Line 1: "),
            (HEAD.replace('1', "2"), "Line 1: the format is not"),
            (
                HEAD.replace("\"tea\"", "\"../x\""),
                "Line 1: an address has",
            ),
            (said(",\"text\":\"x\""), "Line 3: A topic needs a title."),
            (
                said(",\"deleted\":\"Ada\""),
                "Line 3: “Ada” deletes nothing.",
            ),
            (said(",\"owner\":\"00\""), "Line 3: “00” is no owner."),
            (said(",\"x\":1"), "Line 3: unknown field `x`"),
            (said("").replace("44:05.0", "44:61.0"), "is no time."),
            (
                said("").replace("2026", "9999"),
                "Line 3: its time is still to come.",
            ),
            (
                said(",\"parent\":8"),
                "Line 3: message 8, which it answers, comes nowhere before it.",
            ),
            (
                format!("{}\n{{\"id\":7,{TIME}}}", said("")),
                "Line 4: there was a message 7 before.",
            ),
            (deep(), "Line 53: its thread is deeper than 50 answers."),
        ] {
            let error = read(&text).err().unwrap();
            assert!(error.contains(told), "{error}");
        }
    }
}
