//! The protocol between the bench and a measured program, driven with programs that obey it and
//! programs that do not: shell scripts in a folder of their own, declared by a manifest.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weald_lab::alternate::{Cell, RowResult, Turn};
use weald_lab::bench::{self, Listener, Options};
use weald_lab::error::Error;
use weald_lab::plan::Level;
use weald_lab::rivals::{Found, Places, assemble};
use weald_lab::{record, table, workload};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weald-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn places(&self) -> Places {
        Places {
            sources: self.0.clone(),
            out: self.0.join("out"),
        }
    }

    /// A script `name.sh` that answers `--version` and otherwise does what `body` says.
    fn script(&self, name: &str, body: &str) {
        let text = format!(
            "workers=$1; shift\n\
             if [ \"$1\" = --version ]; then echo '{name} 1.0'; exit 0; fi\n\
             workload=$1; shift\n{body}\n"
        );
        fs::write(self.0.join(format!("{name}.sh")), text).unwrap();
    }

    fn manifest(&self, tables: &[String]) {
        fs::write(self.0.join("rivals.toml"), tables.join("\n")).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// A table of the manifest for a script.
fn rival(name: &str, workload: &str) -> String {
    format!(
        "[[rival]]\nname = '{name}'\nneeds = ['sh']\nget = 'It is everywhere.'\n\
         build = [['cp', '{name}.sh', '{{out}}/{name}.sh']]\n\
         run = ['sh', '{{out}}/{name}.sh', '{{workers}}']\nworkloads = ['{workload}']\n"
    )
}

/// Records what it is notified of.
#[derive(Default)]
struct Ear {
    planned: usize,
    turns: Vec<String>,
}

impl Listener for Ear {
    fn planned(&mut self, children: usize, _estimate: Duration) -> Result<(), Error> {
        self.planned = children;
        Ok(())
    }

    fn turn(&mut self, turn: Turn<'_>) -> Result<(), Error> {
        self.turns
            .push(format!("{} {}", turn.lane.system.name, turn.round));
        Ok(())
    }

    fn finished(&mut self, _results: &[RowResult], _from: usize) -> Result<(), Error> {
        Ok(())
    }
}

fn options(only: &str, runs: usize, timeout: Duration) -> Options {
    let only = vec![workload::find(only).unwrap()];
    Options {
        level: Level::Quick,
        only,
        workers: Some(2),
        runs: Some(runs),
        timeout,
        within: None,
    }
}

fn all(folder: &Folder) -> Found {
    assemble(&folder.places(), &[], &mut |_| {}).unwrap()
}

fn cell<'a>(result: &'a RowResult, system: &str) -> &'a Cell {
    result
        .cells
        .iter()
        .find(|cell| cell.system == system)
        .unwrap()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn good_programs_are_called_in_turns_and_summed_up() {
    let folder = Folder::new("good");
    // Each run prints one more than the last, so the summary shows that all of them were read.
    let counting = "f=count; n=$(cat $f 2>/dev/null || echo 0); n=$((n+1)); echo $n > $f\n\
                    echo ns_per_round_trip $n\n\
                    test $workload = ping-pong && test \"$*\" = 'rounds=100000 workers=2'";
    folder.script("first", counting);
    folder.script("second", "echo ns_per_round_trip 7.5");
    folder.manifest(&[rival("first", "ping-pong"), rival("second", "ping-pong")]);
    let found = all(&folder);
    assert!(found.missing.is_empty(), "{:?}", found.missing);
    assert_eq!(found.systems[0].version, "first 1.0");

    let mut ear = Ear::default();
    let results = bench::run(&options("ping-pong", 3, LONG), &found.systems, &mut ear).unwrap();
    assert_eq!(ear.planned, 6);
    let turns = [
        "first 1", "second 1", "first 2", "second 2", "first 3", "second 3",
    ];
    assert_eq!(ear.turns, turns);
    let first = cell(&results[0], "first");
    assert_eq!(first.trouble, None);
    let (name, summary) = &first.figures[0];
    assert_eq!(name, "ns_per_round_trip");
    assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.0, 3.0));
    let lines: Vec<String> = record::records(&results[0])
        .map(|record| record.line())
        .collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[1].contains(r#""system":"second","version":"second 1.0""#),
        "{}",
        lines[1]
    );
}

#[test]
fn bad_programs_become_sentences_and_others_go_on() {
    let folder = Folder::new("bad");
    folder.script("good", "echo ns_per_round_trip 5");
    folder.script("failing", "echo 'The ring broke.' >&2; exit 1");
    folder.script("mute", "exit 3");
    folder.script("garbage", "echo hello world");
    folder.script("binary", "head -c 100000 /dev/urandom");
    folder.script(
        "refusing",
        "echo \"There is no workload '$workload'.\" >&2; exit 2",
    );
    folder.script("silent", "exit 0");
    folder.script("flood", "yes 'ns_per_round_trip 1'");
    let names = [
        "good", "failing", "mute", "garbage", "refusing", "binary", "silent", "flood",
    ];
    folder.manifest(&names.map(|name| rival(name, "ping-pong")));
    let found = all(&folder);

    let options = options("ping-pong", 2, LONG);
    let mut ear = Ear::default();
    let results = bench::run(&options, &found.systems, &mut ear).unwrap();
    let tries = |name: &str| {
        ear.turns
            .iter()
            .filter(|turn| turn.starts_with(name))
            .count()
    };
    assert_eq!(
        (tries("failing"), tries("refusing")),
        (2, 1),
        "a rival that refuses is not called again"
    );
    let trouble = |name: &str| cell(&results[0], name).trouble.clone().unwrap_or_default();
    assert_eq!(trouble("good"), "");
    assert_eq!(trouble("failing"), "The ring broke.");
    assert_eq!(
        trouble("mute"),
        "It ended without an error message (exit status: 3)."
    );
    assert!(
        trouble("garbage").contains("'hello world'"),
        "{}",
        trouble("garbage")
    );
    assert_eq!(trouble("refusing"), "There is no workload 'ping-pong'.");
    assert_eq!(trouble("silent"), "It printed no metric.");
    for name in ["binary", "flood"] {
        assert!(!trouble(name).is_empty(), "{name} is refused");
        assert!(
            cell(&results[0], name).figures.is_empty(),
            "{name} has no figures"
        );
    }
    let text = table::row(&results[0]);
    assert!(
        text.contains("good on 2") && text.contains("failing on 2: The ring broke."),
        "{text}"
    );
}

#[test]
fn a_hanging_program_is_stopped_with_its_children_and_not_tried_again() {
    let folder = Folder::new("hanging");
    // The script leaves the pipe to a child of its own, as launchers do.
    folder.script("hanging", "echo $$ > pid; sleep 1000 & wait");
    folder.script("good", "echo ns_per_round_trip 5");
    folder.manifest(&[rival("hanging", "ping-pong"), rival("good", "ping-pong")]);
    let found = all(&folder);

    let begin = Instant::now();
    let mut ear = Ear::default();
    let options = options("ping-pong", 3, Duration::from_millis(300));
    let results = bench::run(&options, &found.systems, &mut ear).unwrap();
    assert!(
        begin.elapsed() < LONG,
        "the end of the sleep is not awaited"
    );
    let turns: Vec<&String> = ear
        .turns
        .iter()
        .filter(|turn| turn.starts_with("hanging"))
        .collect();
    assert_eq!(turns, ["hanging 1"]);
    let trouble = cell(&results[0], "hanging").trouble.clone().unwrap();
    assert_eq!(trouble, "It had not ended after 0.3 s and was stopped.");
    assert_eq!(cell(&results[0], "good").figures[0].1.runs, 3);

    let pid = fs::read_to_string(folder.0.join("out/pid")).unwrap();
    assert!(
        !PathBuf::from(format!("/proc/{}", pid.trim())).exists(),
        "the script is gone"
    );
}

#[test]
fn runs_that_fail_now_and_then_are_counted() {
    let folder = Folder::new("flaky");
    let flaky = "if [ -e tried ]; then echo ns_per_round_trip 5; else\n\
                 touch tried; echo 'Not yet.' >&2; exit 1; fi";
    folder.script("flaky", flaky);
    folder.manifest(&[rival("flaky", "ping-pong")]);
    let found = all(&folder);
    let options = options("ping-pong", 3, LONG);
    let results = bench::run(&options, &found.systems, &mut Ear::default()).unwrap();
    let flaky = cell(&results[0], "flaky");
    assert_eq!(flaky.figures[0].1.runs, 2);
    assert_eq!(
        flaky.trouble.as_deref(),
        Some("1 of 3 runs gave no figures: Not yet.")
    );
}

#[test]
fn ticks_are_a_share_of_the_calm_run() {
    let folder = Folder::new("stall");
    let body = "case \"$*\" in *offender=none*) echo ticks 400;; *computes*) echo ticks 100;;\n\
                *) echo ticks 398;; esac\n\
                echo lateness_p999_ms 1; echo lateness_worst_ms 2; echo ns_per_hop 50";
    folder.script("fake", body);
    folder.manifest(&[rival("fake", "stall")]);
    let found = all(&folder);
    let options = options("stall", 1, LONG);
    let results = bench::run(&options, &found.systems, &mut Ear::default()).unwrap();
    assert_eq!(results.len(), 20);
    for result in &results {
        let figures = &cell(result, "fake").figures;
        let share = figures
            .iter()
            .find(|(name, _)| name == "ticks_percent")
            .map(|(_, s)| s.median);
        let offender = result.row.params.get("offender").unwrap();
        let want = match (offender, result.row.params.get("offenders").unwrap()) {
            ("none", _) | ("file", "0") => None,
            ("computes", _) => Some(25.0),
            // Of the calm run whose ticks read files, too.
            ("file", _) => Some(100.0),
            _ => Some(99.5),
        };
        assert_eq!(share, want, "{}", result.row.params);
    }
}

#[test]
fn more_workers_are_compared_with_one_of_the_same_round() {
    let folder = Folder::new("scaling");
    let body = "case \"$*\" in *workers=1) echo ms 100; echo speedup 1;; *) echo ms 80; echo speedup 1.2;; esac";
    folder.script("fake", body);
    folder.manifest(&[rival("fake", "quicksort")]);
    let found = all(&folder);
    let options = Options {
        workers: None,
        ..options("quicksort", 2, LONG)
    };
    let results = bench::run(&options, &found.systems, &mut Ear::default()).unwrap();
    let forking = |result: &&RowResult| result.row.params.get("forking") == Some("yes");
    let cells = || {
        results
            .iter()
            .filter(forking)
            .flat_map(|result| &result.cells)
    };
    assert!(
        cells().any(|cell| cell.workers == 1),
        "one worker is always measured"
    );
    for cell in cells() {
        let figure = |name: &str| {
            let found = cell.figures.iter().find(|(metric, _)| metric == name);
            found.map(|(_, summary)| (summary.median, summary.runs))
        };
        let share = (1.0 - 0.8) / (1.0 - 1.0 / cell.workers as f64) * 100.0;
        let (workers, percent) = (figure("speedup_workers"), figure("parallel_percent"));
        if cell.workers == 1 {
            assert_eq!((workers, percent), (None, None));
        } else {
            assert_eq!(workers, Some((1.25, 2)));
            assert!((percent.unwrap().0 - share).abs() < 1e-9, "{percent:?}");
        }
    }
}

#[test]
fn unavailable_rivals_are_named_with_advice() {
    let folder = Folder::new("missing");
    folder.script("good", "echo ns_per_round_trip 5");
    let absent = rival("absent", "ping-pong").replace("['sh']", "['no-such-tool']");
    let unbuildable = rival("unbuildable", "ping-pong");
    let without =
        "[[rival]]\nname = 'without'\nget = 'Nowhere.'\nrun = []\nworkloads = []\n".into();
    folder.manifest(&[absent, unbuildable, rival("good", "ping-pong"), without]);
    let found = all(&folder);
    assert_eq!(found.systems.len(), 1);
    let sentences: Vec<&str> = found.missing.iter().map(|m| m.sentence.as_str()).collect();
    assert_eq!(
        sentences[0],
        "Not found on the path: no-such-tool. To get it: It is everywhere."
    );
    assert!(
        sentences[1].contains("failed (exit status: 1)"),
        "{}",
        sentences[1]
    );
    assert_eq!(sentences[2], "There is no program for it. Nowhere.");
    assert!(sentences[1].contains("unbuildable.log"), "{}", sentences[1]);
}

#[test]
fn a_rival_is_not_run_beyond_its_limit() {
    let folder = Folder::new("limit");
    folder.script("small", "echo ns_per_spawn 5; echo bytes_per_process 100");
    let limited = rival("small", "spawn") + "max_n = { spawn = 10000 }\n";
    folder.manifest(&[limited]);
    let found = all(&folder);
    let mut ear = Ear::default();
    let results = bench::run(&options("spawn", 1, LONG), &found.systems, &mut ear).unwrap();
    assert_eq!(ear.turns.len(), 2);
    let troubles: Vec<Option<&str>> = results
        .iter()
        .map(|result| cell(result, "small").trouble.as_deref())
        .collect();
    assert_eq!(
        troubles,
        [None, None, Some("Not run: its limit for spawn is 10000.")]
    );
}

#[test]
fn without_a_manifest_the_sentence_says_what_to_do() {
    let folder = Folder::new("nothing");
    let error = assemble(&folder.places(), &[], &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
    assert!(error.to_string().contains("--rivals-dir"), "{error}");
}
