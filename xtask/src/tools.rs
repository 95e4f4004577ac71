//! Programs that check the repository and are not part of the toolchain, each at one version.
//!
//! They are installed into `target/tools`, so that nothing outside the repository changes. They are built without
//! optimisation: they read some hundred small files each.

use std::path::Path;
use std::process::Command;

use crate::checkout::{Checkout, run};

/// One program on crates.io.
pub struct Tool {
    package: &'static str,
    program: &'static str,
    version: &'static str,
    /// Further arguments of `cargo install`.
    arguments: &'static [&'static str],
}

/// Builds quickly; what is built may be slow.
const QUICK_BUILD: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
];

/// Finds misspelled words.
pub const TYPOS: Tool = Tool {
    package: "typos-cli",
    program: "typos",
    version: "1.52.0",
    arguments: &[],
};
/// Checks licences, sources, duplicates and known weaknesses of the dependencies.
pub const DENY: Tool = Tool {
    package: "cargo-deny",
    program: "cargo-deny",
    version: "0.20.2",
    arguments: &[],
};
/// Finds changes of public interfaces that break what depends on them.
pub const SEMVER_CHECKS: Tool = Tool {
    package: "cargo-semver-checks",
    program: "cargo-semver-checks",
    version: "0.51.0",
    arguments: &[],
};
/// Makes the pages of the book.
pub const MDBOOK: Tool = Tool {
    package: "mdbook",
    program: "mdbook",
    version: "0.5.4",
    arguments: &["--no-default-features"],
};
/// Makes headers for C.
pub const CBINDGEN: Tool = Tool {
    package: "cbindgen",
    program: "cbindgen",
    version: "0.29.4",
    arguments: &[],
};
/// Runs fuzz targets.
pub const FUZZ: Tool = Tool {
    package: "cargo-fuzz",
    program: "cargo-fuzz",
    version: "0.13.2",
    arguments: &[],
};

impl Tool {
    /// A command that runs this program, which is installed first if it is not there at its version.
    ///
    /// An error is a sentence that says why the program cannot be installed.
    pub fn command(&self, checkout: &Checkout) -> Result<Command, String> {
        let place = checkout.target().join("tools");
        let program = place.join("bin").join(self.program);
        if !self.is_installed(&program) {
            self.install(checkout, &place)?;
        }
        let mut command = Command::new(program);
        command.current_dir(checkout.root());
        Ok(command)
    }

    fn is_installed(&self, program: &Path) -> bool {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| self.names_version(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Whether the answer to `--version` is this version.
    fn names_version(&self, answer: &str) -> bool {
        answer.split_whitespace().any(|word| word == self.version)
    }

    fn install(&self, checkout: &Checkout, place: &Path) -> Result<(), String> {
        let Self {
            package,
            version,
            arguments,
            ..
        } = self;
        println!(
            "{package} {version} is not there yet and is built into target/tools, once; this takes minutes."
        );
        let mut install = checkout.cargo(&format!(
            "install --quiet --locked --version {version} {package} --root"
        ));
        install.arg(place).args(*arguments).envs(QUICK_BUILD);
        run(&mut install)
            .map_err(|why| format!("{package} {version} could not be installed. {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_not_taken_for_the_pinned_one() {
        for (answer, expected) in [
            ("typos-cli 1.52.0\n", true),
            ("typos-cli 1.52.00\n", false),
            ("typos-cli 1.51.0\n", false),
            ("", false),
        ] {
            assert_eq!(TYPOS.names_version(answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_package_that_does_not_exist_is_a_sentence() {
        let none = Tool {
            package: "no/package",
            program: "no-program",
            version: "0.0.0",
            arguments: &[],
        };
        let command = none.command(&Checkout::here());
        assert!(
            command.is_err_and(|why| why.starts_with("no/package 0.0.0 could not be installed."))
        );
    }
}
