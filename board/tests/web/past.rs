//! Past versions that memory no longer has, read from the disk, as browsers and programs see them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use weald::forest::Forest;
use weald::forest::disk::{Directory, DiskForest, DiskJournal, Settings};
use weald_board::model::{Hashed, Store};
use weald_board::{Config, Storage};

use super::client::*;

const SECRET: &str = "the moderators' passphrase";
/// Far longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(120);
/// How many lines of an import are more than a connection of this machine holds.
const TAKEN: usize = 1_200;

/// Boards on disk, of which memory keeps only the newest version.
fn forgetful(path: &Path) -> Config {
    let journal = DiskJournal::open_on(Directory::create(path).unwrap(), Settings::new()).unwrap();
    let forest = DiskForest::recover(Forest::builder().keep(1), journal);
    let forest = weald::block_on(forest).unwrap();
    Config {
        storage: Storage::Open(Store::Disk(forest)),
        moderator: Some(Hashed::of(SECRET)),
        reads: None,
        writes: None,
        ..Config::default()
    }
}

/// The key of a moderator.
fn key(program: &mut Browser) -> String {
    let body = format!("{{\"name\": \"Grace\", \"passphrase\": \"{SECRET}\"}}");
    let session = program.json("POST", "/api/moderators", &[], &body).value();
    format!("Bearer {}", session["key"].as_str().unwrap())
}

/// The first line of an import.
fn head(name: &str) -> String {
    format!("{{\"format\":\"weald-board 1\",\"name\":\"{name}\",\"title\":\"Many\"}}\n")
}

/// A line of an import, of ten kilobytes.
fn line(id: usize) -> String {
    let said = "word ".repeat(1_999);
    format!(
        "{{\"id\":{id},\"title\":\"T\",\"text\":\"{said}\",\"time\":\"2026-11-23T21:44:05Z\"}}\n"
    )
}

/// A board of ten megabytes. Returns its version.
fn import(program: &mut Browser, name: &str) -> String {
    let text = head(name) + &(1..=1_000).map(line).collect::<String>();
    let key = key(program);
    let key = [("Authorization", key.as_str())];
    let made = program.json("POST", "/api/import", &key, &text);
    assert_eq!(made.status, 201, "{made:?}");
    made.value()["version"].as_str().unwrap().to_owned()
}

/// An import that is sent until it is told that this is enough, so it computes until then. Says of each twenty lines,
/// from when the board has taken more than the connection holds, that it was taken; returns the line with its status.
fn import_until(
    (address, key, name): (SocketAddr, &str, &str),
    is_enough: &AtomicBool,
    is_taken: &mpsc::Sender<()>,
) -> String {
    let mut stream = connect(address);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    write!(
        stream,
        "POST /api/import HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {key}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        chunk(&head(name))
    )
    .unwrap();
    for id in 1.. {
        if is_enough.load(Ordering::Relaxed) {
            break;
        }
        stream.write_all(chunk(&line(id)).as_bytes()).unwrap();
        if id >= TAKEN && id % 20 == 0 {
            is_taken.send(()).unwrap();
        }
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).unwrap();
    status
}

#[test]
fn one_who_reads_an_export_of_the_past_slowly_gets_no_second_one() {
    let directory = tempfile::tempdir().unwrap();
    with_config(forgetful(directory.path()), |mut program| {
        let then = import(&mut program, "many");
        let fields = [("title", "later"), ("text", "later"), ("author", "")];
        assert_eq!(program.fill("/b/many/write", &fields).status, 303);
        let old = format!("/b/many/export?at={then}");
        let mut slow = connect(program.address);
        write!(slow, "GET {old} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        // From its first byte on it keeps all boards of that moment in memory.
        slow.read_exact(&mut [0]).unwrap();
        let refused = program.get(&old);
        let wait = refused.header("retry-after").to_owned();
        assert_eq!((refused.status, wait.as_str()), (429, "30"), "{refused:?}");
        let now = program.get("/b/many/export");
        assert_eq!((now.status, now.body.lines().count()), (200, 1_002));
        drop(slow);
        while program.get(&old).status == 429 {}
        assert_eq!(program.get(&old).body.lines().count(), 1_001);
    });
}

#[test]
fn the_slider_and_the_history_reach_what_only_the_disk_has() {
    let directory = tempfile::tempdir().unwrap();
    with_config(forgetful(directory.path()), |mut browser| {
        let topic = topic(&mut browser, "text 0");
        for number in 1..25 {
            let text = format!("text {number}");
            let fields = [("title", "A topic"), ("text", &text), ("author", "Ada")];
            browser.fill(&format!("{topic}/edit"), &fields).place();
        }
        let link = |page: &str, words: &str| {
            let (before, _) = page.split_once(&format!(">{words}</a>"))?;
            let (_, link) = before.rsplit_once("href=\"")?;
            Some(link.split('"').next().unwrap().to_owned())
        };
        let mut found = Vec::new();
        let mut page = browser.get(&format!("{topic}/history")).body;
        loop {
            let states = page.matches("<h2>").count();
            found.push(states);
            let Some(older) = link(&page, "Older states") else {
                break;
            };
            page = browser.get(&older).body;
        }
        assert_eq!(found, [10, 10, 5]);
        assert!(
            page.contains("text 0") && page.contains("The newest states"),
            "{page}"
        );

        // Memory has one version, so there is no slider, but a way to the versions before.
        let now = browser.get("/b/tea");
        assert_eq!(now.header("x-robots-tag"), "");
        let now = now.body;
        assert!(!now.contains("name=\"step\""), "{now}");
        assert!(now.contains(" rel=\"nofollow\">Still earlier"), "{now}");
        let then = link(&now, "Still earlier versions").unwrap();
        let then = browser.get(&then);
        assert_eq!(then.header("x-robots-tag"), "noindex");
        let then = then.body;
        assert!(
            then.contains("This is the past.") && then.contains("text 23"),
            "{then}"
        );
        let value = |field: &str| {
            let input = then.split(&format!("name=\"{field}\"")).nth(1).unwrap();
            let value = input.split(" value=\"").nth(1).unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        let (of, last) = (value("of"), value("last"));
        let step = last.parse::<usize>().unwrap() - 3;
        let place = browser
            .get(&format!("/b/tea?of={of}&last={last}&step={step}"))
            .place();
        assert!(browser.get(&place).body.contains("text 20"));
    });
}

/// Writes to the board “Hot” until it is told that this is enough. Says of each message that it was taken.
fn write_until(address: SocketAddr, is_enough: &AtomicBool, is_written: &mpsc::Sender<()>) {
    let mut program = Browser::new(address);
    while !is_enough.load(Ordering::Relaxed) {
        let said = "{\"title\": \"T\", \"text\": \"x\"}";
        let written = program.json("POST", "/api/boards/hot/messages", &[], said);
        assert_eq!(written.status, 201, "{written:?}");
        is_written.send(()).unwrap();
    }
}

/// What others ask for: pages and lists of the board that is read and imported, and of another one, and a message.
fn ask_as_others_do(program: &mut Browser) {
    for path in ["/b/many", "/b/many/2", "/b/tea", "/api/boards/tea", "/"] {
        assert_eq!(program.get(path).status, 200, "{path}");
    }
    topic(program, "from somebody else");
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Happened {
    /// Others were answered, and the requests that compute and the writers of the hot board have gone on since.
    Answered,
    /// Those requests and writers were told that this is enough.
    Released,
    /// One of them has ended.
    Ended,
}

#[test]
fn those_who_never_read_requests_that_compute_and_a_hot_board_hold_nobody_up() {
    const ROUNDS: usize = 5;
    let config = Config {
        moderator: Some(Hashed::of(SECRET)),
        reads: None,
        writes: None,
        ..Config::default()
    };
    with_config(config, |mut program| {
        import(&mut program, "many");
        topic(&mut program, "before");
        program.fill("/new", &[("title", "Hot")]).place();
        let get = b"GET /b/many/export HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut silent: Vec<_> = (0..4).map(|_| connect(program.address)).collect();
        for stream in &mut silent {
            stream.write_all(get).unwrap();
            stream.read_exact(&mut [0]).unwrap();
        }
        // More of them than there are workers, and none ends before it is told.
        let (key, address) = (&key(&mut program), program.address);
        let (is_taken, taken) = mpsc::channel();
        let (is_written, written) = mpsc::channel();
        let (is_enough, happened) = (&AtomicBool::new(false), &Mutex::new(Vec::new()));
        let note = |it| happened.lock().unwrap().push(it);
        let goes_on = |of: &mpsc::Receiver<()>| {
            while of.try_recv().is_ok() {}
            of.recv_timeout(LONG).expect("it goes on");
        };
        std::thread::scope(|scope| {
            for number in 0..4 {
                let is_taken = is_taken.clone();
                scope.spawn(move || {
                    let name = format!("many-{number}");
                    let status = import_until((address, key, &name), is_enough, &is_taken);
                    note(Happened::Ended);
                    assert!(status.contains(" 201 "), "{status}");
                });
            }
            for _ in 0..3 {
                let is_written = is_written.clone();
                scope.spawn(move || {
                    write_until(address, is_enough, &is_written);
                    note(Happened::Ended);
                });
            }
            // Whatever fails here, the others are released, so that the test ends.
            let release = Release(is_enough);
            for _ in 0..ROUNDS {
                goes_on(&taken);
                goes_on(&written);
                ask_as_others_do(&mut program);
                note(Happened::Answered);
            }
            note(Happened::Released);
            drop(release);
        });
        let happened = happened.lock().unwrap();
        assert_eq!(happened[..ROUNDS], [Happened::Answered; ROUNDS]);
        assert_eq!(happened[ROUNDS], Happened::Released);
        assert_eq!(happened[ROUNDS + 1..], [Happened::Ended; 7]);
        drop(silent);
    });
}

/// Tells all of them that this is enough, when it is dropped.
struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
