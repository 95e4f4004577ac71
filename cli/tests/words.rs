//! What the program says and how it ends: exit codes, stdout for results, quiet pipes.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

fn weald(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
    command.args(words).stdin(Stdio::null());
    command
}

fn end(words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = weald(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn the_version_goes_to_stdout() {
    let (code, out, err) = end(&["--version"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("weald "), "{out}");
}

#[test]
fn usage_errors_end_with_two_and_a_suggestion() {
    for words in [
        &["bench", "--only", "sprawn"][..],
        &["bench", "--runs", "0"],
        &["bench", "--quick", "--full"],
        &["bench", "--rivals", "--rivals-dir", "/nowhere"],
        &["bench-one", "spwan", "n=1", "workers=1"],
        &["bench-one", "spawn", "n=1"],
        &["bnech"],
        &[],
    ] {
        let (code, out, err) = end(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(!err.is_empty());
    }
    let (_, _, err) = end(&["bench", "--only", "ring,sprawn"]);
    assert!(
        err.contains("Did you mean 'spawn'?") && err.contains("fan-in"),
        "{err}"
    );
}

#[test]
fn a_measured_program_prints_metrics_and_nothing_else() {
    let (code, out, err) = end(&["bench-one", "ping-pong", "rounds=100", "workers=1"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(words[0], "ns_per_round_trip");
    assert!(
        words[1].parse::<f64>().unwrap() > 0.0 && words.len() == 2,
        "{out}"
    );
}

#[test]
fn records_are_alone_on_stdout() {
    let words = [
        "bench",
        "--quick",
        "--only",
        "ping-pong,fan-in",
        "--runs",
        "1",
        "--json",
    ];
    let (code, out, err) = end(&words);
    assert_eq!((code, err.as_str()), (0, ""), "a pipe is quiet");
    assert!(out.lines().count() >= 2);
    for line in out.lines() {
        assert!(
            line.starts_with(r#"{"workload":""#) && line.ends_with('}'),
            "{line}"
        );
    }
}

#[test]
fn the_limit_program_runs_beside_weald() {
    let words = ["bench", "--quick", "--only", "mailbox", "--runs", "1"];
    let (code, out, err) = end(&[&words[..], &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let of_limit = out
        .lines()
        .filter(|line| line.contains(r#""system":"limit""#));
    // Four rows with three metrics, on one thread whatever the number of workers.
    assert_eq!(of_limit.count(), 12, "{out}");
    let page = std::env::temp_dir().join(format!("weald-limit-{}.html", std::process::id()));
    let path = page.to_str().unwrap();
    let (code, out, err) = end(&[&words[..], &["--report", path]].concat());
    let html = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains(" x limit") && out.contains("limit on 1"),
        "{out}"
    );
    assert!(out.contains("(a chain)"), "{out}");
    assert!(html.contains("× limit</th>") && html.contains(" x limit</td>"));
}

#[test]
fn a_page_is_written_and_holds_the_row() {
    let page = std::env::temp_dir().join(format!("weald-page-{}.html", std::process::id()));
    let path = page.to_str().unwrap();
    let words = [
        "bench", "--quick", "--only", "fan-in", "--runs", "1", "--report", path,
    ];
    let (code, out, err) = end(&words);
    let html = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("Processor") && out.contains("ns_per_message"),
        "{out}"
    );
    assert!(
        html.contains("fan-in senders=100 messages=1000"),
        "the row's table is there"
    );
    assert!(html.trim_end().ends_with("</html>"));
    assert!(!html.contains("<script") && !html.contains("http-equiv"));
}

#[test]
fn a_page_that_cannot_be_written_is_reported_before_anything_is_measured() {
    let (code, out, err) = end(&["bench", "--report", "/nowhere/page.html"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("/nowhere/page.html"), "{err}");
}

#[test]
fn the_demo_names_every_unit_that_went_wrong() {
    let words = ["demo", "--plain", "--seconds", "2", "--processes", "200"];
    let (code, out, err) = end(&words);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for name in ["`blocker`", "`cruncher`", "`faulty`", "`left`", "`right`"] {
        let told = |line: &&str| line.contains("Weald says:") && line.contains(name);
        assert!(out.lines().any(|line| told(&line)), "{name}: {out}");
    }
    assert!(out.contains("% of the ticks, the latest"), "{out}");
    assert!(out.contains("% of the ticks kept"), "{out}");
    let named = out.lines().filter(|line| line.starts_with("  named "));
    assert_eq!(named.count(), 4, "{out}");
    assert!(!out.contains('\u{1b}'), "a pipe gets no control codes");
}

#[test]
fn an_interrupted_demo_still_says_what_it_has_seen() {
    let mut child = weald(&["demo", "--seconds", "600", "--processes", "10"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    out.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
    assert!(line.contains("% of the ticks kept"), "{line}");
}

/// A folder of rivals that is removed at the end.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a process with this pid still runs.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

#[test]
fn an_interrupt_stops_what_is_running_and_says_so() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let name = format!("weald-interrupt-{signal}-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&folder.0).unwrap();
        // The script ignores the signal and leaves the work to a child of its own, as launchers do.
        let script = "if [ \"$2\" = --version ]; then echo 1.0; exit 0; fi\n\
                      trap '' INT TERM\nsleep 1000 &\necho $$ $! > pids.part\nmv pids.part pids\nwait\n";
        std::fs::write(folder.0.join("slow.sh"), script).unwrap();
        let manifest = "[[rival]]\nname = 'slow'\nneeds = ['sh']\nget = ''\n\
                        build = [['cp', 'slow.sh', '{out}/slow.sh']]\n\
                        run = ['sh', '{out}/slow.sh', '{workers}']\nworkloads = ['ping-pong']\n";
        std::fs::write(folder.0.join("rivals.toml"), manifest).unwrap();
        let out = folder.0.join("out");
        let child = weald(&["bench", "--quick", "--only", "ping-pong", "--rivals=slow"])
            .args(["--rivals-dir", folder.0.to_str().unwrap()])
            .args(["--rivals-out", out.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pids = loop {
            match std::fs::read_to_string(out.join("pids")) {
                Ok(pids) => break pids,
                Err(_) => std::thread::yield_now(),
            }
        };
        // Only to the bench; a terminal would send the signal to its children too.
        let killed = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.starts_with("weald: Interrupted."), "{err}");
        for pid in pids.split_whitespace() {
            while runs(pid) {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = weald(&["bench", "--quick", "--only", "ping-pong", "--runs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    // One line is read, then the pipe is dropped while rows are still to come.
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    assert!(!line.is_empty());
}
