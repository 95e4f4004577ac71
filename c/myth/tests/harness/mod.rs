//! What the tests of both C libraries share: programs are compiled with the header, linked with either library, and
//! run.
//!
//! `cargo xtask platforms` names the compilers of another platform and its emulator, in `WEALD_CC`, `WEALD_CXX` and
//! `WEALD_C_EMULATOR`. The tests of `c/weald` have a link to this folder.

#![allow(
    clippy::mod_module_files,
    reason = "a file beside the tests would be a test of its own"
)]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// One of the libraries.
pub(crate) struct Library {
    /// As programs name it: `-lNAME`. Its functions begin with `NAME_`.
    pub(crate) name: &'static str,
    /// As cargo names its file.
    pub(crate) built: &'static str,
    /// Its header, below `include`. Others in the same folder belong to it.
    pub(crate) header: &'static str,
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Linked {
    Static,
    Shared,
}

/// Whether there is no shared library, as with musl, where Rust links everything statically.
const IS_STATIC: bool = cfg!(target_feature = "crt-static");

impl Linked {
    /// The ways that there are on this platform.
    pub(crate) const WAYS: &[Self] = match IS_STATIC {
        true => &[Self::Static],
        false => &[Self::Static, Self::Shared],
    };
}

/// What a static library needs besides itself.
const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// The same where everything is linked statically. The unwinder is Rust's own, because that of a compiler for glibc
/// calls functions that musl has not.
fn system_of_static() -> Vec<String> {
    let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", &target]);
    let printed = rustc.output().unwrap().stdout;
    let libraries = String::from_utf8(printed).unwrap();
    let folder = format!("-L{}/self-contained", libraries.trim_end());
    // The table by which that unwinder finds the frames. GCC leaves it out of a static program.
    let table = "-Wl,--eh-frame-hdr".to_owned();
    vec![folder, "-lunwind".to_owned(), "-static".to_owned(), table]
}

/// What emulates the platform of this test, in words. Empty: nothing.
fn emulator() -> Vec<String> {
    let line = env::var("WEALD_C_EMULATOR").unwrap_or_default();
    line.split_whitespace().map(str::to_owned).collect()
}

/// Whether an emulator runs the programs, and this test: what runs on this machine itself cannot use the library.
pub(crate) fn is_emulated() -> bool {
    !emulator().is_empty()
}

/// The compiler of a source. None: this platform has none for its language.
fn compiler_of(source: &Path) -> Option<String> {
    let named = |variable, usual: &str| env::var(variable).unwrap_or(usual.to_owned());
    let compiler = match source.extension().and_then(OsStr::to_str) {
        // Where glibc is the system's library, musl's compiler has this name.
        Some("c") if IS_STATIC && has("musl-gcc") => named("WEALD_CC", "musl-gcc"),
        Some("c") => named("WEALD_CC", "cc"),
        // The exceptions of C++ would need the unwinder of its compiler.
        _ if IS_STATIC => return None,
        _ => named("WEALD_CXX", "c++"),
    };
    has(&compiler).then_some(compiler)
}

/// The tool that watches the programs, if any.
pub(crate) fn is_watched_by(tool: &str) -> bool {
    env::var("WEALD_C_CHECK").is_ok_and(|watched_by| watched_by == tool)
}

/// Whether a tool watches the programs.
pub(crate) fn is_watched() -> bool {
    env::var_os("WEALD_C_CHECK").is_some()
}

/// Whether a program is there.
pub(crate) fn has(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|version| version.status.success())
}

/// The command that runs a program.
pub(crate) fn start(program: &Path) -> Command {
    if is_watched_by("valgrind") {
        let mut command = Command::new("valgrind");
        // Else one thread of the system could keep the others from running.
        let options = ["-q", "--error-exitcode=9", "--fair-sched=yes"];
        command.args(options).arg(program);
        return command;
    }
    if let [emulator, options @ ..] = emulator().as_slice() {
        let mut command = Command::new(emulator);
        command.args(options).arg(program);
        return command;
    }
    let mut command = Command::new(program);
    if is_watched_by("address-sanitizer") {
        // A runtime that runs at the end is not freed, and `myth_fini` loses threads on purpose. Frames stay on the
        // real stacks.
        let options = "detect_leaks=0:detect_stack_use_after_return=0";
        command.env("ASAN_OPTIONS", options);
    }
    command
}

/// Whether gdb may run programs here: a container may forbid it.
fn gdb_runs() -> bool {
    let mut gdb = Command::new("gdb");
    gdb.env("LC_ALL", "C");
    gdb.args(["-q", "-nx", "-batch", "-ex", "run", "--args", "true"]);
    let output = gdb.output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("exited normally")
}

/// Runs a program in gdb until the function `stop` is called for the first time, and returns the names of the frames,
/// the innermost first. Without a gdb that works it returns none, and says so.
pub(crate) fn frames_at(stop: &str, command: &Command) -> Option<Vec<String>> {
    if is_emulated() || !has("gdb") {
        eprintln!("left out: there is no gdb for these programs.");
        return None;
    }
    let break_at = format!("break {stop}");
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch"]);
    let steps = ["set debuginfod enabled off", &break_at, "run", "bt"];
    for step in steps {
        gdb.args(["-ex", step]);
    }
    for (name, value) in command.get_envs() {
        gdb.env(name, value.unwrap_or_default());
    }
    gdb.arg("--args").arg(command.get_program());
    let output = gdb.args(command.get_args()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let frames: Vec<String> = text.lines().filter_map(name_of_frame).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    if frames.is_empty() && !gdb_runs() {
        eprintln!("left out: gdb may trace no program here.");
        return None;
    }
    // So it says if it cannot follow them to the end.
    let is_cut = text.contains("Backtrace stopped") || errors.contains("Backtrace stopped");
    assert!(!frames.is_empty() && !is_cut, "{text}\n{errors}");
    Some(frames)
}

/// The function in a line such as `#1  0x0000555555a0d977 in f (a=1) at f.c:4`.
fn name_of_frame(line: &str) -> Option<String> {
    let (_number, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let rest = rest.trim_start();
    let rest = match rest.starts_with("0x") {
        true => rest.split_once(" in ")?.1,
        false => rest,
    };
    Some(rest.split(" (").next()?.to_owned())
}

impl Library {
    /// Where cargo has put both libraries: beside this test. (Those in the folder above may be older.)
    pub(crate) fn folder(&self) -> PathBuf {
        let test = env::current_exe().unwrap();
        let folder = test.parent().unwrap();
        let archive = format!("lib{}.a", self.built);
        assert!(folder.join(archive).exists(), "cargo builds them first");
        folder.to_path_buf()
    }

    /// Compiles a program of `tests/programs`. None: there is no compiler for its language, which is said.
    pub(crate) fn build(&self, source: &str, linked: Linked) -> Option<PathBuf> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = package.join("tests/programs").join(source);
        let Some(compiler) = compiler_of(&source) else {
            eprintln!("{} is left out: there is no compiler.", source.display());
            return None;
        };
        let program = source.file_stem().and_then(OsStr::to_str).unwrap();
        // Other tests run at the same time.
        let folder = format!("{}-{program}-{linked:?}", self.name);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join(program);
        let mut command = Command::new(compiler);
        command
            .args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(package.join("include"))
            .args([&source, Path::new("-o"), &program]);
        if is_watched_by("address-sanitizer") {
            command.arg("-fsanitize=address");
        }
        let built = |ending: &str| self.folder().join(format!("lib{}.{ending}", self.built));
        match linked {
            Linked::Static if IS_STATIC => {
                command.arg(built("a")).args(system_of_static());
            }
            Linked::Static => {
                command.arg(built("a")).args(SYSTEM);
            }
            Linked::Shared => {
                // By the name that is in it, as it is installed.
                let shared = folder.join(format!("lib{}.so.0", self.name));
                fs::copy(built("so"), &shared).unwrap();
                command
                    .arg(&shared)
                    .arg(format!("-Wl,-rpath,{}", folder.display()))
                    .arg("-lpthread");
            }
        }
        let built = command.output().unwrap();
        let errors = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{command:?}\n{errors}");
        Some(program)
    }

    /// Each function of the shared library has the library's name as its version.
    pub(crate) fn check_versions(&self) {
        let library = self.folder().join(format!("lib{}.so", self.built));
        let Ok(table) = Command::new("objdump").arg("-T").arg(library).output() else {
            eprintln!("left out: there is no objdump.");
            return;
        };
        let table = String::from_utf8_lossy(&table.stdout);
        let prefix = format!(" {}_", self.name);
        let functions: Vec<&str> = table
            .lines()
            .filter(|line| line.contains(&prefix))
            .collect();
        assert!(functions.len() > 50, "{table}");
        let version = format!("lib{}.so.0", self.name);
        for function in functions {
            assert!(function.contains(&version), "{function}");
        }
    }

    /// The header declares what the library has, and the programs call all of it.
    pub(crate) fn check_header(&self) {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let header = package.join("include").join(self.header);
        let header = read_all(header.parent().unwrap());
        // Without comments, in which functions are named, too.
        let declared: String = header
            .split("/*")
            .map(|part| part.split_once("*/").map_or(part, |(_, code)| code))
            .collect();
        let declared = self.functions(&declared);
        let code = read_all(&package.join("src/face"));
        let mut defined: Vec<&str> = code
            .split("#[unsafe(no_mangle)]")
            .skip(1)
            .filter_map(|part| part.split_once("fn ")?.1.split('(').next())
            .collect();
        defined.sort_unstable();
        assert_eq!(declared, defined, "the header and the library differ");
        let called = self.functions(&read_all(&package.join("tests/programs")));
        let missing: Vec<_> = declared
            .iter()
            .filter(|name| !called.contains(name))
            .collect();
        assert!(missing.is_empty(), "no program calls {missing:?}");
    }

    /// The names of its functions in a text, which stand before a parenthesis.
    fn functions(&self, text: &str) -> Vec<String> {
        let prefix = format!("{}_", self.name);
        let mut found: Vec<String> = text
            .match_indices(&prefix)
            .filter(|&(at, _)| !text[..at].ends_with(is_in_name))
            .map(|(at, _)| {
                let rest = &text[at..];
                let end = rest.find(|c| !is_in_name(c));
                rest.split_at(end.unwrap_or(rest.len()))
            })
            .filter(|(_, rest)| rest.starts_with('('))
            .map(|(name, _)| name.to_owned())
            .collect();
        found.sort();
        found.dedup();
        found
    }
}

fn is_in_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

fn read_all(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap();
    let files = files
        .map(|file| file.unwrap().path())
        .filter(|file| file.is_file());
    files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}
