//! The repository on this machine, and the commands that the routines run in it.
//!
//! - Every command runs in the root of the repository and prints as it goes.
//! - The error of a command is a sentence that names the command.

use std::io::{BufRead, BufReader, Read, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, io};

/// The root of the repository and the folder for build output.
pub struct Checkout {
    root: PathBuf,
    target: PathBuf,
}

impl Checkout {
    /// The repository that cargo runs this program in, or else the one it was built from.
    pub fn here() -> Self {
        let built_in = || env!("CARGO_MANIFEST_DIR").into();
        let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(built_in));
        let root = package
            .parent()
            .expect("xtask is a folder of the repository")
            .to_owned();
        let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        Self {
            target: root.join(target),
            root,
        }
    }

    /// The root of the repository.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for build output.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether rustup has a toolchain whose name starts with `name`.
    pub fn has_toolchain(&self, name: &str) -> bool {
        let list = self.command("rustup toolchain list").output();
        list.is_ok_and(|list| {
            let list = String::from_utf8_lossy(&list.stdout).into_owned();
            names_toolchain(&list, name)
        })
    }

    /// The command `cargo` with `arguments`, split at spaces.
    pub fn cargo(&self, arguments: &str) -> Command {
        self.command(&format!("cargo {arguments}"))
    }

    /// The command in `line`, split at spaces.
    pub fn command(&self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("a command has a name"));
        command.args(words).current_dir(&self.root);
        command
    }

    /// Makes a `cargo` command build with `flags`, separately from the builds without them.
    ///
    /// The flags are added to those of the environment; `name` is a folder of the build output.
    pub fn build_apart(&self, mut command: Command, name: &str, flags: &str) -> Command {
        for variable in ["RUSTFLAGS", "RUSTDOCFLAGS"] {
            let given = env::var(variable).unwrap_or_default();
            command.env(variable, format!("{given} {flags}").trim());
        }
        // Cargo prefers these to the ones above.
        command
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTDOCFLAGS");
        command.env("CARGO_TARGET_DIR", self.target.join(name));
        command
    }
}

/// Runs a command and waits for it.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status();
    judge(command, status)
}

/// Lines of a failed command's output that its error repeats: room for one failed test.
const QUOTED: usize = 80;

/// Runs a command, prints its output as it arrives, and returns the output.
///
/// The error quotes the end of the output: a reader of a long log finds the reason there.
pub fn run_and_keep(command: &mut Command) -> Result<String, String> {
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| not_started(command, &e))?;
    let output = child.stdout.take().expect("the output was asked for");
    let kept = printed(command, output)?;
    judge_and_quote(command, child.wait(), &kept)?;
    Ok(kept)
}

/// Runs a command, prints its output and its errors as they arrive, and quotes their end if it fails.
///
/// They lose their colours.
pub fn run_and_quote(command: &mut Command) -> Result<(), String> {
    let (output, errors) = pipe().map_err(|e| not_started(command, &e))?;
    let also_errors = errors.try_clone().map_err(|e| not_started(command, &e))?;
    let child = command.stdout(errors).stderr(also_errors).spawn();
    // The command holds two ends of the pipe; the output ends when all of them are closed.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child = child.map_err(|e| not_started(command, &e))?;
    let kept = printed(command, output)?;
    judge_and_quote(command, child.wait(), &kept)
}

/// Prints a command's output line by line, and returns it.
fn printed(command: &Command, output: impl Read) -> Result<String, String> {
    let mut kept = String::new();
    for line in BufReader::new(output).split(b'\n') {
        let line =
            line.map_err(|e| format!("The output of {command:?} could not be read: {e}."))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        kept.push_str(&line);
        kept.push('\n');
    }
    Ok(kept)
}

fn judge_and_quote(
    command: &Command,
    status: io::Result<ExitStatus>,
    output: &str,
) -> Result<(), String> {
    judge(command, status).map_err(|sentence| {
        let lines: Vec<_> = output.lines().collect();
        let end = lines.iter().skip(lines.len().saturating_sub(QUOTED));
        let end: String = end.map(|line| format!("\n  {line}")).collect();
        format!("{sentence} The end of its output:{end}")
    })
}

/// Runs a command silently and returns whether it succeeded.
pub fn succeeds(mut command: Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

pub(crate) fn judge(command: &Command, status: io::Result<ExitStatus>) -> Result<(), String> {
    let status = status.map_err(|e| not_started(command, &e))?;
    if status.success() {
        return Ok(());
    }
    Err(format!(
        "The command `{}` failed: {status}.",
        shown(command)
    ))
}

pub(crate) fn not_started(command: &Command, error: &io::Error) -> String {
    format!(
        "The command `{}` could not be started: {error}.",
        shown(command)
    )
}

pub(crate) fn shown(command: &Command) -> String {
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a list of toolchains, with their platforms, has one of this name. `1.88.0` is not `1.88`.
fn names_toolchain(list: &str, name: &str) -> bool {
    let rest = |line: &str| line.strip_prefix(name).map(|rest| rest.starts_with('-'));
    list.lines().any(|line| rest(line) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_found_by_its_whole_name() {
        let list =
            "stable-x86_64-unknown-linux-gnu (active, default)\n1.88.0-x86_64-unknown-linux-gnu\n";
        assert!(names_toolchain(list, "stable"));
        assert!(names_toolchain(list, "1.88.0"));
        assert!(!names_toolchain(list, "1.88"));
        assert!(!names_toolchain(list, "nightly"));
    }

    #[test]
    fn a_command_that_fails_is_a_sentence_that_names_it() {
        let here = Checkout::here();
        let failed = run(&mut here.command("cargo no-such-routine"));
        assert!(failed.is_err_and(|sentence| sentence.contains("`cargo no-such-routine` failed")));
        let absent = run(&mut here.command("no-such-program-anywhere"));
        assert!(absent.is_err_and(|sentence| sentence.contains("could not be started")));
    }

    #[test]
    fn the_end_of_a_failed_commands_output_is_quoted() {
        let shell = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            run_and_quote(&mut shell)
        };
        let failed = shell("seq 1 100; echo why >&2; exit 3").expect_err("the script fails");
        let quoted: Vec<_> = failed.lines().skip(1).collect();
        assert_eq!(quoted.len(), QUOTED);
        assert_eq!(quoted.last(), Some(&"  why"));
        assert!(shell("echo fine").is_ok());
    }

    #[test]
    fn output_is_kept() {
        let kept = run_and_keep(&mut Checkout::here().cargo("--version"));
        assert!(kept.is_ok_and(|output| output.starts_with("cargo ")));
    }

    #[test]
    fn flags_are_added_and_the_build_is_apart() {
        let here = Checkout::here();
        let command = here.build_apart(here.cargo("test"), "loom", "--cfg loom");
        let value = |name: &str| {
            let mut variables = command.get_envs().filter(|(key, _)| *key == name);
            variables
                .next()
                .and_then(|(_, value)| Some(value?.to_string_lossy().into_owned()))
        };
        assert!(value("RUSTFLAGS").is_some_and(|flags| flags.ends_with("--cfg loom")));
        assert!(value("CARGO_TARGET_DIR").is_some_and(|folder| folder.ends_with("loom")));
    }
}
