//! What `cargo xtask install` installs is used as the README says: programs are built against it by `pkg-config` with
//! make and CMake, and run; Python's module loads it. A part of the soak, since it builds the libraries with all
//! optimisation.

use std::path::Path;
use std::process::Command;

use crate::checkout::Checkout;
use crate::install::install;

/// The folders with a `Makefile`, a `CMakeLists.txt`, and one program of the folder's name.
const EXAMPLES: [&str; 2] = ["c/weald/examples/ring", "c/myth/examples/fib"];
/// Each build goes into a copy of the folder, so that none finds what another one made.
const BUILDS: [(&str, &[&str]); 3] = [
    ("make", &["make -s", "./NAME"]),
    ("make, static", &["make -s NAME-static", "./NAME-static"]),
    (
        "CMake",
        &["cmake -S . -B build", "cmake --build build", "build/NAME"],
    ),
];

/// Installs into a folder of the build output, and runs `build` for the build and `command` for each later step.
///
/// # Errors
/// A sentence that names the step that failed.
pub fn installed(
    checkout: &Checkout,
    build: impl FnOnce(&mut Command) -> Result<(), String>,
    mut command: impl FnMut(&mut Command) -> Result<(), String>,
) -> Result<(), String> {
    let place = checkout.target().join("tmp/installed");
    let prefix = place.join("prefix");
    install(checkout, &prefix, build)?;
    for example in EXAMPLES {
        let name = example.rsplit('/').next().unwrap_or(example);
        for (tool, steps) in BUILDS {
            if tool == "CMake" && !is_there("cmake") {
                println!("CMake is not installed, so {example} is not built with it.");
                continue;
            }
            let copy = place.join(format!("{name} by {tool}"));
            command(Command::new("rm").arg("-rf").arg(&copy))?;
            let source = checkout.root().join(example);
            command(Command::new("cp").arg("-r").arg(source).arg(&copy))?;
            for step in steps {
                command(&mut of_line(&step.replace("NAME", name), &copy, &prefix))?;
            }
        }
    }
    let python = checkout.root().join("examples/python");
    let programs = ["python3 first.py", "python3 -m unittest -q test_weald"];
    let mut programs = programs.iter();
    programs.try_for_each(|line| command(&mut of_line(line, &python, &prefix)))
}

/// A command that finds what was installed below `prefix`.
fn of_line(line: &str, folder: &Path, prefix: &Path) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    let lib = prefix.join("lib");
    command
        .args(words)
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
        .env("LD_LIBRARY_PATH", lib);
    command
}

fn is_there(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}
