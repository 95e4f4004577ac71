//! `weald forest` as a process, and what it prints.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test ends at the first thing that goes wrong, and uses what it needs"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

/// Runs the program; returns the exit code, stdout and stderr.
pub(crate) fn weald(directory: &Path, words: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weald"))
        .arg("forest")
        .arg(directory)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that reads nothing may have ended.
    let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// What it prints when all goes well.
pub(crate) fn says(directory: &Path, words: &[&str]) -> String {
    let (code, out, err) = weald(directory, words, "");
    assert_eq!((code, err.as_str()), (0, ""), "{words:?}");
    out
}

/// The lines of JSON that it prints.
pub(crate) fn lines(directory: &Path, words: &[&str]) -> Vec<Json> {
    let mut words = words.to_vec();
    words.push("--json");
    let out = says(directory, &words);
    let lines = out.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// How it fails: the exit code and one sentence.
pub(crate) fn fails(directory: &Path, words: &[&str]) -> (i32, String) {
    let (code, out, err) = weald(directory, words, "");
    assert_eq!(out, "", "{words:?}");
    assert_eq!(err.lines().count(), 1, "{words:?}: {err}");
    assert!(
        err.starts_with("weald: ") && err.trim_end().ends_with('.'),
        "{err}"
    );
    (code, err)
}

/// The files of a directory, in order, with what is in them.
pub(crate) fn state(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}
