//! Moderators delete, restore and erase boards, as pages and as a program.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use weald_board::Config;
use weald_board::model::Hashed;

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

fn measure(browser: &mut Browser, fields: &[(&str, &str)]) -> Answered {
    browser.fill("/b/tea/moderate", fields)
}

/// A stream of live updates of the board, which has begun.
fn live_stream(browser: &Browser) -> BufReader<TcpStream> {
    let mut live = connect(browser.address);
    write!(live, "GET /b/tea/live HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut live = BufReader::new(live);
    let mut line = String::new();
    while !line.contains("retry") {
        line.clear();
        assert!(live.read_line(&mut line).unwrap() > 0);
    }
    live
}

#[test]
fn a_moderator_deletes_restores_and_erases_a_board() {
    with_config(config(), |mut ada| {
        let topic = topic(&mut ada, "one");
        let mut grace = Browser::new(ada.address);
        assert_eq!(grace.get("/b/tea/moderate").status, 403);
        assert!(!grace.get("/b/tea").body.contains("/b/tea/moderate"));
        let fields = [("author", "Grace"), ("passphrase", SECRET)];
        grace.fill("/moderate", &fields).place();
        assert!(grace.get("/b/tea").body.contains("/b/tea/moderate"));

        let refused = measure(&mut grace, &[("why", ""), ("do", "delete")]);
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("Say why"), "{refused:?}");
        let mut live = live_stream(&ada);
        let fields = [("why", "spam"), ("do", "delete")];
        assert_eq!(measure(&mut grace, &fields).place(), "/moderate");
        // Live readers are told, and then the stream ends.
        let mut rest = String::new();
        while live.read_line(&mut rest).unwrap() > 0 && !rest.ends_with("\r\n0\r\n") {}
        assert!(rest.contains("\"did\":\"delete\""), "{rest}");
        for path in [
            "/b/tea",
            &topic,
            "/b/tea/feed",
            "/b/tea/export",
            "/b/tea/live",
        ] {
            let gone = ada.get(path);
            assert_eq!(gone.status, 410, "{path}");
            assert!(
                gone.body.contains("A moderator has deleted this board."),
                "{path}"
            );
        }
        assert_eq!(ada.get("/api/boards/tea").status, 410);
        let draft = [("title", "T"), ("text", "a draft")];
        for path in ["/b/tea/write", &format!("{topic}/answer")] {
            let refused = ada.post(path, &draft);
            assert_eq!(refused.status, 410, "{path}");
            assert!(
                refused.body.contains("a draft</textarea>"),
                "{path}: {refused:?}"
            );
        }
        assert!(!ada.get("/").body.contains("/b/tea"));
        let page = grace.get("/b/tea");
        assert_eq!(page.status, 200);
        assert!(page.body.contains("Only moderators see it."), "{page:?}");
        let log = grace.get("/moderate").body;
        let entry = "Deleted <a href=\"/b/tea/moderate\">the board tea</a>";
        assert!(log.contains(entry) && log.contains("spam"), "{log}");
        let fields = [("why", "was none"), ("do", "restore")];
        assert_eq!(measure(&mut grace, &fields).place(), "/moderate");
        assert_eq!(ada.get("/b/tea").status, 200);

        let unsure = measure(&mut grace, &[("why", "the law"), ("do", "erase")]);
        assert_eq!(unsure.status, 422);
        assert!(unsure.body.contains("Tick the box"), "{unsure:?}");
        let sure = [("why", "the law"), ("do", "erase"), ("sure", "yes")];
        assert_eq!(measure(&mut grace, &sure).place(), "/moderate");
        assert_eq!(ada.get("/b/tea").status, 404);
        let list = ada.get("/").body;
        assert!(
            list.contains("Erased title") && !list.contains("Tea"),
            "{list}"
        );
        assert!(!grace.get("/moderate").body.contains("tea"));
    });
}

#[test]
fn a_program_does_the_same() {
    with_config(config(), |mut program| {
        topic(&mut program, "one");
        let place = "/api/boards/tea/moderate";
        let asked = |measure: &str| format!("{{\"measure\": \"{measure}\", \"why\": \"spam\"}}");
        let stranger = ("Authorization", "Bearer 0123456789abcdef");
        let refused = program.json("POST", place, &[stranger], &asked("delete"));
        assert_eq!(refused.status, 403);
        let body = format!("{{\"name\": \"Grace\", \"passphrase\": \"{SECRET}\"}}");
        let session = program.json("POST", "/api/moderators", &[], &body).value();
        let key = format!("Bearer {}", session["key"].as_str().unwrap());
        let key = [("Authorization", key.as_str())];
        let then = program.get("/api/boards/tea").header("etag").to_owned();
        let then = format!("/api/boards/tea?at={}", then.trim_matches('"'));
        let done = program.json("POST", place, &key, &asked("delete"));
        assert!(done.value()["version"].is_string(), "{done:?}");
        for path in ["/api/boards/tea", &then] {
            assert_eq!(program.get(path).status, 410, "{path}");
            // With the key of a moderator a program reads it, as it is and as it was.
            let read = program.ask("GET", path, &key, "");
            assert_eq!(read.status, 200, "{path}: {read:?}");
            assert_eq!(read.value()["board"]["messages"], 1);
        }
        assert_eq!(program.get("/api/boards").value(), serde_json::json!([]));
        for (measure, status) in [
            ("free", 422),
            ("restore", 200),
            ("erase", 200),
            ("erase", 404),
        ] {
            let answered = program.json("POST", place, &key, &asked(measure));
            assert_eq!(answered.status, status, "{measure}: {answered:?}");
        }
        let boards = program.get("/api/boards").value();
        assert_eq!(boards[0]["title"], "Erased title");
        let log = program.ask("GET", "/api/audit", &key, "").value();
        let entry = &log["entries"][0];
        assert_eq!(entry["measure"], "erase");
        assert_eq!(
            (&entry["board"], &entry["message"]),
            (&boards[0]["name"], &serde_json::Value::Null)
        );
    });
}
