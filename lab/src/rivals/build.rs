//! Builds one rival: checks that its tools are there, and runs its build commands.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::manifest::Rival;
use super::places::Places;
use crate::descendants;

/// Fails with a sentence that says what is missing and how to get it.
pub(super) fn require(rival: &Rival) -> Result<(), String> {
    let missing: Vec<&str> = rival
        .needs
        .iter()
        .map(String::as_str)
        .filter(|tool| !on_path(tool))
        .collect();
    let absent: Vec<&str> = match missing.is_empty() {
        true => rival.headers.iter().map(String::as_str).collect(),
        false => Vec::new(),
    };
    let absent: Vec<&str> = absent
        .into_iter()
        .filter(|header| !compiler_finds(header))
        .collect();
    let reason = match (missing.as_slice(), absent.as_slice()) {
        ([], []) => return Ok(()),
        ([], headers) => format!("The compiler g++ does not find {}.", headers.join(", ")),
        (tools, _) => format!("Not found on the path: {}.", tools.join(", ")),
    };
    Err(reason + &advice(rival))
}

/// How to get what a rival needs.
fn advice(rival: &Rival) -> String {
    match rival.get.trim() {
        "" => String::new(),
        get => format!(" To get it: {get}"),
    }
}

/// Whether a program in C++ can include this header.
fn compiler_finds(header: &str) -> bool {
    let mut command = Command::new("g++");
    command
        .args([
            "-std=c++20",
            "-fsyntax-only",
            "-include",
            header,
            "-x",
            "c++",
            "/dev/null",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = descendants::start(&mut command).and_then(|mut child| child.wait());
    status.is_ok_and(|status| {
        descendants::ended(status);
        status.success()
    })
}

/// Whether the shell would find this program.
fn on_path(tool: &str) -> bool {
    let runnable = |path: &Path| {
        path.metadata()
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if tool.contains('/') {
        return runnable(Path::new(tool));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| runnable(&folder.join(tool)))
}

/// A word of a command with the output folder filled in.
pub(super) fn fill(word: &str, places: &Places) -> String {
    word.replace("{out}", &places.out.to_string_lossy())
}

/// Runs the build commands. What they print goes to a log beside what they build.
pub(super) fn build(rival: &Rival, places: &Places) -> Result<(), String> {
    let log = places.out.join(format!("{}.log", rival.name));
    for words in &rival.build {
        let argv: Vec<String> = words.iter().map(|word| fill(word, places)).collect();
        run(&argv, places, &log).map_err(|reason| {
            let (command, log) = (argv.join(" "), log.display());
            // A tool that is there may be too old, or miss one of its libraries.
            format!("'{command}' {reason}; see {log}.{}", advice(rival))
        })?;
    }
    Ok(())
}

fn run(argv: &[String], places: &Places, log: &Path) -> Result<(), String> {
    let cannot_log = |error: std::io::Error| format!("cannot write its log: {error}");
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .map_err(cannot_log)?;
    writeln!(file, "$ {}", argv.join(" ")).map_err(cannot_log)?;
    let errors = file.try_clone().map_err(cannot_log)?;
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .current_dir(&places.sources)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors);
    let status = descendants::start(&mut command)
        .and_then(|mut child| child.wait())
        .map_err(|error| format!("cannot be started: {error}"))?;
    descendants::ended(status);
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Manifest;
    use super::*;

    #[test]
    fn finds_the_shell_and_nothing_that_is_not_there() {
        assert!(on_path("sh"));
        assert!(on_path("/bin/sh"));
        assert!(!on_path("no-such-tool-anywhere"));
        assert!(!on_path("/etc/passwd"), "a file that cannot be run");
    }

    fn with_headers(headers: &[&str]) -> Rival {
        let list = format!("{headers:?}");
        let text = format!(
            "[[rival]]\nname = 'r'\nget = 'Ask.'\nheaders = {list}\nrun = ['x']\nworkloads = []"
        );
        Manifest::parse(&text).unwrap().rivals.remove(0)
    }

    #[test]
    fn a_header_that_is_absent_is_named_with_advice() {
        let sentence = require(&with_headers(&["no/such/header.hpp"])).unwrap_err();
        let want = "The compiler g++ does not find no/such/header.hpp. To get it: Ask.";
        assert_eq!(sentence, want);
    }

    #[test]
    fn a_header_that_is_there_is_found() {
        // Without a compiler nothing can be found, but then no rival needs a header.
        if on_path("g++") {
            assert_eq!(require(&with_headers(&["vector", "sched.h"])), Ok(()));
        }
    }
}
