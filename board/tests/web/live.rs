//! Live updates: each change once, even after the reader, or the board, was away.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use weald_board::{Config, Storage};

use super::client::*;

/// The stream of a board's events.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(browser: &Browser, path: &str, last: &str) -> Self {
        let last = match last {
            "" => String::new(),
            last => format!("Last-Event-ID: {last}\r\n"),
        };
        Self::open_with(browser, path, &last)
    }

    fn open_with(browser: &Browser, path: &str, headers: &str) -> Self {
        let mut stream = connect(browser.address);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n",
            browser.address
        )
        .unwrap();
        let mut stream = Self(BufReader::new(stream));
        assert!(stream.line().starts_with("HTTP/1.1 200"));
        while stream.line() != "retry: 2000" {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        let read = read.expect("a line comes within a minute");
        assert!(read > 0, "the stream has ended");
        line.trim_end().to_owned()
    }

    /// The id and the data of the next event.
    fn next(&mut self) -> (String, serde_json::Value) {
        let mut id = String::new();
        loop {
            let line = self.line();
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return (id, serde_json::from_str(data).unwrap());
            }
        }
    }
}

/// The first line of an answer that may have no end.
fn status(browser: &Browser, path: &str) -> String {
    let mut stream = connect(browser.address);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n",
        browser.address
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

fn number(topic: &str) -> u64 {
    topic.rsplit('/').next().unwrap().parse().unwrap()
}

#[test]
fn a_reader_sees_each_change_once_and_resumes() {
    with_board(|mut browser| {
        topic(&mut browser, "one");
        let page = browser.get("/b/tea").body;
        let live = page
            .split("data-live=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let mut stream = Stream::open(&browser, live, "");
        let second = topic(&mut browser, "two");
        let (id, data) = stream.next();
        assert_eq!(data["messages"], serde_json::json!([number(&second)]));
        assert_eq!(
            (data["did"].as_str(), data["version"].as_str()),
            (Some("write"), Some(id.as_str()))
        );
        drop(stream);
        let third = topic(&mut browser, "three");
        let mut stream = Stream::open(&browser, "/api/boards/tea/events", &id);
        assert_eq!(
            stream.next().1["messages"],
            serde_json::json!([number(&third)])
        );
        let fourth = topic(&mut browser, "four");
        assert_eq!(
            stream.next().1["messages"],
            serde_json::json!([number(&fourth)])
        );
        // The stream is still open when the board stops, and does not hold it up.
        std::mem::forget(stream);
    });
}

#[test]
fn a_reader_resumes_with_another_program() {
    let directory = tempfile::tempdir().unwrap();
    let config = || Config {
        storage: Storage::Directory(directory.path().join("boards")),
        reads: None,
        writes: None,
        ..Config::default()
    };
    let mut last = String::new();
    let mut missed = 0;
    with_config(config(), |mut browser| {
        topic(&mut browser, "one");
        let mut stream = Stream::open(&browser, "/b/tea/live", "");
        topic(&mut browser, "two");
        last = stream.next().0;
        drop(stream);
        missed = number(&topic(&mut browser, "three"));
    });
    with_config(config(), |mut browser| {
        let mut stream = Stream::open(&browser, "/b/tea/live", &last);
        assert_eq!(stream.next().1["messages"], serde_json::json!([missed]));
        let next = number(&topic(&mut browser, "four"));
        assert_eq!(stream.next().1["messages"], serde_json::json!([next]));
    });
}

#[test]
fn one_address_cannot_take_the_place_of_all_readers() {
    let config = Config {
        most_readers_of_one: 1,
        proxies: vec![IpAddr::from([127, 0, 0, 1]).into()],
        reads: None,
        writes: None,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        topic(&mut browser, "one");
        let path = "/b/tea/live";
        let stream = Stream::open(&browser, path, "");
        let refused = browser.get(path);
        assert_eq!((refused.status, refused.header("retry-after")), (429, "10"));
        let from_elsewhere = Stream::open_with(&browser, path, "X-Forwarded-For: 192.0.2.1\r\n");
        drop(stream);
        let began = Instant::now();
        while !status(&browser, path).contains(" 200 ") {
            let is_late = began.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "the place of a reader that left is not free");
        }
        // A request that is refused for another reason takes no place.
        for _ in 0..3 {
            assert_eq!(browser.get("/b/nowhere/live").status, 404);
        }
        drop(from_elsewhere);
    });
}

#[test]
fn more_readers_than_allowed_are_refused() {
    let config = Config {
        most_readers: 1,
        reads: None,
        writes: None,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        topic(&mut browser, "one");
        let stream = Stream::open(&browser, "/b/tea/live", "");
        let refused = browser.get("/b/tea/live");
        assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
        // The place of one that goes away is free again, as soon as the server has noticed.
        drop(stream);
        let began = Instant::now();
        while !status(&browser, "/b/tea/live").contains(" 200 ") {
            let is_late = began.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "the place of a reader that left is not free");
        }
        for since in ["x", "1.2"] {
            let refused = browser.get(&format!("/b/tea/live?since={since}"));
            assert!((400..=404).contains(&refused.status), "{refused:?}");
        }
        assert_eq!(browser.get("/b/nowhere/live").status, 404);
    });
}
