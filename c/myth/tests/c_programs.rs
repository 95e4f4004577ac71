//! Programs in C and C++, compiled with our header and linked with both libraries, do what the header says.
//!
//! Every function of the header occurs in one of them. The programs check themselves: they end with a sentence and a
//! signal if something is not as it should be. Without a C++ compiler the programs in C++ are left out.
//!
//! `cargo xtask soak --only c` runs them with `WEALD_C_CHECK=valgrind` and with `WEALD_C_CHECK=address-sanitizer`.

// With musl there is no shared library, and the system's compiler would link the static one with glibc.
#![cfg(not(target_feature = "crt-static"))]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Where cargo has put the two libraries: beside this test. (Those in the folder above may be older.)
fn libraries() -> PathBuf {
    let test = env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    assert!(folder.join("libmyth.a").exists(), "cargo builds them first");
    folder.to_path_buf()
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A compiler that is there.
fn compiler(extension: &str) -> Option<&'static str> {
    let command = match extension {
        "c" => "cc",
        _ => "c++",
    };
    let version = Command::new(command).arg("--version").output();
    version
        .is_ok_and(|version| version.status.success())
        .then_some(command)
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Linked {
    Static,
    Shared,
}

/// What the static library needs besides itself.
const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Compiles a program of `tests/programs`. None: there is no compiler for its language.
fn build(source: &str, linked: Linked) -> Option<PathBuf> {
    let source = package().join("tests/programs").join(source);
    let extension = source.extension().and_then(OsStr::to_str).unwrap();
    let compiler = compiler(extension)?;
    let name = source.file_stem().and_then(OsStr::to_str).unwrap();
    // Other tests run at the same time.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{linked:?}"));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command
        .args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(package().join("include"))
        .args([&source, Path::new("-o"), &program]);
    if is_watched_by("address-sanitizer") {
        command.arg("-fsanitize=address");
    }
    match linked {
        Linked::Static => {
            command.arg(libraries().join("libmyth.a")).args(SYSTEM);
        }
        Linked::Shared => {
            // By the name that is in it, as it is installed.
            let shared = folder.join("libmyth.so.0");
            fs::copy(libraries().join("libmyth.so"), &shared).unwrap();
            command
                .arg(&shared)
                .arg(format!("-Wl,-rpath,{}", folder.display()));
        }
    }
    let built = command.output().unwrap();
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{command:?}\n{errors}");
    Some(program)
}

/// The tool that watches the programs, if any.
fn is_watched_by(tool: &str) -> bool {
    env::var("WEALD_C_CHECK").is_ok_and(|watched_by| watched_by == tool)
}

/// The command that runs a program.
fn start(program: &Path) -> Command {
    if is_watched_by("valgrind") {
        let mut command = Command::new("valgrind");
        // Else one thread of the system could keep the others from running.
        let options = ["-q", "--error-exitcode=9", "--fair-sched=yes"];
        command.args(options).arg(program);
        return command;
    }
    let mut command = Command::new(program);
    if is_watched_by("address-sanitizer") {
        // Threads that `myth_fini` ends are lost on purpose. Frames stay on the real stacks.
        let options = "detect_leaks=0:detect_stack_use_after_return=0";
        command.env("ASAN_OPTIONS", options);
    }
    command
}

/// Runs a program with some number of workers.
fn run(program: &Path, arguments: &[&str], workers: u32) -> Output {
    start(program)
        .args(arguments)
        .env("MYTH_NUM_WORKERS", workers.to_string())
        .output()
        .unwrap()
}

/// Builds `source` in both ways, and runs it on one, two and three workers.
fn check(source: &str, arguments: &[&str]) {
    for linked in [Linked::Static, Linked::Shared] {
        let Some(program) = build(source, linked) else {
            eprintln!("{source} is left out: there is no compiler for its language.");
            return;
        };
        for workers in 1..=3 {
            let output = run(&program, arguments, workers);
            let errors = String::from_utf8_lossy(&output.stderr);
            let ended = output.status;
            assert!(
                ended.success() && errors.is_empty(),
                "{source}, {linked:?}, on {workers} workers: {ended}\n{errors}"
            );
        }
    }
}

#[test]
fn threads() {
    check("threads.c", &[]);
}

#[test]
fn joins_by_threads_of_the_system() {
    check("joins.c", &[]);
}

#[test]
fn the_first_call_makes_a_thread_of_main() {
    for call in ["recursive", "errorcheck", "cancel", "worker"] {
        check("first.c", &[call]);
    }
}

#[test]
fn attributes() {
    check("attributes.c", &[]);
}

#[test]
fn locks() {
    check("locks.c", &[]);
}

#[test]
fn meetings() {
    check("meetings.c", &[]);
}

#[test]
fn keys() {
    check("keys.c", &[]);
}

#[test]
fn switches() {
    check("switches.c", &[]);
}

#[test]
fn quicksort() {
    for way in ["serial", "direct", "structure"] {
        let n = match is_watched_by("valgrind") {
            true => "5000",
            false => "100000",
        };
        check("quicksort.c", &[n, "2", way]);
    }
}

#[test]
fn exceptions() {
    check("exceptions.cpp", &[]);
}

#[test]
fn the_runtime_begins_and_ends_with_the_settings_of_the_environment() {
    for linked in [Linked::Static, Linked::Shared] {
        let program = build("runtime.c", linked).expect("there is a C compiler");
        let output = start(&program)
            .env("MYTH_NUM_WORKERS", "3")
            .env("MYTH_DEF_STKSIZE", "98304")
            .env("MYTH_CPU_LIST", "0-1024")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.is_empty(),
            "{linked:?}: {errors}"
        );
    }
}

#[test]
fn an_exception_that_leaves_a_thread_ends_the_program_with_a_sentence() {
    if env::var_os("WEALD_C_CHECK").is_some() {
        // They report the end.
        return;
    }
    for linked in [Linked::Static, Linked::Shared] {
        let Some(program) = build("uncaught.cpp", linked) else {
            eprintln!("left out: there is no C++ compiler.");
            return;
        };
        let output = run(&program, &[], 2);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert_eq!(
            errors,
            "myth: an exception has left the function of a thread; aborting\n"
        );
    }
}

#[test]
fn a_stack_that_overflows_ends_the_program_with_a_sentence() {
    if env::var_os("WEALD_C_CHECK").is_some() {
        // They report the end.
        return;
    }
    let program = build("overflow.c", Linked::Static).expect("there is a C compiler");
    let output = run(&program, &[], 2);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        errors.contains("weald: the stack of 128 KiB overflowed"),
        "{errors}"
    );
}

#[test]
fn the_symbols_of_the_shared_library_have_a_version() {
    let library = libraries().join("libmyth.so");
    let Ok(table) = Command::new("objdump").arg("-T").arg(library).output() else {
        eprintln!("left out: there is no objdump.");
        return;
    };
    let table = String::from_utf8_lossy(&table.stdout);
    let functions: Vec<&str> = table
        .lines()
        .filter(|line| line.contains(" myth_"))
        .collect();
    assert!(functions.len() > 50, "{table}");
    for function in functions {
        assert!(function.contains("libmyth.so.0"), "{function}");
    }
}

fn is_in_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// The names of functions in a text, which stand before a parenthesis.
fn functions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .match_indices("myth_")
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

fn read_all(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap();
    let files = files
        .map(|file| file.unwrap().path())
        .filter(|file| file.is_file());
    files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}

#[test]
fn the_header_declares_what_the_library_has_and_the_programs_call_all_of_it() {
    let header = fs::read_to_string(package().join("include/myth/myth.h")).unwrap();
    // Without comments, in which functions are named, too.
    let declared: String = header
        .split("/*")
        .map(|part| part.split_once("*/").map_or(part, |(_, code)| code))
        .collect();
    let declared = functions(&declared);
    let code = read_all(&package().join("src/face"));
    let mut defined: Vec<&str> = code
        .split("#[unsafe(no_mangle)]")
        .skip(1)
        .filter_map(|part| part.split_once("fn ")?.1.split('(').next())
        .collect();
    defined.sort_unstable();
    assert_eq!(declared, defined, "the header and the library differ");
    let called = functions(&read_all(&package().join("tests/programs")));
    let missing: Vec<_> = declared
        .iter()
        .filter(|name| !called.contains(name))
        .collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}
