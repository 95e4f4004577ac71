//! A board that is exported and imported: nothing that may be told is lost, and nothing else is told.

use std::io::{Read, Write};

use weald_board::model::Hashed;
use weald_board::{Config, Storage};

use super::client::*;

const SECRET: &str = "the moderators' passphrase";

fn config() -> Config {
    Config {
        moderator: Some(Hashed::of(SECRET)),
        reads: None,
        writes: None,
        ..Config::default()
    }
}

/// What stands in the header `Authorization` of a moderator's program.
fn sign_in(program: &mut Browser) -> String {
    let body = format!("{{\"name\": \"Grace\", \"passphrase\": \"{SECRET}\"}}");
    let session = program.json("POST", "/api/moderators", &[], &body).value();
    format!("Bearer {}", session["key"].as_str().unwrap())
}

/// The lines of an export, without what is another board's in another place.
fn lines(answered: &Answered) -> Vec<serde_json::Value> {
    assert_eq!(answered.status, 200, "{answered:?}");
    let mut ids = Vec::new();
    let lines = answered.body.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        for field in ["version", "changed"] {
            line.as_object_mut().unwrap().remove(field);
        }
        ids.push(line["id"].clone());
        for field in ["id", "parent"] {
            if let Some(at) = ids.iter().position(|id| *id == line[field]) {
                line[field] = at.into();
            }
        }
        line
    });
    lines.collect()
}

#[test]
fn a_board_moves_with_all_that_a_moderator_sees() {
    let directory = tempfile::tempdir().unwrap();
    let storage = || Storage::Directory(directory.path().join("boards"));
    let mut left = None;
    with_config(config(), |mut author| {
        write(&mut author);
        let whole = leave(&mut author);
        left = Some((author, whole));
    });
    let (author, whole) = left.unwrap();
    let elsewhere = || Config {
        storage: storage(),
        ..config()
    };
    with_config(elsewhere(), |program| arrive(program, &whole));
    with_config(elsewhere(), |program| {
        is_there(program, author.clone(), &whole)
    });
}

/// Two topics, an answer, an edit, and a message that is deleted.
fn write(author: &mut Browser) {
    let first = topic(author, "one");
    topic(author, "two");
    author.fill(&first, &[("text", "an answer"), ("author", "Alan")]);
    let edited = [("title", "A topic"), ("text", "one, edited")];
    author.fill(&format!("{first}/edit"), &edited);
    let deleted = topic(author, "a regret");
    let form = author.get(&format!("{deleted}/edit"));
    let token = form.body.split("name=\"form\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap().to_owned();
    let path = format!("{deleted}/delete");
    author.post(&path, &[("form", &token)]).place();
}

/// What a moderator exports, after a look at what others do.
fn leave(author: &mut Browser) -> String {
    let mut stranger = Browser::new(author.address);
    let public = stranger.get("/b/tea/export");
    assert_eq!(
        public.header("content-disposition"),
        "attachment; filename=\"tea.jsonl\""
    );
    let told = lines(&public);
    let texts: Vec<_> = told.iter().map(|line| line["text"].as_str()).collect();
    let expected = [
        None,
        Some("two"),
        Some("one, edited"),
        Some("an answer"),
        None,
    ];
    assert_eq!(texts, expected, "{told:?}");
    assert_eq!(
        (&told[0]["title"], &told[3]["parent"]),
        (&"Tea".into(), &2.into())
    );
    assert_eq!(told[4]["deleted"], "author");
    assert!(!public.body.contains("owner") && !public.body.contains("regret"));
    let then = stranger.get("/api/boards/tea").value()["board"]["version"].clone();
    topic(author, "later");
    let at = format!("/api/boards/tea/export?at={}", then.as_str().unwrap());
    assert_eq!(lines(&stranger.get(&at)), told);

    let key = sign_in(&mut stranger);
    let key = [("Authorization", key.as_str())];
    let all = stranger.json("GET", &at, &key, "");
    assert_eq!(lines(&all)[4]["text"], "a regret");
    assert!(lines(&all)[1]["owner"].is_string(), "{all:?}");
    let taken = stranger.json("POST", "/api/import", &key, &all.body);
    assert_eq!(taken.status, 409, "{taken:?}");
    all.body
}

fn arrive(mut program: Browser, whole: &str) {
    assert_eq!(program.json("POST", "/api/import", &[], whole).status, 401);
    let key = sign_in(&mut program);
    let key = [("Authorization", key.as_str())];
    let no_parent = whole.replacen("\"parent\":", "\"parent\":77", 1);
    let no_field = whole.replacen("\"text\":", "\"txet\":", 1);
    let with_title = whole.replacen("\"parent\":", "\"title\":\"T\",\"parent\":", 1);
    for (broken, told) in [
        (with_title, ": A reply has no title.\""),
        (no_parent, "which it answers, comes nowhere before it."),
        (no_field, "Line 2: unknown field"),
    ] {
        let refused = program.json("POST", "/api/import", &key, &broken);
        assert!(refused.body.contains(told), "{refused:?}");
        let boards = program.get("/api/boards").value();
        assert_eq!(boards, serde_json::json!([]));
    }
    let made = program.json("POST", "/api/import", &key, whole);
    let messages = made.value()["messages"].as_u64();
    assert_eq!((made.status, messages), (201, Some(4)));
    let log = program.json("GET", "/api/audit", &key, "").value();
    let noted = &log["entries"][0];
    for (field, value) in [
        ("measure", "import"),
        ("board", "tea"),
        ("who", "Grace"),
        ("why", "It came with 4 messages"),
        ("outcome", "done"),
    ] {
        assert_eq!(noted[field], value, "{log}");
    }
    let found = program.get("/b/tea/search?q=answer").body;
    assert!(found.contains("An answer by Alan"), "{found}");
}

/// After a restart it is what it was, and the messages are still their authors'.
fn is_there(mut program: Browser, mut author: Browser, whole: &str) {
    let key = sign_in(&mut program);
    let key = [("Authorization", key.as_str())];
    let now = program.json("GET", "/api/boards/tea/export", &key, "");
    let before = Answered {
        body: whole.to_owned(),
        ..program.get("/b/tea/export")
    };
    assert_eq!(lines(&now), lines(&before));
    author.address = program.address;
    let id = serde_json::from_str::<serde_json::Value>(now.body.lines().nth(2).unwrap());
    let page = author.get(&format!("/b/tea/{}", id.unwrap()["id"])).body;
    assert!(page.contains("/edit\">Change"), "{page}");
    let fields = [("title", "T"), ("text", "x"), ("author", "Ada")];
    assert_eq!(author.fill("/b/tea/write", &fields).status, 303);
}

#[test]
fn a_large_board_leaves_and_arrives_in_parts() {
    with_config(config(), |mut program| {
        let mut text =
            "{\"format\":\"weald-board 1\",\"name\":\"many\",\"title\":\"Many\"}\n".to_owned();
        let said = "word ".repeat(100);
        for id in 1..=1_000 {
            let parent = match id % 10 {
                1 => format!("\"title\":\"Topic {id}\""),
                _ => format!("\"parent\":{}", id - 1),
            };
            text += &format!(
                "{{\"id\":{id},{parent},\"author\":\"Ada\",\"text\":\"{said}\",\"time\":\"2026-11-23T21:44:05.{id:09}Z\"}}\n"
            );
        }
        let key = sign_in(&mut program);
        let key = [("Authorization", key.as_str())];
        let made = program.json("POST", "/api/import", &key, &text);
        assert_eq!(
            (made.status, made.value()["topics"].as_u64()),
            (201, Some(100))
        );
        let left = program.get("/b/many/export");
        let sent = Answered {
            body: text,
            ..program.get("/b/many/export")
        };
        assert_eq!(lines(&left)[1..].len(), 1_000);
        for (left, sent) in lines(&left)[1..].iter().zip(&lines(&sent)[1..]) {
            for field in ["id", "parent", "title", "time", "author"] {
                assert_eq!(left[field], sent[field]);
            }
        }
        let page = program.get("/b/many").body;
        assert!(
            page.contains("aria-label=\"Page 1 of 5\"") && page.contains("9 answers"),
            "{page}"
        );
    });
}

/// Sends the beginning of a request that imports a board.
fn begin(program: &Browser, key: &str, length: usize) -> std::net::TcpStream {
    let mut stream = connect(program.address);
    let head = format!(
        "POST /api/import HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {key}\r\n"
    );
    write!(stream, "{head}Content-Length: {length}\r\n\r\n").unwrap();
    stream
}

const HEAD: &str = "{\"format\":\"weald-board 1\",\"name\":\"many\",\"title\":\"Many\"}\n";

#[test]
fn a_board_is_read_as_it_comes_and_may_be_of_any_size() {
    with_config(config(), |mut program| {
        let key = sign_in(&mut program);
        let lines = 700;
        let line = |id: usize| {
            let end = "\"title\":\"T\",\"text\":\"x\",\"time\":\"2026-11-23T21:44:05Z\"}\n";
            let begin = format!("{{\"id\":{id},");
            let space = " ".repeat(100_000 - begin.len() - end.len());
            begin + &space + end
        };
        let mut stream = begin(&program, &key, HEAD.len() + lines * 100_000);
        stream.write_all(HEAD.as_bytes()).unwrap();
        for id in 1..=lines {
            stream.write_all(line(id).as_bytes()).unwrap();
        }
        let mut answered = String::new();
        stream.read_to_string(&mut answered).unwrap();
        assert!(answered.starts_with("HTTP/1.1 201 "), "{answered}");
        assert!(answered.contains("\"messages\":700"), "{answered}");

        let mut stream = begin(&program, &key, 1_000_000);
        // The server may have refused it before all is there.
        let _ = stream.write_all(&vec![b'x'; 1_000_000]);
        let mut answered = String::new();
        let _ = stream.read_to_string(&mut answered);
        let told = "Line 1: it is longer than 128 KiB.";
        assert!(answered.is_empty() || answered.contains(told), "{answered}");
    });
}

#[test]
fn an_import_that_breaks_off_leaves_nothing() {
    with_config(config(), |mut program| {
        let key = sign_in(&mut program);
        let trees = |program: &mut Browser| -> u64 {
            let metrics = program.get("/metrics").body;
            let (_, value) = metrics.split_once("\nforest_trees ").unwrap();
            value.lines().next().unwrap().parse().unwrap()
        };
        let before = trees(&mut program);
        let mut stream = begin(&program, &key, 1_000_000);
        stream.write_all(HEAD.as_bytes()).unwrap();
        while trees(&mut program) == before {}
        drop(stream);
        while trees(&mut program) != before {}
        assert_eq!(program.get("/b/many").status, 404);
    });
}
