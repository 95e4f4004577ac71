//! Limits: sizes, rates, proxies; and what the people who run a board ask it.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use weald::forest::Forest;
use weald::forest::disk::{DiskForest, DiskJournal, Settings, SimulatedDisk};
use weald_board::model::Store;
use weald_board::{Config, Rate, Storage};

use super::client::*;

const SLOW: Duration = Duration::from_secs(3_600);

#[test]
fn what_is_too_large_is_refused() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let long = "x".repeat(70_000);
        // A form comes back with what was written, unless it is far too large.
        for (form, action) in [
            (topic.clone(), format!("{topic}/answer")),
            (format!("{topic}/edit"), format!("{topic}/edit")),
            ("/b/tea/write".to_owned(), "/b/tea/write".to_owned()),
        ] {
            let refused = browser.fill(&form, &[("text", &long), ("title", "T")]);
            assert_eq!(refused.status, 413, "{form}");
            let told = refused.body.contains("which is 64 KiB") && refused.body.contains(&action);
            assert!(told && refused.body.contains(&long), "{form}");
        }
        let longer = long.repeat(4);
        let refused = browser.post(&format!("{topic}/answer"), &[("text", &longer)]);
        assert_eq!(refused.status, 413, "{refused:?}");
        assert!(refused.body.contains("which is 64 KiB"), "{refused:?}");
        assert!(
            refused.body.contains("still has what you wrote"),
            "{refused:?}"
        );
        assert!(
            refused.header("content-type").starts_with("text/html"),
            "{refused:?}"
        );
        let path = "/api/boards/tea/messages";
        assert_eq!(browser.json("POST", path, &[], &long).status, 413);
        assert_eq!(
            browser.get("/api/boards/tea").value()["board"]["messages"],
            1
        );
    });
}

#[test]
fn what_is_too_large_is_refused_before_it_is_sent_and_without_a_length() {
    with_board(|browser| {
        let head = "POST /api/boards HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n";
        let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
        for rest in [
            "Content-Length: 70000\r\n\r\n".to_owned(),
            format!(
                "Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                chunk.repeat(3)
            ),
        ] {
            let mut stream = connect(browser.address);
            write!(stream, "{head}{rest}").unwrap();
            let mut status = String::new();
            BufReader::new(stream).read_line(&mut status).unwrap();
            assert!(status.contains(" 413 "), "{status}");
        }
    });
}

#[test]
fn one_who_writes_too_often_waits_and_keeps_the_text() {
    let writes = Some(Rate {
        burst: 2,
        every: SLOW,
    });
    with_config(
        Config {
            writes,
            ..Config::default()
        },
        |mut browser| {
            let topic = topic(&mut browser, "one");
            let refused = browser.fill(&topic, &[("text", "a draft"), ("author", "")]);
            assert_eq!(refused.status, 429);
            assert!(refused.body.contains("a draft"));
            let refused = browser.json("POST", "/api/boards", &[], "{\"title\": \"Milk\"}");
            assert_eq!(refused.status, 429);
            assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
            assert_eq!(browser.get(&topic).status, 200);
        },
    );
}

#[test]
fn what_is_refused_because_of_a_field_costs_nothing() {
    let writes = Some(Rate {
        burst: 2,
        every: SLOW,
    });
    with_config(
        Config {
            writes,
            ..Config::default()
        },
        |mut browser| {
            let wrong = |browser: &mut Browser| {
                let refused = browser.fill("/new", &[("title", "")]);
                assert_eq!(refused.status, 422);
                assert!(refused.body.contains("A board needs a title."));
                let refused = browser.json("POST", "/api/boards", &[], "{\"title\": \"\"}");
                assert_eq!(refused.status, 422);
                // There is nothing below, as there is on a page.
                assert_eq!(refused.value()["detail"], "A board needs a title.");
            };
            wrong(&mut browser);
            wrong(&mut browser);
            let topic = topic(&mut browser, "one");
            let refused = browser.fill(&topic, &[("text", "two"), ("author", "")]);
            assert_eq!(refused.status, 429);
        },
    );
}

#[test]
fn one_who_reads_too_often_waits_behind_a_proxy_too() {
    let reads = Some(Rate {
        burst: 2,
        every: SLOW,
    });
    let proxies = vec![IpAddr::from([127, 0, 0, 1]).into()];
    with_config(
        Config {
            reads,
            proxies,
            ..Config::default()
        },
        |mut browser| {
            let ask = |browser: &mut Browser, of: &str| {
                let headers = [("X-Forwarded-For", of), ("X-Forwarded-Proto", "https")];
                browser.ask("GET", "/", &headers, "")
            };
            let first = ask(&mut browser, "192.0.2.1");
            assert!(first.header("set-cookie").contains("; Secure"));
            assert_eq!(ask(&mut browser, "192.0.2.1").status, 200);
            let refused = ask(&mut browser, "192.0.2.1");
            assert_eq!(refused.status, 429);
            assert!(refused.header("retry-after").parse::<u64>().unwrap() > 3_000);
            assert_eq!(ask(&mut browser, "192.0.2.2").status, 200);
            assert_eq!(browser.get("/healthz").body, "alive\n");
        },
    );
}

/// A form that was refused before anybody looked at it.
fn comes_back(refused: &Answered, status: u16) {
    assert_eq!(refused.status, status, "{refused:?}");
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    for part in [
        "action=\"/b/tea/write\"",
        "<input type=\"hidden\" name=\"token\" value=\"a token\">",
        "a &#60;draft&#62;</textarea>",
    ] {
        assert!(refused.body.contains(part), "{part}: {refused:?}");
    }
    assert!(!refused.body.contains("secret"), "{refused:?}");
}

const DRAFT: [(&str, &str); 4] = [
    ("token", "a token"),
    ("title", "T"),
    ("text", "a <draft>"),
    ("passphrase", "secret"),
];

#[test]
fn a_form_that_nobody_looks_at_comes_back() {
    let config = || Config {
        reads: Some(Rate {
            burst: 1,
            every: SLOW,
        }),
        ..Config::default()
    };
    with_config(config(), |mut browser| {
        assert_eq!(browser.get("/").status, 200);
        comes_back(&browser.post("/b/tea/write", &DRAFT), 429);
    });
    let full = Config {
        most_requests: 0,
        ..config()
    };
    with_config(full, |mut browser| {
        comes_back(&browser.post("/b/tea/write", &DRAFT), 503);
    });
}

#[test]
fn a_refused_form_that_comes_slowly_takes_no_place_from_others() {
    let config = Config {
        most_requests: 1,
        reads: Some(Rate {
            burst: 1,
            every: SLOW,
        }),
        proxies: vec![IpAddr::from([127, 0, 0, 1]).into()],
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|of| [("X-Forwarded-For", of)]);
        assert_eq!(browser.ask("GET", "/", &one, "").status, 200);
        let slow = [(); 4].map(|()| {
            let mut stream = connect(browser.address);
            let head = "POST /b/tea/write HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\n\
                        Expect: 100-continue\r\nContent-Length: 1\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            let mut status = String::new();
            let mut answer = BufReader::new(stream);
            answer.read_line(&mut status).unwrap();
            assert!(status.contains(" 100 "), "its form is read: {status}");
            answer
        });
        let form = encoded(&DRAFT);
        // Nobody else's request is answered now.
        assert_eq!(browser.ask("GET", "/", &other, "").status, 200);
        comes_back(&browser.ask("POST", "/b/tea/write", &other, &form), 429);
        let refused = browser.ask("POST", "/b/tea/write", &one, &form);
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(!refused.body.contains("draft"), "{refused:?}");
        drop(slow);
    });
}

#[test]
fn while_as_many_are_answered_as_may_be_others_are_shed() {
    let config = Config {
        most_requests: 2,
        reads: None,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        // They are being answered from when their bodies are asked for until these have come.
        let head = "POST /api/boards/tea/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                    Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
        let first_line = |stream: &mut BufReader<TcpStream>| {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            line
        };
        let busy = [(); 2].map(|()| {
            let mut stream = BufReader::new(connect(browser.address));
            stream.get_mut().write_all(head.as_bytes()).unwrap();
            let status = first_line(&mut stream);
            assert!(status.contains(" 100 "), "it is not shed: {status}");
            assert_eq!(first_line(&mut stream), "\r\n");
            stream
        });
        let shed = browser.get("/");
        assert_eq!((shed.status, shed.header("retry-after")), (503, "1"));
        comes_back(&browser.post("/b/tea/write", &DRAFT), 503);
        let metrics = browser.get("/metrics").body;
        assert!(metrics.contains("\nboard_requests 3\n"), "{metrics}");
        for mut stream in busy {
            stream.get_mut().write_all(b"x").unwrap();
            let status = first_line(&mut stream);
            assert!(status.contains(" 400 "), "{status}");
        }
        assert_eq!(browser.get("/").status, 200);
    });
}

#[test]
fn too_many_at_once_are_shed() {
    let config = Config {
        most_requests: 0,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let shed = browser.get("/");
        assert_eq!((shed.status, shed.header("retry-after")), (503, "1"));
        assert!(
            shed.body.contains("<h1>Service Unavailable</h1>"),
            "{shed:?}"
        );
        let shed = browser.get("/api/boards");
        assert_eq!(shed.header("content-type"), "application/problem+json");
        assert_eq!(browser.get("/readyz").body, "ready\n");
        let metrics = browser.get("/metrics").body;
        for row in [
            "board_answers_total{status=\"5xx\"} 2",
            "board_answer_seconds_bucket{le=\"+Inf\"} 3",
            "board_ready 1",
            "board_live_readers 0",
            "board_replays_total 0",
            "forest_commits_total ",
            "weald_processes ",
            "weald_longest_mailbox ",
        ] {
            assert!(metrics.contains(row), "{row}: {metrics}");
        }
    });
}

#[test]
fn a_full_disk_can_be_read_and_loses_no_draft() {
    // With short segments, the room for records is used up first; with long ones, the room for keys.
    for segment in [64 << 10, 16 << 20] {
        can_be_read_when_full(segment);
    }
}

fn can_be_read_when_full(segment: u32) {
    let disk = SimulatedDisk::new();
    let settings = Settings::new().segment(segment).checkpoint_after(None);
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    let forest = weald::block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let storage = Storage::Open(Store::Disk(forest));
    let config = Config {
        storage,
        reads: None,
        writes: None,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let [topic, others @ ..] = ["one", "two", "three"].map(|text| topic(&mut browser, text));
        let tag = browser.get("/b/tea").header("etag").to_owned();
        let kept = [("If-None-Match", tag.as_str())];
        assert_eq!(browser.ask("GET", "/b/tea", &kept, "").status, 304);
        disk.set_room(Some(disk.used()));
        let form = browser.get(&topic);
        let long = "a draft ".repeat(1_000);
        // Room that was prepared before the disk was full is used up first.
        let full = (0..400).find_map(|_| {
            let answered = browser.fill(&topic, &[("text", &long), ("author", "")]);
            (answered.status != 303).then_some(answered)
        });
        let full = full.unwrap();
        assert_eq!(
            (full.status, full.header("retry-after")),
            (503, "5"),
            "{full:?}"
        );
        assert!(
            full.body.contains("takes nothing new at the moment")
                && full.body.contains(long.trim())
        );
        let ready = browser.get("/readyz");
        assert_eq!((ready.status, &ready.body[..9]), (503, "read-only"));
        assert!(browser.get("/metrics").body.contains("\nboard_ready 0\n"));
        let page = browser.get(&topic);
        assert_eq!(page.status, 200);
        assert!(page.body.contains("Only to be read at the moment"));
        // The page that the browser has does not say so.
        assert_eq!(browser.ask("GET", "/b/tea", &kept, "").status, 200);
        let said = serde_json::json!({"title": "T", "text": long}).to_string();
        let asked = browser.json("POST", "/api/boards/tea/messages", &[], &said);
        assert_eq!(
            (asked.status, asked.header("retry-after")),
            (503, "5"),
            "{asked:?}"
        );
        let (_, token) = form.body.split_once("name=\"form\" value=\"").unwrap();
        let token = ("form", token.split('"').next().unwrap());
        // A full disk may take these, which does not show that it takes a message. (An erasure makes room for a key; so
        // `/readyz`, which tries, might find that a message is taken now. The figure does not try.)
        for (gone, other) in ["delete", "erase"].into_iter().zip(&others) {
            let sent = browser.post(&format!("{other}/{gone}"), &[token, ("sure", "yes")]);
            // With short segments there is no room for the plain attributes that come with it.
            let is_taken = segment > 1 << 20;
            assert!(sent.status == 303 || !is_taken, "{gone}: {sent:?}");
            let figures = browser.get("/metrics").body;
            assert!(figures.contains("\nboard_ready 0\n"), "{gone}");
        }
        disk.set_room(None);
        // Nobody has to write first: that there is room is found by looking, once a second.
        let began = Instant::now();
        while browser.get("/readyz").status != 200 {
            let is_late = began.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "nobody has noticed that there is room");
        }
        assert!(!browser.get(&topic).body.contains("Only to be read"));
        assert_eq!(
            browser
                .fill_from(&form, &[("text", "there is room"), ("author", "")])
                .status,
            303
        );
    });
}

#[test]
fn a_board_whose_directory_was_removed_can_be_read_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("boards");
    let config = Config {
        storage: Storage::Directory(path.clone()),
        reads: None,
        writes: None,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let topic = topic(&mut browser, "one");
        let draft = [("text", "a draft"), ("author", "")];
        // The journal may just be making a file there.
        while path.exists() {
            let _ = std::fs::remove_dir_all(&path);
        }
        // The first one finds it out, and nobody knows whether it would have been kept.
        let first = browser.fill(&topic, &draft);
        let refused = browser.fill(&topic, &draft);
        let page = browser.get(&topic);
        for refused in [&first, &refused] {
            let told = (refused.status, refused.header("retry-after"));
            assert_eq!(told, (503, ""), "{refused:?}");
            assert!(!refused.body.contains("at the moment"), "{refused:?}");
        }
        for shown in [&first, &refused, &page] {
            assert!(shown.body.contains("until it is started again"));
            assert!(!shown.body.contains("disk is full"));
        }
        for part in ["its directory was removed", "a draft"] {
            assert!(refused.body.contains(part), "{part}: {refused:?}");
        }
        assert_eq!(browser.get("/readyz").status, 503);
        assert!(page.body.contains("one"));
    });
}

#[test]
fn who_writes_first_after_another_program_has_taken_the_board_over_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("boards");
    let config = Config {
        storage: Storage::Directory(path.clone()),
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let topic = topic(&mut browser, "one");
        // Without its lock, the directory is anybody's.
        std::fs::remove_file(path.join("lock")).unwrap();
        let _other = DiskJournal::open(&path).unwrap();
        let draft = [("text", "a draft"), ("author", "")];
        for refused in [browser.fill(&topic, &draft), browser.fill(&topic, &draft)] {
            let told = (refused.status, refused.header("retry-after"));
            assert_eq!(told, (503, ""), "{refused:?}");
            for part in ["another program has taken it over", "a draft"] {
                assert!(refused.body.contains(part), "{part}: {refused:?}");
            }
        }
    });
}
