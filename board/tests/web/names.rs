//! Names that are protected by a passphrase, on pages and through the API.

use std::time::Duration;

use weald_board::{Config, Rate};

use super::client::*;

const SECRET: &str = "correct horse battery";

fn says<'a>(text: &'a str, author: &'a str, passphrase: &'a str) -> [(&'a str, &'a str); 3] {
    [
        ("text", text),
        ("author", author),
        ("passphrase", passphrase),
    ]
}

fn protect(browser: &mut Browser, name: &str) -> Answered {
    browser.fill("/names", &[("author", name), ("passphrase", SECRET)])
}

#[test]
fn only_those_who_know_the_passphrase_write_under_a_protected_name() {
    with_board(|mut ada| {
        let topic = topic(&mut ada, "one");
        assert!(!ada.get(&topic).body.contains("a protected name"));
        assert_eq!(protect(&mut ada, "Ada").place(), "/names?done=protected");
        ada.fill(&topic, &says("hers", "Ada", "")).place();
        assert!(ada.get(&topic).body.contains("a protected name"));

        let mut stranger = Browser::new(ada.address);
        for (passphrase, sentence) in [
            (
                "",
                "This name is protected. If it is yours, give its passphrase",
            ),
            ("wrong horse", "This is not the passphrase of the name."),
            (&"x".repeat(201), "This is not the passphrase of the name."),
        ] {
            let refused = stranger.fill(&topic, &says("a draft", " aDA\u{200b}", passphrase));
            assert_eq!(refused.status, 403, "{refused:?}");
            let body = &refused.body;
            assert!(
                body.contains("a draft") && body.contains(sentence),
                "{body}"
            );
            assert!(body.contains("<details class=\"field\" open>"), "{body}");
            assert!(
                body.contains("aria-describedby=\"passphrase-problem\""),
                "{body}"
            );
            assert!(passphrase.is_empty() || !body.contains(passphrase));
        }
        let refused = stranger.fill(&topic, &says("a draft", "Bob", SECRET));
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("Nobody has protected this name."));
        stranger
            .fill(&topic, &says("elsewhere", "Ada", SECRET))
            .place();
        stranger
            .fill(&topic, &says("known by now", "Ada", ""))
            .place();
    });
}

#[test]
fn an_edit_to_a_protected_name_needs_the_passphrase_too() {
    with_board(|mut ada| {
        let mut bob = Browser::new(ada.address);
        let topic = topic(&mut bob, "one");
        assert_eq!(protect(&mut ada, "Ada").status, 303);
        let edit = format!("{topic}/edit");
        let page = bob.get(&edit);
        assert_eq!(page.status, 200);
        let fields = [("title", "A topic"), ("text", "two"), ("author", "Ada")];
        let refused = bob.fill_from(&page, &fields);
        assert_eq!(refused.status, 403);
        assert!(refused.body.contains("two"));
    });
}

#[test]
fn a_name_gets_another_passphrase_and_is_given_up() {
    with_board(|mut ada| {
        let topic = topic(&mut ada, "one");
        let short = ada.fill("/names", &[("author", "Ada"), ("passphrase", "short")]);
        assert_eq!(short.status, 422);
        assert!(
            short
                .body
                .contains("A passphrase has at least 10 characters.")
        );
        assert!(!short.body.contains("\"short\""));
        assert_eq!(protect(&mut ada, "Ada").status, 303);
        // A double click is one protection.
        assert_eq!(protect(&mut ada, "ADA").place(), "/names?done=protected");
        let fields = [("author", "ADA"), ("passphrase", "wrong horse")];
        let taken = ada.fill("/names", &fields);
        assert_eq!(taken.status, 409);
        assert!(
            taken
                .body
                .contains("Somebody has protected this name already.")
        );

        let form = ada.get("/names").body;
        let token = form.split("name=\"form\" value=\"").nth(1).unwrap();
        let token = token.split('"').next().unwrap().to_owned();
        let change = |ada: &mut Browser, old: &str, what: &str| {
            let fields = [
                ("form", token.as_str()),
                ("author", "Ada"),
                ("passphrase", old),
                ("new", "another passphrase"),
                ("do", what),
            ];
            ada.post("/names/change", &fields)
        };
        assert_eq!(change(&mut ada, "wrong horse", "change").status, 403);
        for _ in 0..2 {
            let changed = change(&mut ada, SECRET, "change");
            assert_eq!(changed.place(), "/names?done=changed");
        }
        // A proof by the old passphrase counts no more.
        assert_eq!(ada.fill(&topic, &says("x", "Ada", "")).status, 403);
        assert_eq!(ada.fill(&topic, &says("x", "Ada", SECRET)).status, 403);
        ada.fill(&topic, &says("x", "Ada", "another passphrase"))
            .place();
        let released = change(&mut ada, "another passphrase", "release");
        assert_eq!(released.place(), "/names?done=released");
        let mut stranger = Browser::new(ada.address);
        stranger.fill(&topic, &says("free", "Ada", "")).place();
    });
}

#[test]
fn programs_protect_names_and_prove_them() {
    with_board(|mut program| {
        topic(&mut program, "one");
        let own = |passphrase| serde_json::json!({"name": "Ada", "passphrase": passphrase});
        let mut send = |path: &str, value: serde_json::Value| {
            let answered = program.json("POST", path, &[], &value.to_string());
            (answered.status, answered.value())
        };
        for _ in 0..2 {
            assert_eq!(send("/api/names", own(SECRET)).0, 201);
        }
        assert_eq!(send("/api/names", own("wrong horse")).0, 409);
        let said = |passphrase| serde_json::json!({"author": "Ada", "title": "T", "text": "x", "passphrase": passphrase});
        let messages = "/api/boards/tea/messages";
        let (status, refused) = send(messages, said("wrong horse"));
        assert_eq!(
            (status, &refused["fields"][0]["field"]),
            (403, &"passphrase".into())
        );
        let (status, written) = send(messages, said(SECRET));
        assert_eq!(status, 201);
        let mut change = own(SECRET);
        change["new"] = "another passphrase".into();
        assert_eq!(send("/api/names/passphrase", change).0, 200);
        assert_eq!(send("/api/names/release", own(SECRET)).0, 403);
        assert_eq!(send("/api/names/release", own("another passphrase")).0, 200);
        assert_eq!(send(messages, said("")).0, 201);
        let message = program
            .get(&format!("{messages}/{}", written["id"]))
            .value();
        assert_eq!(message["message"]["proven"], true);
    });
}

#[test]
fn guesses_from_many_addresses_keep_the_owner_of_a_name_not_out() {
    let tries = Some(Rate {
        burst: 1,
        every: Duration::from_secs(3_600),
    });
    let config = Config {
        tries,
        moderator: Some(weald_board::model::Hashed::of(SECRET)),
        proxies: vec![std::net::IpAddr::from([127, 0, 0, 1]).into()],
        ..Config::default()
    };
    with_config(config, |mut ada| {
        protect(&mut ada, "Ada").place();
        topic(&mut ada, "one");
        let says = |passphrase: &str, program: &mut Browser, of: &str| {
            let said = serde_json::json!({"author": "Ada", "title": "T", "text": "x", "passphrase": passphrase});
            let from = [("X-Forwarded-For", of)];
            let messages = "/api/boards/tea/messages";
            program
                .json("POST", messages, &from, &said.to_string())
                .status
        };
        let signs_in = |passphrase: &str, program: &mut Browser, of: &str| {
            let body = serde_json::json!({"name": "Grace", "passphrase": passphrase});
            let from = [("X-Forwarded-For", of)];
            program
                .json("POST", "/api/moderators", &from, &body.to_string())
                .status
        };
        for number in 1..=10 {
            let of = format!("192.0.2.{number}");
            assert_eq!(says("a wrong horse", &mut ada, &of), 403, "its first guess");
            assert_eq!(says(SECRET, &mut ada, &of), 429, "its second guess");
            let of = format!("192.0.2.1{number}");
            assert_eq!(signs_in("a wrong horse", &mut ada, &of), 403);
            assert_eq!(signs_in(SECRET, &mut ada, &of), 429);
        }
        for _ in 0..3 {
            assert_eq!(says(SECRET, &mut ada, "192.0.2.200"), 201);
            assert_eq!(signs_in(SECRET, &mut ada, "192.0.2.201"), 201);
        }
    });
}

#[test]
fn guesses_of_others_do_not_disturb_an_owner_who_sends_a_change_twice() {
    let tries = Some(Rate {
        burst: 2,
        every: Duration::from_secs(3_600),
    });
    let config = Config {
        tries,
        proxies: vec![std::net::IpAddr::from([127, 0, 0, 1]).into()],
        ..Config::default()
    };
    with_config(config, |mut ada| {
        protect(&mut ada, "Ada").place();
        let mut send = |what: &str, old: &str, of: &str| {
            let mut own = serde_json::json!({"name": "Ada", "passphrase": old});
            if what == "passphrase" {
                own["new"] = "another passphrase".into();
            }
            let from = [("X-Forwarded-For", of)];
            let path = format!("/api/names/{what}");
            ada.json("POST", &path, &from, &own.to_string()).status
        };
        for number in 1..=10 {
            let of = format!("192.0.2.{number}");
            assert_eq!(
                send("release", "a wrong horse", &of),
                403,
                "its first guess"
            );
        }
        assert_eq!(send("release", "a wrong horse", "192.0.2.10"), 429);
        for _ in 0..3 {
            assert_eq!(send("passphrase", SECRET, "192.0.2.200"), 200);
        }
        assert_eq!(send("release", "another passphrase", "192.0.2.200"), 200);
    });
}

#[test]
fn passphrases_cannot_be_tried_without_end() {
    let tries = Some(Rate {
        burst: 2,
        every: Duration::from_secs(3_600),
    });
    let config = Config {
        tries,
        ..Config::default()
    };
    with_config(config.clone(), |mut ada| {
        let topic = topic(&mut ada, "one");
        assert_eq!(protect(&mut ada, "Ada").status, 303);
        // Those that are right cost nothing.
        for _ in 0..3 {
            ada.fill(&topic, &says("hers", "Ada", SECRET)).place();
        }
        for _ in 0..2 {
            assert_eq!(
                ada.fill(&topic, &says("x", "Ada", "wrong horse")).status,
                403
            );
        }
        let refused = ada.fill(&topic, &says("a draft", "Ada", SECRET));
        assert_eq!(refused.status, 429);
        assert!(refused.header("retry-after").parse::<u64>().unwrap() > 3_000);
        assert!(refused.body.contains("a draft"));
        assert!(refused.body.contains("Too many passphrases were wrong."));
    });
    // A change names two of them.
    with_config(config, |mut ada| {
        let topic = topic(&mut ada, "one");
        assert_eq!(protect(&mut ada, "Ada").status, 303);
        let form = ada.get("/names").body;
        let token = form.split("name=\"form\" value=\"").nth(1).unwrap();
        let fields = [
            ("form", token.split('"').next().unwrap()),
            ("author", "Ada"),
            ("passphrase", "a wrong horse"),
            ("new", "another wrong horse"),
            ("do", "change"),
        ];
        assert_eq!(ada.post("/names/change", &fields).status, 403);
        let mut stranger = Browser::new(ada.address);
        let refused = stranger.fill(&topic, &says("a draft", "Ada", SECRET));
        assert_eq!(refused.status, 429);
    });
}
