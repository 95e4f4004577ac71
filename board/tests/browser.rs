//! The board in a real browser. Where there is none, these tests say so and do nothing.
//!
//! They leave pictures of the pages in `target/tmp/board-pictures`, for people to look at.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "web/client.rs"]
#[allow(dead_code, reason = "a real browser needs only the server of it")]
mod client;
#[path = "browser/live.rs"]
mod live;
#[path = "browser/looks.rs"]
mod looks;
#[path = "browser/tab.rs"]
mod tab;
#[path = "browser/writing.rs"]
mod writing;

use std::net::SocketAddr;
use std::sync::Arc;

use weald_board::Config;
use weald_board::model::{Boards, Hashed};

use chromium::Chromium;

const SECRET: &str = "the moderators' passphrase";

fn config() -> Config {
    Config {
        moderator: Some(Hashed::of(SECRET)),
        reads: None,
        writes: None,
        ..Config::default()
    }
}

#[test]
fn without_a_browser_a_test_says_that_it_is_skipped() {
    let itself = std::env::current_exe().unwrap();
    let test = "writing::no_script_is_needed";
    let mut suite = std::process::Command::new(itself);
    suite.args(["--exact", test]).env("WEALD_BROWSER", "");
    let ended = suite.output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{told}");
    assert!(
        told.contains(&format!("skipped {test}: there is no browser")),
        "{told}"
    );
}

/// Runs a test with the browser and with boards that have content.
fn with_boards(test: impl FnOnce(&Chromium, SocketAddr)) {
    chromium::with_chromium(|chromium| {
        client::with_config(config(), |browser| test(chromium, browser.address));
    });
}

/// Runs a test with the browser and with the boards of the demo.
fn with_demo(test: impl FnOnce(&Chromium, SocketAddr)) {
    use weald::forest::Forest;
    use weald_board::Storage;
    use weald_board::model::{DemoClock, Store};

    chromium::with_chromium(|chromium| {
        let clock = DemoClock::default();
        let forest = Forest::builder().clock(Arc::new(clock.clone())).build();
        let store = Store::Memory(forest);
        let filled = async {
            let boards = Boards::of(store.clone()).await.unwrap();
            weald_board::demo::fill(&boards, &clock).await.unwrap();
        };
        weald::block_on(filled);
        let config = Config {
            storage: Storage::Open(store),
            ..config()
        };
        client::with_config(config, |browser| test(chromium, browser.address));
    });
}
