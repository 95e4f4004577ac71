//! The unit for systemd, judged by systemd's own programs; where they are missing, the test says so and does nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How exposed the unit may be, in tenths: systemd calls 2 "OK", and 10 is no protection at all.
const MOST_EXPOSED: &str = "--threshold=20";
/// Where the unit has the program.
const PROGRAM: &str = "/usr/local/bin/weald";

/// Runs `systemd-analyze`; `None` if there is none.
fn analyze(words: &[&str], unit: &Path) -> Option<Output> {
    let output = Command::new("systemd-analyze")
        .args(words)
        .arg(unit)
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: there is no systemd-analyze; install systemd");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The unit with the program of this test, because systemd looks whether there is one.
fn unit(directory: &Path) -> PathBuf {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../board/deploy/weald-board.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    assert!(unit.contains(&format!("ExecStart={PROGRAM} board")));
    let path = directory.join("weald-board.service");
    std::fs::write(&path, unit.replace(PROGRAM, env!("CARGO_BIN_EXE_weald"))).unwrap();
    path
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_little_exposed() {
    let directory = tempfile::tempdir().unwrap();
    let unit = unit(directory.path());
    for words in [
        &["verify", "--man=no"][..],
        &["security", "--offline=true", "--no-pager", MOST_EXPOSED],
    ] {
        let Some(output) = analyze(words, &unit) else {
            return;
        };
        let [out, err] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if err.contains("unrecognized option") || err.contains("Unknown command") {
            println!("skipped: this systemd-analyze is too old: {err}");
            return;
        }
        assert!(output.status.success(), "{words:?}: {out}{err}");
        // A line that it does not understand is a warning only.
        assert!(!err.contains("weald-board.service:"), "{err}");
    }
}
