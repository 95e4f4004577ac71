//! The routine `cargo xtask platforms`: builds and tests for the other platforms that Weald supports.
//!
//! - A step whose target, linker or emulator is missing is skipped with a sentence, unless `--strict` forbids it.
//! - The emulator runs the instructions of aarch64 on this machine's processor, so it does not show what a weaker order
//!   of memory would do; the models do.
//! - The programs in C are compiled by the platform's own compiler and run in the emulator; `settings` names both to
//!   the tests of `c`.

use std::process::{Command, ExitCode};

use crate::checkout::{Checkout, run_and_quote, succeeds};
use crate::steps::{Outcome, Skips, Tally, Verdict};

/// A platform, and what builds and runs its programs here.
struct Platform {
    name: &'static str,
    target: &'static str,
    /// Also its C compiler.
    linker: &'static str,
    /// Its C++ compiler; empty if Debian has none.
    cxx: &'static str,
    /// Runs a program of the platform; empty if this machine does.
    emulator: &'static [&'static str],
    /// The packages of Debian that have the linker and the emulator.
    debian: &'static str,
    /// What is checked and tested: commands of cargo, each with its arguments.
    commands: &'static [(&'static str, &'static str)],
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        name: "x86-64 with musl",
        target: "x86_64-unknown-linux-musl",
        linker: "musl-gcc",
        cxx: "",
        emulator: &[],
        debian: "musl-tools",
        commands: &[(
            "test",
            "--workspace --exclude xtask --lib --bins --tests --no-fail-fast",
        )],
    },
    Platform {
        name: "aarch64, emulated",
        target: "aarch64-unknown-linux-gnu",
        linker: "aarch64-linux-gnu-gcc",
        cxx: "aarch64-linux-gnu-g++",
        emulator: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        debian: "g++-aarch64-linux-gnu qemu-user",
        // Left out is what the emulator cannot do: to run a test as a second program, to filter its own calls of the
        // system, and to tell how the time of a thread was spent.
        commands: &[
            ("check", "--workspace --exclude xtask"),
            (
                "test",
                "-p weald-memory -p weald-tree -p weald-sync --lib --tests",
            ),
            (
                "test",
                "-p weald-kernel --lib -- --skip when_a_sandbox_takes_the_membarrier_away",
            ),
            (
                "test",
                "-p weald-kernel --test allocator --test answers --test blocked_jobs --test blocking --test bursts \
                 --test cancel --test fairness --test foreign_code --test foreign_futures --test fork_bound \
                 --test fork_cancel",
            ),
            ("test", "-p weald-c -p weald-myth --lib --tests"),
        ],
    },
];

/// Builds and tests for each platform, and prints the count.
pub fn platforms(checkout: &Checkout, skips: Skips) -> ExitCode {
    let mut tally = Tally::default();
    for platform in &PLATFORMS {
        tally.step(platform.name, || skips.judge(platform.test(checkout)));
    }
    tally.finish()
}

impl Platform {
    fn test(&self, checkout: &Checkout) -> Outcome {
        let installed = checkout.command("rustup target list --installed").output();
        let installed =
            installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        if let Some(sentence) = self.missing(&installed.unwrap_or_default(), is_program) {
            return Ok(Verdict::Skipped(sentence));
        }
        for (command, arguments) in self.commands {
            let line = format!("{command} --target {} {arguments}", self.target);
            run_and_quote(checkout.cargo(&line).envs(self.settings()))?;
        }
        Ok(Verdict::Passed)
    }

    /// What to install before the platform can be tested here.
    fn missing(&self, installed: &str, is_program: fn(&str) -> bool) -> Option<String> {
        if !installed.lines().any(|target| target == self.target) {
            return Some(format!("It needs `rustup target add {}`.", self.target));
        }
        let mut programs = [self.linker, self.cxx]
            .into_iter()
            .chain(self.emulator.first().copied())
            .filter(|program| !program.is_empty());
        let missing = programs.find(|program| !is_program(program))?;
        Some(format!(
            "It needs {missing}: `apt-get install {}`.",
            self.debian
        ))
    }

    /// The environment in which cargo links and runs programs of the platform, and C code is compiled for it: that of
    /// dependencies, and the programs that test our C libraries.
    fn settings(&self) -> Vec<(String, String)> {
        let named = self.target.replace('-', "_");
        let cargo = |what: &str| format!("CARGO_TARGET_{}_{what}", named.to_uppercase());
        let mut settings = vec![
            (format!("CC_{named}"), self.linker.to_owned()),
            ("WEALD_CC".to_owned(), self.linker.to_owned()),
        ];
        if !self.cxx.is_empty() {
            settings.push(("WEALD_CXX".to_owned(), self.cxx.to_owned()));
        }
        if !self.emulator.is_empty() {
            let emulator = self.emulator.join(" ");
            settings.push((cargo("LINKER"), self.linker.to_owned()));
            settings.push((cargo("RUNNER"), emulator.clone()));
            settings.push(("WEALD_C_EMULATOR".to_owned(), emulator));
        }
        settings
    }
}

fn is_program(name: &str) -> bool {
    let mut command = Command::new(name);
    command.arg("--version");
    succeeds(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_sentence_that_says_what_to_install() {
        let [_, emulated] = PLATFORMS;
        let installed = "x86_64-unknown-linux-gnu\naarch64-unknown-linux-gnu\n";
        let missing =
            |installed, is_program| emulated.missing(installed, is_program).unwrap_or_default();
        let sentence = missing("aarch64-unknown-linux-gnu-more\n", |_| true);
        assert_eq!(
            sentence,
            "It needs `rustup target add aarch64-unknown-linux-gnu`."
        );
        let packages = "`apt-get install g++-aarch64-linux-gnu qemu-user`.";
        let sentence = missing(installed, |name| name.starts_with("qemu"));
        assert_eq!(
            sentence,
            format!("It needs aarch64-linux-gnu-gcc: {packages}")
        );
        let sentence = missing(installed, |name| !name.starts_with("qemu"));
        assert_eq!(sentence, format!("It needs qemu-aarch64: {packages}"));
        assert_eq!(missing(installed, |_| true), "");
    }
}
