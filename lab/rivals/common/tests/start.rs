//! What `rival-start` makes of what a rival prints, and of how it ends. The rivals are scripts of the shell.

use std::process::{Command, Output};

/// Starts a script, which has the workload as `$0`.
fn start(script: &str, call: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rival-start"));
    let output = command.args(["sh", "-c", script]).args(call).output();
    output.expect("cargo has built it")
}

const SPAWN: [&str; 3] = ["spawn", "n=1", "workers=1"];
const FIB: [&str; 4] = ["fib", "n=1", "forking=yes", "workers=1"];

fn assert_fails(script: &str, call: &[&str], code: i32, sentence: &str) {
    let output = start(script, call);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{script}: {errors}");
    assert!(errors.contains(sentence), "{script}: {errors}");
    assert!(!errors.contains("panicked"), "{script}: {errors}");
}

fn metrics(script: &str, call: &[&str]) -> String {
    let output = start(script, call);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    String::from_utf8(output.stdout).expect("metrics are text")
}

#[test]
fn a_rival_that_a_signal_ended_has_a_reason() {
    assert_fails("kill -9 $$", &SPAWN, 1, "signal: 9");
}

#[test]
fn the_code_and_the_sentence_of_a_rival_are_passed_on() {
    assert_fails("echo refused >&2; exit 2", &SPAWN, 2, "refused");
}

#[test]
fn what_is_no_number_ends_the_rival_too() {
    // Had it not ended, the call would last as long: it holds the same stderr.
    let script = "echo late soon; exec sleep 600";
    assert_fails(script, &SPAWN, 1, "`soon`, which is no number");
}

#[test]
fn what_is_no_text_is_told() {
    let script = r"printf 'a 1\n\377\nb 2\n'";
    assert_fails(script, &SPAWN, 1, "cannot be read");
}

#[test]
fn metrics_are_passed_on_and_keys_are_in_the_environment() {
    let text = metrics(r#"echo "$0 $n $workers""#, &SPAWN);
    assert_eq!(text, "spawn 1 1\n");
}

#[test]
fn memory_is_read_when_the_rival_asks_for_it() {
    let script = "for size in 0 1000; do echo at $size; read -r _; done; echo us_per_spawn 1";
    let text = metrics(script, &SPAWN);
    let names: Vec<&str> = text.split_whitespace().step_by(2).collect();
    assert_eq!(names, ["us_per_spawn", "bytes_per_process"], "{text}");
}

#[test]
fn ticks_are_judged() {
    let call = [
        "stall",
        "offender=compute",
        "offenders=0",
        "burst=no",
        "seconds=1",
        "pingers=0",
        "workers=1",
    ];
    let script = "echo tick -5 9000000000; echo tick 0 1000000; echo tick 1000000 3000000";
    let text = metrics(script, &call);
    assert!(text.contains("ticks 2.000\n"), "{text}");
}

#[test]
fn forms_are_asked_for_and_their_ratio_is_told() {
    let script = "echo forks 1; while read -r form repeats; do \
        case $form in serial) echo 100000000;; forking) echo 200000000;; esac; done";
    let text = metrics(script, &FIB);
    assert!(text.contains("ms_serial 100.000\n"), "{text}");
}

#[test]
fn a_rival_that_ends_before_its_figures_are_complete_is_told() {
    assert_fails("echo forks 1", &FIB, 1, "before its figures were complete");
    assert_fails("echo forks 1; kill -9 $$", &FIB, 1, "signal: 9");
    let call = ["fib", "n=1", "forking=maybe", "workers=1"];
    assert_fails("echo forks 1; cat", &call, 2, "takes one of these");
}
