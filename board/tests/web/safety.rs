//! What keeps visitors safe: escaping, headers, and forms of other sites.

use std::io::{Read, Write};

use weald_board::Config;

use super::client::*;

#[test]
fn with_an_origin_forms_come_from_there_and_cookies_are_secure() {
    let config = Config {
        origin: Some("https://board.example".parse().unwrap()),
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let page = browser.get("/new");
        assert!(page.header("set-cookie").contains("; Secure"), "{page:?}");
        let token = page.body.split("name=\"form\" value=\"").nth(1).unwrap();
        let token = token.split('"').next().unwrap();
        let body = encoded(&[("form", token), ("title", "Tea")]);
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let own = format!("http://{}", browser.address);
        let mut send = |origin: &str| {
            let headers = [kind, ("Origin", origin)];
            browser.ask("POST", "/new", &headers, &body).status
        };
        assert_eq!(send("https://evil.example"), 403);
        assert_eq!(send("http://board.example"), 403);
        assert_eq!(send(&own), 403);
        assert_eq!(send("https://board.example"), 303);
        let feed = browser.get("/b/tea/feed").body;
        assert!(feed.contains("\"https://board.example/b/tea"), "{feed}");
    });
}

/// A page of the web whose name leads to this machine could read the board, and write to it.
#[test]
fn another_name_does_not_lead_to_a_board_of_this_machine() {
    let asked_for = |path: &str, config: Config, host: &str| {
        let mut status = 0;
        with_config(config, |browser| {
            let mut stream = std::net::TcpStream::connect(browser.address).unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        });
        status
    };
    for (path, misled) in [
        ("/api/boards", 421),
        ("/metrics", 421),
        ("/healthz", 200),
        ("/readyz", 200),
    ] {
        let asked = |host| asked_for(path, Config::default(), host);
        assert_eq!(asked("localhost:8080"), 200, "{path}");
        assert_eq!(asked("evil.example"), misled, "{path}");
    }
    let asked = |config, host: &str| asked_for("/api/boards", config, host);
    let named = Config {
        origin: Some("http://tea.example".parse().unwrap()),
        ..Config::default()
    };
    assert_eq!(asked(named, "tea.example"), 200);
    let behind = Config {
        proxies: vec![std::net::IpAddr::from([127, 0, 0, 1]).into()],
        ..Config::default()
    };
    assert_eq!(asked(behind, "tea.example"), 200);
}

#[test]
fn nothing_that_is_written_becomes_markup() {
    with_board(|mut browser| {
        let evil = "\"'><script>alert(1)</script>";
        browser
            .fill("/new", &[("title", &format!("Tea {evil}")), ("text", evil)])
            .place();
        let boards = browser.get("/").body;
        let board = boards
            .split("href=\"/b/")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let board = format!("/b/{board}");
        let fields = [("title", evil), ("text", evil), ("author", evil)];
        let topic = browser.fill(&format!("{board}/write"), &fields).place();
        browser
            .fill(
                &topic,
                &[
                    (
                        "text",
                        &format!("`{evil}` **{evil}** [a](javascript:{evil})"),
                    ),
                    ("author", evil),
                ],
            )
            .place();
        let search = format!("{board}/search?{}", encoded(&[("q", evil)]));
        let pages = [
            "/",
            &board,
            &topic,
            &format!("{topic}/edit"),
            &format!("{topic}/history"),
            &search,
        ];
        let answer = browser.get(&topic).body;
        let (_, answer) = answer.split_once("<article id=\"m").unwrap();
        let answer = format!("{board}/{}", answer.split('"').next().unwrap());
        let feed = format!("{board}/feed");
        let at = format!("{board}?{}", encoded(&[("at", evil)]));
        let pages = pages
            .into_iter()
            .chain([answer.as_str(), feed.as_str(), at.as_str()]);
        let long = evil.repeat(5);
        let refused = browser.fill("/new", &[("title", &long), ("text", evil)]);
        assert_eq!(refused.status, 422);
        assert!(!refused.body.contains("<script"), "{refused:?}");
        let edit = format!("{topic}/edit");
        let seen = browser.get(&edit);
        let fields = |text| [("title", evil), ("text", text), ("author", evil)];
        browser.fill(&edit, &fields("script")).place();
        let conflict = browser.fill_from(&seen, &fields(evil));
        assert_eq!(conflict.status, 409);
        let conflict = conflict.body.replace("<script src=\"/live.js?", "");
        assert!(!conflict.contains("<script"), "{conflict}");
        for path in pages {
            let body = browser
                .get(path)
                .body
                .replace("<script src=\"/live.js?", "");
            assert!(!body.contains("<script"), "{path}: {body}");
            assert!(!body.contains("javascript:\""), "{path}: {body}");
            assert!(body.contains("script"), "{path} shows it as text");
        }
    });
}

#[test]
fn every_answer_has_the_headers_of_safety() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        for path in [
            "/",
            "/b/tea",
            &topic,
            "/nowhere",
            "/style.css",
            "/api/boards",
            "/healthz",
        ] {
            let answered = browser.get(path);
            let policy = answered.header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
                "{path}"
            );
            assert_eq!(
                answered.header("x-content-type-options"),
                "nosniff",
                "{path}"
            );
            assert!(
                !answered.body.contains(" style=") && !answered.body.contains(" onclick="),
                "{path}"
            );
        }
        let mut new = Browser::new(browser.address);
        let cookie = new.get("/").header("set-cookie").to_owned();
        assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
        assert!(
            !new.get("/")
                .headers
                .iter()
                .any(|(name, _)| name == "set-cookie"),
            "once is enough"
        );
    });
}

#[test]
fn forms_of_other_sites_are_refused_and_keep_the_text() {
    with_board(|mut browser| {
        topic(&mut browser, "one");
        let form = browser.get("/b/tea/write").body;
        let token = form
            .split("name=\"form\" value=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let body = |token| {
            encoded(&[
                ("form", token),
                ("title", "T"),
                ("text", "a draft"),
                ("author", ""),
            ])
        };
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let host = format!("http://{}", browser.address);
        for (headers, token) in [
            (vec![kind], "guessed"),
            (vec![kind, ("Origin", "https://evil.example")], token),
            (vec![kind, ("Origin", "null")], token),
            (vec![kind, ("Sec-Fetch-Site", "cross-site")], token),
            (vec![kind, ("Sec-Fetch-Site", "same-site")], token),
        ] {
            let refused = browser.ask("POST", "/b/tea/write", &headers, &body(token));
            assert_eq!(refused.status, 403, "{headers:?}");
            assert!(refused.body.contains("a draft"));
        }
        let mut stranger = Browser::new(browser.address);
        assert_eq!(
            stranger
                .ask("POST", "/b/tea/write", &[kind], &body(token))
                .status,
            403
        );
        let headers = [kind, ("Origin", &host), ("Sec-Fetch-Site", "same-origin")];
        assert_eq!(
            browser
                .ask("POST", "/b/tea/write", &headers, &body(token))
                .status,
            303
        );
    });
}

#[test]
fn a_form_with_a_field_twice_is_refused_and_writes_nothing() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let fields = [
            ("text", "first words"),
            ("text", "second words"),
            ("author", "A"),
        ];
        let refused = browser.fill(&topic, &fields);
        assert_eq!(refused.status, 400, "{refused:?}");
        let told = "The form has `text` more than once.";
        assert!(refused.body.contains(told), "{refused:?}");
        assert!(refused.body.contains("first words"), "{refused:?}");
        assert!(!browser.get(&topic).body.contains("words"));
    });
}
