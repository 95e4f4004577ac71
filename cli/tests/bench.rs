//! `weald bench` as its user meets it: a table in a minute, a time that is kept, a page that is complete at any moment.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A folder of its own that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("weald-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// A rival that answers in all these workloads, but never ends in `ping-pong`.
    fn endless_rival(&self, workloads: &str) {
        let script = "if [ \"$2\" = --version ]; then echo 1.0; exit 0; fi\n\
                      if [ \"$2\" = ping-pong ]; then exec sleep 1000; fi\n\
                      echo ns_per_message 7\n";
        std::fs::write(self.0.join("endless.sh"), script).unwrap();
        let manifest = format!(
            "[[rival]]\nname = 'endless'\nneeds = ['sh']\nget = ''\n\
             build = [['cp', 'endless.sh', '{{out}}/endless.sh']]\n\
             run = ['sh', '{{out}}/endless.sh', '{{workers}}']\nworkloads = {workloads}\n"
        );
        std::fs::write(self.0.join("rivals.toml"), manifest).unwrap();
    }

    fn bench(&self, words: &[&str]) -> Command {
        let mut command = weald(words);
        command
            .arg("--rivals=endless")
            .args(["--rivals-dir", self.0.to_str().unwrap()])
            .args(["--rivals-out", self.0.join("out").to_str().unwrap()]);
        command
    }

    fn page(&self) -> PathBuf {
        self.0.join("page.html")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn weald(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
    command
        .arg("bench")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn without_options_it_is_a_table_of_a_dozen_figures_that_explains_itself() {
    let ended = weald(&["--runs", "1", "--within", "20"]).output().unwrap();
    let (out, err) = (
        String::from_utf8(ended.stdout).unwrap(),
        String::from_utf8(ended.stderr).unwrap(),
    );
    assert_eq!((ended.status.code(), err.as_str()), (Some(0), ""), "{out}");
    let (_, table) = out.split_once("elsewhere").unwrap();
    for what in [
        "a process, spawned",
        "a fork",
        "a lock that",
        "a million HTTP",
    ] {
        let lines = table.lines().filter(|line| line.starts_with(what));
        assert_eq!(lines.count(), 1, "{what}: {out}");
    }
    for explained in ["Processor", "Elsewhere: ", "x limit: ", "--full"] {
        assert!(out.contains(explained), "{explained}: {out}");
    }
}

#[test]
fn a_bench_that_has_no_more_time_names_the_rows_that_it_left_out() {
    let folder = Folder::new("within");
    folder.endless_rival("['fan-in', 'ping-pong']");
    let words = ["--quick", "--only", "fan-in,ping-pong", "--within", "1.5"];
    // Without the bound the rival would be stopped after 120 s, with another sentence.
    let ended = folder.bench(&words).output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{out}");
    assert!(
        out.contains("Not run: the time of the bench was over."),
        "{out}"
    );
    assert!(out.contains("The time was over before all rows"), "{out}");
}

#[test]
fn the_rows_say_what_their_words_mean_and_how_long_they_will_take() {
    let words = ["--quick", "--only", "fan-in", "--runs", "1"];
    let ended = weald(&words).output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    let row = out.find("fan-in senders=").unwrap();
    for explained in [
        "It will take about",
        "\"x limit\" is the multiple",
        "ns_per_message       time per message",
    ] {
        assert!(out[..row].contains(explained), "{explained}: {out}");
    }
}

#[test]
fn an_interrupted_bench_leaves_a_page_with_the_rows_that_were_finished() {
    let folder = Folder::new("interrupt");
    folder.endless_rival("['fan-in', 'ping-pong']");
    let words = ["--quick", "--only", "fan-in,ping-pong", "--runs", "1"];
    let mut child = folder
        .bench(&words)
        .args(["--report", folder.page().to_str().unwrap()])
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    // The page is written before the row is printed.
    let mut line = String::new();
    while !line.starts_with("fan-in senders=") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0);
        let read = std::fs::read_to_string(folder.page()).unwrap();
        assert!(
            read.trim_end().ends_with("</html>"),
            "complete all the time"
        );
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    out.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let page = std::fs::read_to_string(folder.page()).unwrap();
    assert!(page.trim_end().ends_with("</html>"));
    assert!(page.contains("fan-in senders=100 messages=1000"));
    assert!(page.contains("The bench had not ended"));
    assert!(!folder.0.join("page.html.part").exists());
}

#[test]
fn a_page_without_rivals_has_a_summary_and_no_columns_for_them() {
    let folder = Folder::new("alone");
    let page = folder.page();
    let words = ["--quick", "--only", "mailbox", "--runs", "1", "--report"];
    let ended = weald(&words).arg(&page).output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let page = std::fs::read_to_string(page).unwrap();
    let summary = page.find("id=\"summary\"").unwrap();
    assert!(summary < page.find("id=\"machine\"").unwrap());
    assert!(page.contains("× limit</th>"));
    assert!(!page.contains("Best rival</th>") && !page.contains("Remarks</th>"));
    assert!(!page.contains("The bench had not ended"));
}

#[test]
fn an_older_page_stays_until_something_was_measured() {
    let folder = Folder::new("older");
    std::fs::write(folder.page(), "hours of work").unwrap();
    let words = ["--quick", "--rivals=no-such-one", "--report"];
    let refused = weald(&words).arg(folder.page()).output().unwrap();
    assert_ne!(refused.status.code(), Some(0));
    let page = std::fs::read_to_string(folder.page()).unwrap();
    assert_eq!(page, "hours of work");
}
