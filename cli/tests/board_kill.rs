//! `weald board` killed with SIGKILL again and again, while clients write and follow: no acknowledged message is lost,
//! none is there twice, and each reader of live updates is told of each message once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "support/board.rs"]
mod support;

use support::{MINUTE, start_at};

const WRITERS: usize = 3;
const READERS: usize = 2;
/// How many messages are acknowledged between two kills.
const BETWEEN: usize = 12;

/// What the clients share.
struct Clients {
    address: String,
    is_over: AtomicBool,
    /// Something for each message that was acknowledged.
    acknowledged: Sender<()>,
    /// The text of each message that was acknowledged, by its number.
    written: Mutex<BTreeMap<u64, String>>,
}

impl Clients {
    /// Sends a request; `None` if there is no whole answer, because the board was killed.
    fn ask(&self, head: &str, headers: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = self.connect()?;
        let length = body.len();
        let rest = format!(
            "Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}"
        );
        write!(stream, "{head} HTTP/1.1\r\n{rest}\r\n{headers}\r\n{body}").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        Some((status, body.to_owned()))
    }

    fn connect(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(MINUTE)).unwrap();
        stream.set_write_timeout(Some(MINUTE)).unwrap();
        Some(stream)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Writes one message after the other; each is sent again until it is acknowledged.
    fn write(&self, writer: usize) {
        for number in 0.. {
            if self.is_over() {
                return;
            }
            let text = format!("message {number} of writer {writer}");
            let body = json!({"title": "T", "text": text}).to_string();
            let headers = format!(
                "Authorization: Bearer the-key-of-writer-{writer}\r\nIdempotency-Key: {number}\r\n"
            );
            let told = loop {
                let head = "POST /api/boards/tea/messages";
                match self.ask(head, &headers, &body) {
                    Some((201, told)) => break told,
                    // The board is just stopping or starting.
                    None | Some((503, _)) => std::thread::yield_now(),
                    Some(other) => panic!("{other:?}"),
                }
            };
            let told: Value = serde_json::from_str(&told).unwrap();
            let id = told["id"].as_u64().unwrap();
            let before = self.written.lock().unwrap().insert(id, text);
            assert_eq!(before, None, "two messages have the number {id}");
            let _ = self.acknowledged.send(());
        }
    }

    /// Follows the board from its beginning until it was told of the message with the number that `last` gets.
    fn follow(&self, begin: &str, last: &Mutex<Option<BTreeSet<u64>>>) -> Vec<u64> {
        let (mut id, mut told) = (begin.to_owned(), Vec::new());
        loop {
            let Some(stream) = self.connect() else {
                continue;
            };
            let Some(events) = self.events(stream, &id) else {
                continue;
            };
            for (version, messages) in events {
                id = version;
                told.extend(messages);
                let last = last.lock().unwrap();
                let has_all = |all: &BTreeSet<u64>| all.iter().all(|id| told.contains(id));
                if last.as_ref().is_some_and(has_all) {
                    return told;
                }
            }
        }
    }

    /// The whole events of a stream, until it breaks.
    fn events(
        &self,
        mut stream: TcpStream,
        after: &str,
    ) -> Option<impl Iterator<Item = (String, Vec<u64>)> + use<>> {
        let head = "GET /api/boards/tea/events HTTP/1.1\r\nHost: localhost\r\n";
        write!(stream, "{head}Last-Event-ID: {after}\r\n\r\n").ok()?;
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next()?.ok()?;
        if !status.contains(" 200 ") {
            return None;
        }
        let (mut id, mut data) = (String::new(), None);
        Some(std::iter::from_fn(move || {
            loop {
                let line = lines.next()?.ok()?;
                if let Some(text) = line.strip_prefix("id: ") {
                    text.clone_into(&mut id);
                } else if let Some(text) = line.strip_prefix("data: ") {
                    data = serde_json::from_str::<Value>(text).ok();
                } else if line.is_empty()
                    && let Some(data) = data.take()
                {
                    let messages = data["messages"].as_array()?.iter();
                    return Some((id.clone(), messages.filter_map(Value::as_u64).collect()));
                }
            }
        }))
    }
}

/// In the suite it is killed twice; with `WEALD_SOAK` as often as there is time for in so many seconds.
#[test]
fn soak_a_board_that_is_killed_loses_nothing_and_tells_everything_once() {
    let time = std::env::var("WEALD_SOAK").map_or(0, |seconds| seconds.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(time);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("boards");
    let words = [path.to_str().unwrap(), "--reads=0", "--writes=0"];
    // Clients ask from 127.0.0.1. If the board had that address, too, one could be connected with itself while the
    // board is away, and keep its port.
    let (mut board, address) = start_at("127.0.0.2:0", &words);
    let (acknowledged, acknowledgements) = channel();
    let clients = Arc::new(Clients {
        address,
        is_over: AtomicBool::new(false),
        acknowledged,
        written: Mutex::default(),
    });
    let made = clients.ask("POST /api/boards", "", "{\"title\": \"Tea\"}");
    let made: Value = serde_json::from_str(&made.unwrap().1).unwrap();
    let begin = made["version"].as_str().unwrap().to_owned();
    let all = Arc::new(Mutex::new(None));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let clients = Arc::clone(&clients);
            std::thread::spawn(move || clients.write(writer))
        })
        .collect();
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (clients, all, begin) = (Arc::clone(&clients), Arc::clone(&all), begin.clone());
            std::thread::spawn(move || clients.follow(&begin, &all))
        })
        .collect();

    let mut kills = 0;
    while kills < 2 || Instant::now() < until {
        // Those that came while it was being started do not count.
        while acknowledgements.try_recv().is_ok() {}
        for _ in 0..BETWEEN {
            let came = acknowledgements.recv_timeout(2 * MINUTE);
            came.expect("somebody writes");
        }
        board.0.kill().unwrap();
        board.0.wait().unwrap();
        kills += 1;
        board = start_at(&clients.address, &words).0;
    }
    clients.is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().unwrap();
    }
    let written = clients.written.lock().unwrap().clone();
    *all.lock().unwrap() = Some(written.keys().copied().collect());
    // The readers look when something happens.
    let body = "{\"title\": \"T\", \"text\": \"the last\"}";
    let last = clients
        .ask("POST /api/boards/tea/messages", "", body)
        .unwrap();
    let last: Value = serde_json::from_str(&last.1).unwrap();
    let last = last["id"].as_u64().unwrap();

    let written = is_there(&clients, written, last);
    for reader in readers {
        let mut told = reader.join().unwrap();
        told.retain(|id| *id != last);
        told.sort_unstable();
        let once: Vec<_> = written.keys().copied().collect();
        assert_eq!(told, once, "after {kills} kills");
    }
}

/// The board has what was acknowledged, each message once, and `last`.
fn is_there(clients: &Clients, written: BTreeMap<u64, String>, last: u64) -> BTreeMap<u64, String> {
    let there = clients.ask("GET /api/boards/tea/export", "", "").unwrap().1;
    let lines = there
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let there: Vec<_> = lines
        .filter(|line| line["id"] != last && line["id"].is_u64())
        .collect();
    let found: BTreeMap<_, _> = there
        .iter()
        .map(|line| {
            (
                line["id"].as_u64().unwrap(),
                line["text"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(found, written);
    let texts: BTreeSet<_> = found.values().collect();
    assert_eq!(texts.len(), found.len(), "a message is there twice");
    written
}
