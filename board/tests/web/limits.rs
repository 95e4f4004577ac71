//! Limits: sizes, rates, proxies; and what those ask who run the board.

use std::net::IpAddr;
use std::time::Duration;

use weald_board::{Config, Rate};

use super::client::*;

const SLOW: Duration = Duration::from_secs(3_600);

#[test]
fn what_is_too_large_is_refused() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let long = "x".repeat(70_000);
        let refused = browser.post(&format!("{topic}/answer"), &[("text", &long)]);
        assert_eq!(refused.status, 413, "{refused:?}");
        let path = "/api/boards/tea/messages";
        assert_eq!(browser.json("POST", path, &[], &long).status, 413);
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
fn one_who_reads_too_often_waits_behind_a_proxy_too() {
    let reads = Some(Rate {
        burst: 2,
        every: SLOW,
    });
    let proxies = vec![IpAddr::from([127, 0, 0, 1])];
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

#[test]
fn too_many_at_once_are_shed() {
    let config = Config {
        most_requests: 0,
        ..Config::default()
    };
    with_config(config, |mut browser| {
        let shed = browser.get("/");
        assert_eq!((shed.status, shed.header("retry-after")), (503, "1"));
        assert_eq!(browser.get("/readyz").body, "ready\n");
        let metrics = browser.get("/metrics").body;
        for row in [
            "board_answers_total{status=\"5xx\"} 1",
            "board_answer_seconds_bucket{le=\"+Inf\"} 2",
            "board_ready 1",
        ] {
            assert!(metrics.contains(row), "{row}: {metrics}");
        }
    });
}
