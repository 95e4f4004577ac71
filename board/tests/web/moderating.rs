//! Moderators: signing in and out, measures, and the log of them.

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use weald::forest::{Clock, Forest, SystemClock};
use weald_board::model::{Hashed, Store};
use weald_board::{Config, Rate, Storage};

use super::client::*;

const SECRET: &str = "the moderators' passphrase";

fn config() -> Config {
    static HASH: OnceLock<Hashed> = OnceLock::new();
    Config {
        moderator: Some(HASH.get_or_init(|| Hashed::of(SECRET)).clone()),
        reads: None,
        writes: None,
        ..Config::default()
    }
}

fn sign_in(browser: &mut Browser, passphrase: &str) -> Answered {
    let fields = [("author", "Grace"), ("passphrase", passphrase)];
    browser.fill("/moderate", &fields)
}

fn measure(browser: &mut Browser, topic: &str, fields: &[(&str, &str)]) -> Answered {
    browser.fill(&format!("{topic}/moderate"), fields)
}

#[test]
fn a_moderator_deletes_restores_and_erases_and_the_log_says_why() {
    with_config(config(), |mut ada| {
        let topic = topic(&mut ada, "a secret");
        let mut grace = Browser::new(ada.address);
        let page = grace.get(&format!("{topic}/moderate"));
        assert_eq!(page.status, 403, "{page:?}");
        let before = grace.get(&topic);
        assert!(!before.body.contains("/moderate\">"));
        assert_eq!(sign_in(&mut grace, SECRET).place(), "/moderate");
        let tag = before.header("etag").to_owned();
        let after = grace.ask("GET", &topic, &[("If-None-Match", &tag)], "");
        assert_eq!(after.status, 200, "the page has a link more");
        assert!(after.body.contains(&format!("{topic}/moderate")));

        let refused = measure(&mut grace, &topic, &[("why", ""), ("do", "delete")]);
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("Say why"), "{refused:?}");
        let fields = [("why", "rude <b>"), ("do", "delete")];
        assert_eq!(measure(&mut grace, &topic, &fields).place(), topic);
        assert_eq!(ada.get(&topic).status, 410);
        let fields = [("why", "was not"), ("do", "restore")];
        assert_eq!(measure(&mut grace, &topic, &fields).place(), topic);
        assert_eq!(ada.get(&topic).status, 200);
        let unsure = measure(&mut grace, &topic, &[("why", "the law"), ("do", "erase")]);
        assert_eq!(unsure.status, 422);
        assert!(unsure.body.contains("value=\"the law\""), "{unsure:?}");
        let sure = [("why", "the law"), ("do", "erase"), ("sure", "yes")];
        assert_eq!(measure(&mut grace, &topic, &sure).place(), topic);
        assert!(ada.get(&topic).body.contains("Erased for good"));
        let log = grace.get("/moderate").body;
        let places = [
            "Erased <a",
            "the law",
            "Restored <a",
            "was not",
            "Deleted <a",
            "rude &#60;b&#62;",
        ]
        .map(|text| log.find(text).unwrap_or_else(|| panic!("{text}: {log}")));
        assert!(places.is_sorted(), "the newest comes first");
        assert!(log.contains("<b>Grace</b>") && !log.contains("a secret"));
    });
}

#[test]
fn a_double_click_of_a_moderator_is_one_measure() {
    with_config(config(), |mut ada| {
        let topic = topic(&mut ada, "one");
        let fields = [("author", "Ada"), ("passphrase", "a long passphrase")];
        assert_eq!(ada.fill("/names", &fields).place(), "/names?done=protected");
        let mut grace = Browser::new(ada.address);
        sign_in(&mut grace, SECRET);
        let sure = [("why", "the law"), ("do", "erase"), ("sure", "yes")];
        let free = [("why", "she has forgotten it"), ("name", "Ada")];
        let of_topic = format!("{topic}/moderate");
        for (page, fields, place) in [
            (
                of_topic.as_str(),
                &[("why", "rude"), ("do", "delete")][..],
                topic.as_str(),
            ),
            (&of_topic, &sure, &topic),
            ("/moderate", &free, "/moderate"),
            ("/b/tea/moderate", &sure, "/moderate"),
        ] {
            let form = grace.get(page);
            for _ in 0..2 {
                let taken = grace.fill_from(&form, fields);
                assert_eq!(taken.place(), place, "{taken:?}");
            }
        }
        let log = grace.get("/moderate").body;
        let count = |text| log.matches(text).count();
        assert_eq!(count("<li>"), 4, "{log}");
        assert_eq!(
            ["Deleted <a", "Erased <a", "Freed the"].map(count),
            [1, 2, 1]
        );
    });
}

#[test]
fn a_moderator_frees_a_name_and_the_log_says_why() {
    with_config(config(), |mut ada| {
        let fields = [("author", "Ada"), ("passphrase", "a long passphrase")];
        assert_eq!(ada.fill("/names", &fields).place(), "/names?done=protected");
        let mut grace = Browser::new(ada.address);
        let why = [("name", "ADA"), ("why", "she has forgotten it")];
        assert_eq!(grace.post("/moderate/names", &why).status, 403);
        sign_in(&mut grace, SECRET);
        let refused = grace.fill("/moderate", &[("name", "Ada"), ("why", "")]);
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("value=\"Ada\""), "{refused:?}");
        let unknown = grace.fill("/moderate", &[("name", "Alan"), ("why", "x")]);
        assert_eq!(unknown.status, 404);
        assert!(unknown.body.contains("Nobody has protected this name."));
        assert_eq!(grace.fill("/moderate", &why).place(), "/moderate");
        let log = grace.get("/moderate").body;
        for text in ["Freed the name “ADA”", "she has forgotten it"] {
            assert!(log.contains(text), "{text}: {log}");
        }
        assert!(!log.contains("Alan"), "{log}");
        let topic = topic(&mut grace, "anybody is Ada");
        assert!(!grace.get(&topic).body.contains("a protected name"));
        assert_eq!(ada.fill("/names", &fields).place(), "/names?done=protected");

        let key = |mut program: Browser| {
            let body = format!("{{\"name\": \"Grace\", \"passphrase\": \"{SECRET}\"}}");
            let session = program.json("POST", "/api/moderators", &[], &body).value();
            format!("Bearer {}", session["key"].as_str().unwrap())
        };
        let mut program = Browser::new(ada.address);
        let body = "{\"name\": \"Ada\", \"why\": \"again\"}";
        let refused = program.json("POST", "/api/names/free", &[], body);
        assert_eq!(refused.status, 401);
        assert_eq!(refused.header("www-authenticate"), "Bearer");
        let key = key(program.clone());
        let key = [("Authorization", key.as_str())];
        let freed = program.json("POST", "/api/names/free", &key, body);
        assert_eq!(
            freed.value(),
            serde_json::json!({"name": "Ada", "protected": false})
        );
        assert_eq!(
            program.json("POST", "/api/names/free", &key, body).status,
            404
        );
        let log = program.json("GET", "/api/audit", &key, "").value();
        assert_eq!(log["entries"][0]["measure"], "free");
        assert_eq!(log["entries"][0]["name"], "Ada");
    });
}

/// A clock that is fast by this many days.
struct Fast(AtomicU32);

impl Clock for Fast {
    fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(86_400) * self.0.load(Ordering::Relaxed)
    }

    fn uptime(&self) -> Duration {
        SystemClock::default().uptime()
    }

    fn wake_at(&self, _deadline: Duration, _waker: Waker) {}
}

/// The times of versions never go back, so those after it have the time of the last one before it.
#[test]
fn after_a_fast_clock_was_set_right_a_board_is_changed_just_now() {
    let clock = Arc::new(Fast(AtomicU32::new(3)));
    let forest = Forest::builder().clock(clock.clone()).build();
    let config = Config {
        storage: Storage::Open(Store::Memory(forest)),
        ..config()
    };
    with_config(config, |mut ada| {
        let topic = topic(&mut ada, "one");
        clock.0.store(0, Ordering::Relaxed);
        let answer = [("text", "two"), ("author", "")];
        assert_eq!(ada.fill(&topic, &answer).status, 303);
        sign_in(&mut ada, SECRET);
        for page in ["/", "/admin"] {
            let list = ada.get(page).body;
            let is_so = list.contains("just now") && !list.contains("in 2 days");
            assert!(is_so, "{page}: {list}");
        }
    });
}

#[test]
fn a_moderator_sees_what_goes_on_inside() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::Directory(directory.path().join("boards"));
    with_config(
        Config {
            storage,
            ..config()
        },
        |mut ada| {
            topic(&mut ada, "one");
            assert_eq!(ada.get("/admin").status, 403);
            let mut grace = Browser::new(ada.address);
            sign_in(&mut grace, SECRET);
            assert!(grace.get("/").body.contains("href=\"/admin\""));
            let mut stream = connect(ada.address);
            write!(
                stream,
                "GET /b/tea/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
            )
            .unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while !line.contains("retry") {
                line.clear();
                assert!(stream.read_line(&mut line).unwrap() > 0);
            }
            let page = grace.get("/admin").body;
            for text in [
                "data-every=",
                "Supervisor of the live updates: 1 processes, 1 readers",
                "live updates of tea, ",
                "None is stuck.",
                "<h2 id=\"table-4\">Journal",
            ] {
                assert!(page.contains(text), "{text}: {page}");
            }
            let row = |name: &str| {
                let row = page.split(&format!("{name}</th><td>")).nth(1);
                row.unwrap().split('<').next().unwrap().to_owned()
            };
            assert!(row("Processes").parse::<u32>().unwrap() >= 2, "{page}");
            assert!(
                row("Commits since the start").parse::<u32>().unwrap() >= 2,
                "{page}"
            );
            assert!(
                row("Versions in memory").parse::<u32>().unwrap() >= 2,
                "{page}"
            );
            assert_ne!(row("Bytes"), "0 B");
            assert_eq!(row("Being answered"), "1");
        },
    );
}

#[test]
fn a_session_is_safe_and_ends_when_its_moderator_signs_out() {
    let proxies = vec![IpAddr::from([127, 0, 0, 1]).into()];
    with_config(
        Config {
            proxies,
            ..config()
        },
        |mut grace| {
            let wrong = sign_in(&mut grace, "a wrong passphrase");
            assert_eq!(wrong.status, 403);
            assert!(
                wrong
                    .body
                    .contains("aria-describedby=\"passphrase-problem\"")
            );
            assert!(wrong.body.contains("value=\"Grace\"") && !wrong.body.contains("a wrong"));
            assert_eq!(grace.cookies.get("board_moderator"), None);
            let signed = sign_in(&mut grace, SECRET);
            let cookie = signed.all("set-cookie").join("\n");
            assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
            assert!(!cookie.contains("Secure"));
            // Without TLS the cookie does not count behind a proxy with TLS, and the other way round.
            let tls = [("X-Forwarded-Proto", "https")];
            assert!(
                grace
                    .ask("GET", "/moderate", &tls, "")
                    .body
                    .contains("Sign in as")
            );

            let log = grace.get("/moderate").body;
            assert!(log.contains("Nothing had to be done yet."), "{log}");
            let token = log.split("name=\"form\" value=\"").nth(1).unwrap();
            let token = token.split('"').next().unwrap().to_owned();
            let stolen = grace.clone();
            let kind = ("Content-Type", "application/x-www-form-urlencoded");
            let evil = [kind, ("Origin", "https://evil.example")];
            let body = encoded(&[("form", &token)]);
            assert_eq!(
                grace.ask("POST", "/moderate/sign-out", &evil, &body).status,
                403
            );
            assert_eq!(
                grace
                    .post("/moderate/sign-out", &[("form", "guessed")])
                    .status,
                403
            );
            assert!(grace.get("/moderate").body.contains("Sign out"));
            let out = grace.post("/moderate/sign-out", &[("form", &token)]);
            assert!(
                out.header("set-cookie")
                    .contains("board_moderator=; Path=/; Max-Age=0")
            );
            assert!(stolen.clone().get("/moderate").body.contains("Sign in as"));

            let form = [
                ("form", token.as_str()),
                ("author", "Grace"),
                ("passphrase", SECRET),
            ];
            let headers = [kind, tls[0]];
            let signed = grace.ask("POST", "/moderate", &headers, &encoded(&form));
            let cookie = signed.all("set-cookie").join("\n");
            assert!(
                cookie.contains("__Host-board_moderator=") && cookie.contains("; Secure"),
                "{cookie}"
            );
        },
    );
}

#[test]
fn without_a_passphrase_there_are_no_moderators() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        for path in ["/moderate", &format!("{topic}/moderate"), "/api/audit"] {
            assert_eq!(browser.get(path).status, 404, "{path}");
        }
        assert!(!browser.get("/").body.contains("/moderate"));
    });
}

#[test]
fn programs_moderate_with_a_key_of_their_own() {
    with_config(config(), |mut program| {
        topic(&mut program, "one");
        let own = ("Authorization", "Bearer 0123456789abcdef");
        let said = "{\"title\": \"T\", \"text\": \"x\"}";
        let messages = "/api/boards/tea/messages";
        let id = program.json("POST", messages, &[own], said).value()["id"].clone();
        let place = format!("{messages}/{id}/moderate");
        let asked = "{\"measure\": \"delete\", \"why\": \"rude\"}";
        assert_eq!(program.json("POST", &place, &[own], asked).status, 403);
        let signed =
            |passphrase| serde_json::json!({"name": "Grace", "passphrase": passphrase}).to_string();
        let wrong = program.json(
            "POST",
            "/api/moderators",
            &[],
            &signed("a wrong passphrase"),
        );
        assert_eq!(wrong.status, 403);
        let session = program.json("POST", "/api/moderators", &[], &signed(SECRET));
        assert_eq!(session.status, 201);
        let key = format!("Bearer {}", session.value()["key"].as_str().unwrap());
        let key = ("Authorization", key.as_str());
        let once = [key, ("Idempotency-Key", "once")];
        for _ in 0..2 {
            assert_eq!(program.json("POST", &place, &once, asked).status, 200);
        }
        let other = "{\"measure\": \"delete\", \"why\": \"spam\"}";
        assert_eq!(program.json("POST", &place, &once, other).status, 409);
        assert_eq!(program.get(&format!("{messages}/{id}")).status, 410);
        let none = format!("{messages}/77/moderate");
        assert_eq!(program.json("POST", &none, &[key], asked).status, 404);
        let log = program.ask("GET", "/api/audit", &[key], "").value();
        let entries = log["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{log}");
        assert_eq!(
            (&entries[0]["who"], &entries[0]["outcome"]),
            (&"Grace".into(), &"done".into())
        );
    });
}

#[test]
fn the_passphrase_cannot_be_tried_without_end() {
    let tries = Some(Rate {
        burst: 1,
        every: Duration::from_secs(3_600),
    });
    with_config(Config { tries, ..config() }, |mut grace| {
        assert_eq!(sign_in(&mut grace, SECRET).status, 303);
        let mut other = Browser::new(grace.address);
        assert_eq!(sign_in(&mut other, "a wrong passphrase").status, 403);
        let refused = sign_in(&mut other, SECRET);
        assert_eq!(refused.status, 429);
        assert!(refused.body.contains("Too many passphrases were wrong."));
    });
}

#[test]
fn figures_are_for_this_machine_and_for_moderators_unless_they_are_open() {
    let passed_on = ("X-Forwarded-For", "198.51.100.7");
    with_config(config(), |mut program| {
        assert_eq!(program.get("/metrics").status, 200);
        let refused = program.ask("GET", "/metrics", &[passed_on], "");
        assert_eq!(refused.status, 403);
        assert!(!refused.body.contains("board_"), "{refused:?}");
        let body = format!("{{\"name\": \"Grace\", \"passphrase\": \"{SECRET}\"}}");
        let session = program.json("POST", "/api/moderators", &[], &body).value();
        let key = format!("Bearer {}", session["key"].as_str().unwrap());
        let with = |key| [passed_on, ("Authorization", key)];
        assert_eq!(program.ask("GET", "/metrics", &with(&key), "").status, 200);
        assert_eq!(
            program.ask("GET", "/metrics", &with("Bearer x"), "").status,
            403
        );
    });
    let open = Config {
        has_open_metrics: true,
        ..config()
    };
    with_config(open, |mut program| {
        assert_eq!(program.ask("GET", "/metrics", &[passed_on], "").status, 200);
    });
}
