//! `weald demo`, in a pipe: each scene takes place, and Weald says of each who it was.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use std::process::{Command, Stdio};

/// The scenes, each with the names of its units and what is said of them.
const SCENES: [(&str, &[&str]); 4] = [
    (
        "a unit blocks its thread",
        &["`blocker`", "has blocked or computed for"],
    ),
    (
        "a unit computes without a wait",
        &["`cruncher`", "has blocked or computed for"],
    ),
    ("a unit panics", &["`faulty`", "something went wrong"]),
    (
        "two units wait for each other's lock",
        &["`left`", "`right`", "2 jobs wait for each other"],
    ),
];

#[test]
fn each_scene_takes_place_and_is_named() {
    let words = ["demo", "--plain", "--seconds", "2", "--processes", "500"];
    let mut demo = Command::new(env!("CARGO_BIN_EXE_weald"));
    let output = demo.args(words).stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.starts_with("500 processes tick"), "{shown}");
    assert!(shown.contains("of the ticks kept"), "{shown}");
    for (scene, words) in SCENES {
        let lines = || shown.lines();
        let says = |line: &str| {
            line.contains("Weald says:") && words.iter().all(|word| line.contains(word))
        };
        assert!(lines().any(says), "nothing is said of {scene}: {shown}");
        let is_judged = |line: &str| line.trim_start().starts_with("named") && line.contains(scene);
        assert!(lines().any(is_judged), "{scene} is not named: {shown}");
        assert_eq!(lines().filter(|line| line.contains(scene)).count(), 2);
    }
}
