//! The JSON API: the same functions as the pages have.

use serde_json::json;
use weald_board::{Config, Rate};

use super::client::*;

const KEY: (&str, &str) = ("Authorization", "Bearer the key of Ada, long enough");

#[test]
fn nothing_is_written_by_get_unless_that_is_wanted() {
    with_board(|mut program| {
        for path in [
            "/get/create?title=Tea",
            "/get/write?board=tea&text=x",
            "/get/edit",
        ] {
            assert_eq!(program.get(path).status, 404, "{path}");
        }
    });
    let config = Config {
        has_get_writes: true,
        ..Config::default()
    };
    with_config(config, |mut program| {
        assert_eq!(program.get("/get/create?title=Tea").status, 201);
        let written = program
            .get("/get/write?board=tea&title=T&text=one+two")
            .value();
        let id = &written["id"];
        let answer = format!("/get/write?board=tea&parent={id}&text=three");
        let key = [("Authorization", "Bearer 0123456789abcdef")];
        let answer = program.ask("GET", &answer, &key, "").value();
        let edit = format!("/get/edit?board=tea&message={}&text=four", answer["id"]);
        assert_eq!(program.get(&edit).status, 403);
        assert_eq!(program.ask("GET", &edit, &key, "").status, 200);
        let thread = program
            .get(&format!("/api/boards/tea/messages/{id}"))
            .value();
        assert_eq!(thread["message"]["text"], "one two");
        assert_eq!(thread["answers"][0]["text"], "four");
        assert_eq!(
            program.get("/get/write?board=milk&title=T&text=x").status,
            404
        );
        assert_eq!(program.get("/get/write?board=tea&text=x").status, 422);
    });
}

#[test]
fn a_list_is_kept_only_until_its_board_changes() {
    let config = Config {
        keeps_lists: true,
        writes: None,
        ..Config::default()
    };
    with_config(config, |mut program| {
        topic(&mut program, "one");
        program.json("POST", "/api/boards", &[], "{\"title\": \"Milk\"}");
        let first = program.get("/api/boards/tea").body;
        assert_eq!(program.get("/api/boards/tea").body, first);
        assert_eq!(program.get("/api/boards/tea?page=1").body, first);
        assert_eq!(program.get("/api/boards/tea?page=2").status, 404);
        assert!(!program.get("/api/boards/milk").body.contains("one"));
        let said = json!({"title": "T", "text": "two"}).to_string();
        program.json("POST", "/api/boards/tea/messages", &[], &said);
        let second = program.get("/api/boards/tea");
        assert!(second.body.contains("two"), "{second:?}");
        let before: serde_json::Value = serde_json::from_str(&first).unwrap();
        let before = &before["board"]["version"];
        let path = format!("/api/boards/tea?at={}", before.as_str().unwrap());
        assert!(!program.get(&path).body.contains("two"), "as it was");
        assert_eq!(program.get("/api/boards/tea").body, second.body);
    });
}

#[test]
fn what_is_asked_for_most_is_answered_as_its_address_answers_it() {
    with_board(|mut program| {
        topic(&mut program, "one");
        // A board whose list goes on at another address.
        program.json("POST", "/api/boards", &[], "{\"title\": \"Long\"}");
        write_topics(&mut program, "long", 21);
        assert_ne!(program.get("/api/boards/long").header("link"), "");
        let tag = program.get("/api/boards/tea").header("etag").to_owned();
        let known = [("If-None-Match", tag.as_str())];
        for name in ["tea", "long", "milk", "Tea", "tea/", "t%65a", ""] {
            for headers in [&[][..], &known] {
                let path = format!("/api/boards/{name}");
                let quick = program.ask("GET", &path, headers, "");
                // A query is for the address.
                let path = format!("{path}?");
                let slow = program.ask("GET", &path, headers, "");
                assert_eq!(
                    (quick.status, &quick.body),
                    (slow.status, &slow.body),
                    "{path}"
                );
                let all = |answered: &Answered| {
                    let mut all = answered.headers.clone();
                    all.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
                    all.sort();
                    all
                };
                assert_eq!(all(&quick), all(&slow), "{path}");
            }
        }
    });
}

/// Writes topics with numbers, from 1 on.
fn write_topics(program: &mut Browser, board: &str, count: usize) {
    for number in 1..=count {
        let said = json!({"title": format!("Topic {number}"), "text": "hot & cold"}).to_string();
        let path = format!("/api/boards/{board}/messages");
        assert_eq!(program.json("POST", &path, &[], &said).status, 201);
    }
}

/// Where a list goes on, from its header `Link`.
fn next_of(list: &Answered) -> Option<String> {
    let link = list.header("link").strip_prefix('<')?;
    let (next, rel) = link.split_once('>').unwrap();
    assert_eq!(rel, "; rel=\"next\"");
    Some(next.to_owned())
}

#[test]
fn the_numbered_pages_of_a_list_do_not_shift() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        write_topics(&mut program, "tea", 25);
        let titles = |list: &Answered| -> Vec<String> {
            let messages = list.value()["messages"].as_array().unwrap().clone();
            let titles = messages.iter().map(|it| it["title"].as_str().unwrap());
            titles.map(str::to_owned).collect()
        };
        let version = program.get("/api/boards/tea").value()["board"]["version"].clone();
        let at = format!("?at={}", version.as_str().unwrap());
        let board = "/api/boards/tea";
        let search = "/api/boards/tea/search";
        let lists = [(board, ""), (board, "?page=1"), (search, "?q=hot%20%26")];
        let first = lists.map(|(path, query)| program.get(&format!("{path}{query}")));
        // Topics come to the top, and push others to the next page.
        write_topics(&mut program, "tea", 3);
        for ((path, _), first) in lists.into_iter().zip(&first) {
            let next = next_of(first).unwrap();
            let next = program.get(&format!("{path}{next}"));
            let all = [titles(first), titles(&next)].concat();
            let expected: Vec<_> = (1..=25).rev().map(|it| format!("Topic {it}")).collect();
            assert_eq!(all, expected, "{path}: {next:?}");
            assert_eq!(next_of(&next), None, "{path}: {next:?}");
            let wrong = program.get(&format!("{path}?q=hot&of=x")).status;
            let unknown = program.get(&format!("{path}?q=hot&of=9.9")).status;
            assert_eq!([wrong, unknown], [400, 404], "{path}");
        }
        // A look at the past stays one.
        let past = program.get(&format!("{board}{at}"));
        let next = next_of(&past).unwrap();
        assert_eq!(next, format!("?page=2&{}", &at[1..]));
    });
}

fn by(author: &str, passphrase: &str) -> String {
    let said = json!({"author": author, "title": "T", "text": "x", "passphrase": passphrase});
    said.to_string()
}

fn answer(parent: u64, title: &str) -> String {
    json!({"parent": parent, "title": title, "text": "x"}).to_string()
}

/// A message, with and without a query, which is for the address.
#[test]
fn a_message_is_answered_as_its_address_answers_it() {
    with_board(|mut program| {
        topic(&mut program, "one");
        let protect = json!({"name": "Grace", "passphrase": "a long passphrase"}).to_string();
        assert!(program.json("POST", "/api/names", &[KEY], &protect).status < 300);
        let short = ("Authorization", "Bearer short");
        let token = ("Idempotency-Key", "once more");
        let said = |text: &str| json!({"title": "T", "text": text}).to_string();
        let first = program.json("POST", "/api/boards/tea/messages", &[], &said("x"));
        let first = first.value()["id"].as_u64().unwrap();
        let long = said(&"x".repeat(10_001));
        let huge = said(&"x".repeat(70_000));
        for (status, headers, body) in [
            (
                201,
                &[][..],
                said("two\n\n*words* & \"quotes\" ä \u{1f33b}"),
            ),
            (201, &[KEY], said("x")),
            (201, &[KEY, token], said("x")),
            (201, &[], by("  Ada \t King ", "")),
            (201, &[], answer(first, "")),
            (422, &[], answer(first, "T")),
            (404, &[], answer(0, "")),
            (404, &[], answer(7_777, "")),
            (401, &[short], said("x")),
            (422, &[], said(" ")),
            (422, &[], said("a\u{202e}b")),
            (422, &[], long),
            (413, &[], huge),
            (403, &[], by("Grace", "")),
            (403, &[], by("grace", "a wrong passphrase")),
            (201, &[], by("Grace", "a long passphrase")),
            (422, &[], by("Ada", "a long passphrase")),
            (422, &[], by("Ada \u{2713}", "")),
            (422, &[], json!({"title": "T"}).to_string()),
            (
                422,
                &[],
                json!({"title": "T", "text": "x", "more": 1}).to_string(),
            ),
            (400, &[], "{".to_owned()),
            (400, &[], String::new()),
        ] {
            let mut ask = |path: &str| {
                let kind = ("Content-Type", "application/json");
                let headers = [&[kind], headers].concat();
                let mut answered = program.ask("POST", path, &headers, &body);
                // What differs from one message to the next.
                let changes =
                    |name: &str| ["date", "etag", "location", "content-length"].contains(&name);
                answered.headers.iter_mut().for_each(|(name, value)| {
                    name.make_ascii_lowercase();
                    if changes(name) {
                        value.retain(|c| !c.is_ascii_digit());
                    }
                });
                answered.headers.sort();
                if answered.status == 201 {
                    answered.body.retain(|c| !c.is_ascii_digit());
                }
                answered
            };
            let quick = ask("/api/boards/tea/messages");
            let slow = ask("/api/boards/tea/messages?");
            assert_eq!(quick.status, status, "{body}: {quick:?}");
            assert_eq!((quick.status, &quick.body), (slow.status, &slow.body));
            assert_eq!(quick.headers, slow.headers, "{body}");
        }
    });
}

#[test]
fn a_message_for_no_board_is_answered_as_its_address_answers_it() {
    with_board(|mut program| {
        topic(&mut program, "one");
        let said = json!({"title": "T", "text": "x"}).to_string();
        for path in [
            "/api/boards/milk/messages",
            "/api/boards/Tea/messages",
            "/api/boards//messages",
        ] {
            let [quick, slow] = [path.to_owned(), format!("{path}?")]
                .map(|path| program.json("POST", &path, &[], &said));
            assert_eq!(
                (quick.status, quick.body),
                (slow.status, slow.body),
                "{path}"
            );
        }
    });
}

/// What a writer gets who is too quick, and that mistakes cost nothing.
#[test]
fn a_message_takes_a_token_of_writing() {
    let config = Config {
        reads: None,
        writes: Some(Rate {
            burst: 3,
            every: std::time::Duration::from_secs(3_600),
        }),
        ..Config::default()
    };
    with_config(config, |mut program| {
        program.json("POST", "/api/boards", &[KEY], "{\"title\": \"Tea\"}");
        let path = "/api/boards/tea/messages";
        let said = json!({"title": "T", "text": "x"}).to_string();
        for _ in 0..5 {
            let wrong = program.json("POST", path, &[], "{\"title\": \"T\", \"text\": \"\"}");
            assert_eq!(wrong.status, 422);
        }
        for status in [201, 201, 429] {
            let answered = program.json("POST", path, &[], &said);
            assert_eq!(answered.status, status, "{answered:?}");
        }
        let refused = program.json("POST", path, &[], &said);
        assert!(!refused.header("retry-after").is_empty());
        assert!(
            refused
                .header("content-security-policy")
                .contains("default-src")
        );
    });
}

#[test]
fn a_program_does_what_a_visitor_does() {
    with_board(|mut program| {
        let created = program.json(
            "POST",
            "/api/boards",
            &[KEY],
            "{\"title\": \"Tea\", \"about\": \"leaves\"}",
        );
        assert_eq!(
            (created.status, created.header("location")),
            (201, "/api/boards/tea")
        );
        let said = json!({"title": "A topic", "text": "one", "author": "Ada"}).to_string();
        let written = program.json("POST", "/api/boards/tea/messages", &[KEY], &said);
        assert_eq!(written.status, 201, "{written:?}");
        let topic = written.header("location").to_owned();
        let id = written.value()["id"].clone();
        let answer = json!({"text": "two", "parent": id}).to_string();
        assert_eq!(
            program
                .json("POST", "/api/boards/tea/messages", &[], &answer)
                .status,
            201
        );

        let list = program.get("/api/boards/tea").value();
        assert_eq!(list["messages"][0]["answers"], 1);
        assert_eq!(list["board"]["about"], "leaves");
        let thread = program.get(&topic);
        let tag = thread.header("etag").to_owned();
        assert_eq!(
            tag,
            format!("\"{}\"", thread.value()["version"].as_str().unwrap())
        );
        assert_eq!(
            program
                .ask("GET", &topic, &[("If-None-Match", &tag)], "")
                .status,
            304
        );
        let value = thread.value();
        assert_eq!(
            (&value["message"]["text"], &value["answers"][0]["text"]),
            (&json!("one"), &json!("two"))
        );
        assert_eq!(value["answers"][0]["author"], "Anonymous");
        assert!(
            program
                .get(&topic.replace("/api/boards", "/b").replace("/messages", ""))
                .body
                .contains("one")
        );
        let found = program.get("/api/boards/tea/search?q=tw").value();
        assert_eq!(found["messages"][0]["parent"], id);
    });
}

#[test]
fn an_edit_names_the_version_that_it_is_of() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let said = |text: &str| json!({"title": "A topic", "text": text}).to_string();
        let topic = program
            .json("POST", "/api/boards/tea/messages", &[KEY], &said("one"))
            .header("location")
            .to_owned();
        let tag = program.get(&topic).header("etag").to_owned();
        assert_eq!(
            program.json("PUT", &topic, &[KEY], &said("two")).status,
            428
        );
        assert_eq!(
            program
                .json("PUT", &topic, &[KEY, ("If-Match", "\"x\"")], &said("two"))
                .status,
            412
        );
        let other = ("Authorization", "Bearer the key of somebody else");
        for (keys, status) in [(vec![], 401), (vec![other], 403)] {
            let headers = [keys, vec![("If-Match", tag.as_str())]].concat();
            let refused = program.json("PUT", &topic, &headers, &said("two"));
            assert_eq!(refused.status, status, "{refused:?}");
        }
        let edited = program.json("PUT", &topic, &[KEY, ("If-Match", &tag)], &said("two"));
        assert_eq!(edited.status, 200, "{edited:?}");
        let stale = program.json("PUT", &topic, &[KEY, ("If-Match", &tag)], &said("three"));
        assert_eq!(
            (stale.status, &stale.value()["current"]["text"]),
            (412, &json!("two"))
        );
        let tag = edited.header("etag").to_owned();
        assert_eq!(
            program
                .json("PUT", &topic, &[KEY, ("If-Match", &tag)], &said("three"))
                .status,
            200
        );
    });
}

#[test]
fn what_was_edited_can_be_taken_back_hidden_and_erased() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let said = |text: &str| json!({"title": "A topic", "text": text}).to_string();
        let written = program.json("POST", "/api/boards/tea/messages", &[KEY], &said("one"));
        let topic = written.header("location").to_owned();
        for text in ["two", "three"] {
            let tag = program.get(&topic).header("etag").to_owned();
            let edited = program.json("PUT", &topic, &[KEY, ("If-Match", &tag)], &said(text));
            assert_eq!(edited.status, 200);
        }
        assert_eq!(
            program
                .json("POST", &format!("{topic}/undo"), &[], "")
                .status,
            401
        );
        assert_eq!(
            program
                .json("POST", &format!("{topic}/undo"), &[KEY], "")
                .status,
            200
        );
        let states = program.get(&format!("{topic}/history")).value();
        let texts: Vec<_> = states
            .as_array()
            .unwrap()
            .iter()
            .map(|state| state["text"].clone())
            .collect();
        assert_eq!(texts, ["two", "three", "two", "one"]);
        assert_eq!(program.json("DELETE", &topic, &[KEY], "").status, 200);
        let gone = program.get(&topic);
        assert_eq!(
            (gone.status, &gone.value()["message"]["state"]),
            (410, &json!("deleted"))
        );
        assert_eq!(program.get(&format!("{topic}/history")).status, 410);
        assert_eq!(
            program
                .json("POST", &format!("{topic}/restore"), &[KEY], "")
                .status,
            200
        );
        assert_eq!(
            program
                .json("POST", &format!("{topic}/erase"), &[KEY], "")
                .status,
            200
        );
        assert_eq!(program.get(&topic).value()["message"]["state"], "erased");
    });
}

#[test]
fn a_parent_that_no_board_can_have_is_a_message_that_is_missing() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        for parent in [0, 999, u64::MAX] {
            let said = json!({"text": "x", "parent": parent}).to_string();
            let refused = program.json("POST", "/api/boards/tea/messages", &[], &said);
            let told = format!("There is no message {parent} on this board.");
            assert_eq!(
                (refused.status, &refused.value()["detail"]),
                (404, &json!(told))
            );
        }
    });
}

#[test]
fn a_request_that_is_sent_twice_is_made_once() {
    with_board(|mut program| {
        let once = ("Idempotency-Key", "a key");
        let board = "{\"title\": \"Tea\"}";
        for _ in 0..2 {
            assert_eq!(
                program
                    .json("POST", "/api/boards", &[KEY, once], board)
                    .status,
                201
            );
        }
        assert_eq!(
            program.json("POST", "/api/boards", &[KEY], board).status,
            409
        );
        let said = |text: &str| json!({"title": "A topic", "text": text}).to_string();
        let path = "/api/boards/tea/messages";
        let first = program
            .json("POST", path, &[KEY, once], &said("one"))
            .value();
        assert_eq!(
            program
                .json("POST", path, &[KEY, once], &said("one"))
                .value(),
            first
        );
        assert_eq!(
            program
                .json("POST", path, &[KEY, once], &said("two"))
                .status,
            409
        );
        let erase = format!("{path}/{}/erase", first["id"]);
        assert_eq!(program.json("POST", &erase, &[KEY], "").status, 200);
        let erased = program.json("POST", path, &[KEY, once], &said("one"));
        let told =
            "What this form wrote has been erased. Send it again if you mean a second message.";
        assert_eq!(
            (erased.status, &erased.value()["detail"]),
            (410, &json!(told))
        );
        // The same key of somebody else is another one.
        assert_eq!(
            program.json("POST", path, &[once], &said("one")).status,
            201
        );
        assert_eq!(program.get("/api/boards").value()[0]["messages"], 2);
    });
}

#[test]
fn what_cannot_be_read_is_told() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let path = "/api/boards/tea/messages";
        for (body, status) in [
            ("{", 400),
            ("{}", 422),
            ("{\"text\": 1}", 422),
            ("{\"text\": \"x\", \"more\": 1}", 422),
            ("{\"text\": \"x\"}", 422),
            ("{\"text\": \"x\", \"parent\": 0}", 404),
            ("{\"text\": \"x\", \"parent\": 77}", 404),
        ] {
            let refused = program.json("POST", path, &[], body);
            assert_eq!(refused.status, status, "{body}: {refused:?}");
            assert_eq!(refused.header("content-type"), "application/problem+json");
            assert_eq!(refused.value()["status"], status);
        }
        assert_eq!(
            program.ask("POST", path, &[], "{\"text\": \"x\"}").status,
            415
        );
        let said = "{\"title\": \"T\", \"text\": \"x\"}";
        // A client that brings a key wants to change the message later, and could not with this
        // one.
        for key in ["Bearer short", "Basic YTpiYTpiYTpiYTpiYQ=="] {
            let refused = program.json("POST", path, &[("Authorization", key)], said);
            assert_eq!(refused.status, 401, "{key}: {refused:?}");
        }
        let key = [("Authorization", "bearer 0123456789abcdef")];
        let written = program.json("POST", path, &key, said);
        assert_eq!(written.status, 201, "{written:?}");
        let place = format!("{path}/{}", written.value()["id"]);
        assert_eq!(program.json("PUT", &place, &[], said).status, 401);
        assert_eq!(program.json("DELETE", &place, &key, "").status, 200);
        let invalid = program
            .json("POST", path, &[], "{\"title\": \"\", \"text\": \"\"}")
            .value();
        assert_eq!(invalid["fields"][0]["field"], "title");
    });
}

#[test]
fn an_undo_under_a_condition_takes_back_the_change_that_was_seen() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let said = |text: &str| json!({"title": "A topic", "text": text}).to_string();
        let path = "/api/boards/tea/messages";
        let written = program.json("POST", path, &[KEY], &said("one"));
        let place = format!("{path}/{}", written.value()["id"]);
        let edit = |program: &mut Browser, tag: &str, text: &str| {
            let edited = program.json("PUT", &place, &[KEY, ("If-Match", tag)], &said(text));
            assert_eq!(edited.status, 200, "{edited:?}");
            edited.header("etag").to_owned()
        };
        let second = edit(&mut program, written.header("etag"), "two");
        let undo = |program: &mut Browser, tag: &str| {
            let headers = [KEY, ("If-Match", tag)];
            program.json("POST", &format!("{place}/undo"), &headers, "")
        };
        let text = |program: &mut Browser| program.get(&place).value()["message"]["text"].clone();
        for _ in 0..2 {
            assert_eq!(undo(&mut program, &second).status, 200);
            assert_eq!(text(&mut program), "one");
        }
        let now = program.get(&place).header("etag").to_owned();
        let third = edit(&mut program, &now, "three");
        let fourth = edit(&mut program, &third, "four");
        let refused = undo(&mut program, &third);
        assert_eq!(refused.status, 412, "{refused:?}");
        assert_eq!(refused.value()["current"]["text"], "four");
        let stranger = [("Authorization", "Bearer another key of a program")];
        let refused = program.json("POST", &format!("{place}/undo"), &stranger, "");
        assert_eq!(refused.status, 403, "{refused:?}");
        assert_eq!(undo(&mut program, &fourth).status, 200);
        assert_eq!(text(&mut program), "three");
    });
}

#[test]
fn a_history_has_a_tag_and_says_where_it_goes_on() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let said = |text: u32| json!({"title": "A topic", "text": text.to_string()}).to_string();
        let path = "/api/boards/tea/messages";
        let written = program.json("POST", path, &[KEY], &said(0));
        let place = format!("{path}/{}", written.value()["id"]);
        let mut tag = written.header("etag").to_owned();
        for number in 1..60 {
            let headers = [KEY, ("If-Match", tag.as_str())];
            let edited = program.json("PUT", &place, &headers, &said(number));
            tag = edited.header("etag").to_owned();
        }
        let history = format!("{place}/history");
        let first = program.get(&history);
        assert_eq!(first.value().as_array().unwrap().len(), 50);
        let kept = [("If-None-Match", first.header("etag"))];
        assert_eq!(program.ask("GET", &history, &kept, "").status, 304);
        let next = first.header("link").strip_prefix('<').unwrap();
        let (next, rel) = next.split_once('>').unwrap();
        assert_eq!(rel, "; rel=\"next\"");
        let rest = program.get(&format!("{history}{next}"));
        assert_eq!(rest.value().as_array().unwrap().len(), 10, "{rest:?}");
        assert_eq!(rest.value()[9]["text"], "0");
        assert_eq!(rest.header("link"), "");
        assert_ne!(rest.header("etag"), first.header("etag"));
        assert_eq!(program.get(&format!("{history}?from=x")).status, 400);
    });
}

#[test]
fn a_list_of_boards_has_a_tag_and_says_where_it_goes_on() {
    with_board(|mut program| {
        for number in 0..102 {
            let body = json!({"title": format!("B{number:03}")}).to_string();
            assert_eq!(program.json("POST", "/api/boards", &[], &body).status, 201);
        }
        let first = program.get("/api/boards");
        let kept = [("If-None-Match", first.header("etag"))];
        assert_eq!(program.ask("GET", "/api/boards", &kept, "").status, 304);
        assert_eq!(first.value().as_array().unwrap().len(), 100);
        let next = first.header("link").strip_prefix('<').unwrap();
        let (next, _) = next.split_once('>').unwrap();
        let said = json!({"title": "T", "text": "x"}).to_string();
        program.json("POST", "/api/boards/b000/messages", &[], &said);
        let rest = program.get(&format!("/api/boards{next}"));
        let names = rest.value();
        assert_eq!([&names[0]["name"], &names[1]["name"]], ["b001", "b000"]);
        assert_eq!(
            (rest.header("link"), names.as_array().unwrap().len()),
            ("", 2)
        );
        assert_eq!(program.ask("GET", "/api/boards", &kept, "").status, 200);
    });
}
