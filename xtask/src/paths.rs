//! The routine `cargo xtask paths`: how many files and functions a yield, a message, a wait, a stolen fork, a
//! readiness, a callback and a commit go through.
//!
//! `weald/examples/stories.rs` is built without optimisation and with the compiler's coverage counters, and tells each
//! story in a short and in a long run. A function is on the path if each further telling calls it. What happens once a
//! tick, such as a look around, is not: the program runs at almost its full speed, so one tick holds many tellings.
//! Functions of the standard library and of dependencies are not counted, those that are always inlined are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

use crate::checkout::{Checkout, run};

const STORIES: [&str; 7] = [
    "yield",
    "message",
    "wait",
    "steal",
    "readiness",
    "callback",
    "commit",
];
const SHORT: u64 = 100;
const LONG: u64 = 1_100;
/// A function that is called this often for each telling is on the path: counters of two threads may miss a few calls.
const ALWAYS: f64 = 0.95;
/// The place of the program, whose own functions do not count.
const PROGRAM: &str = "weald/examples/stories.rs";

/// A function or a closure: its file, and where it begins there.
type Place = (String, u64, u64);

/// How often each was called, and the line in which it ends.
type Calls = BTreeMap<Place, (u64, u64)>;

/// What each further telling calls: how often, and the line in which it ends.
type Called = BTreeMap<Place, (f64, u64)>;

/// Prints a line for each path, or for each story that `only` names; with `list`, also the functions on it.
pub fn paths(checkout: &Checkout, only: &[String], list: bool) -> ExitCode {
    match count(checkout, only, list) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn count(checkout: &Checkout, only: &[String], list: bool) -> Result<(), String> {
    let tools = Tools::find(checkout)?;
    let build = checkout.cargo("build --quiet --package weald --example stories");
    let mut build = checkout.build_apart(build, "paths", "-Cinstrument-coverage");
    // Build scripts have counters, too, and would leave them in the root.
    build.env(
        "LLVM_PROFILE_FILE",
        checkout.target().join("paths/build.profraw"),
    );
    run(&mut build)?;
    println!("path        files  functions  closures   lines");
    let mut sources = Sources::new(checkout.root());
    for story in STORIES {
        if !only.is_empty() && !only.iter().any(|name| name == story) {
            continue;
        }
        let mut path = slope(
            &tools.calls(checkout, story, SHORT)?,
            &tools.calls(checkout, story, LONG)?,
        );
        path.retain(|(file, ..), _| file != PROGRAM);
        print!("{}", sources.row(story, &path, list)?);
    }
    Ok(())
}

/// What is on the path.
fn slope(short: &Calls, long: &Calls) -> Called {
    let tellings = (LONG - SHORT) as f64;
    let each = |(place, (calls, end)): (&Place, &(u64, u64))| {
        let before = short.get(place).map_or(0, |(calls, _)| *calls);
        let calls = calls.saturating_sub(before) as f64 / tellings;
        (calls >= ALWAYS).then(|| (place.clone(), (calls, *end)))
    };
    long.iter().filter_map(each).collect()
}

/// The programs that read coverage counters, and come with the compiler.
struct Tools {
    folder: PathBuf,
}

impl Tools {
    fn find(checkout: &Checkout) -> Result<Tools, String> {
        let mut rustc = checkout.command("rustc --print target-libdir");
        let output = rustc
            .output()
            .map_err(|e| format!("rustc does not start: {e}."))?;
        let libraries = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let folder = Path::new(&libraries).with_file_name("bin");
        if folder.join("llvm-cov").exists() {
            return Ok(Tools { folder });
        }
        Err("Counters are read by programs of LLVM: `rustup component add llvm-tools`.".to_owned())
    }

    /// Tells a story, and reads how often each function of the repository was called.
    fn calls(&self, checkout: &Checkout, story: &str, times: u64) -> Result<Calls, String> {
        let place = checkout.target().join("paths");
        let program = place.join("debug/examples/stories");
        let counters = place.join(format!("{story}-{times}.profraw"));
        let indexed = counters.with_extension("profdata");
        let mut tell = checkout.command(&program.to_string_lossy());
        tell.args([story, &times.to_string()]);
        run(tell.env("LLVM_PROFILE_FILE", &counters))?;
        let mut index = checkout.command(&self.folder.join("llvm-profdata").to_string_lossy());
        run(index
            .args(["merge", "--sparse", "--output"])
            .arg(&indexed)
            .arg(&counters))?;
        let mut export = checkout.command(&self.folder.join("llvm-cov").to_string_lossy());
        export
            .args(["export", "--skip-expansions", "--skip-branches"])
            .arg("--instr-profile")
            .arg(&indexed)
            .arg(&program);
        let output = export
            .output()
            .map_err(|e| format!("llvm-cov does not start: {e}."))?;
        read(&String::from_utf8_lossy(&output.stdout), checkout.root())
    }
}

/// Reads what `llvm-cov export` prints. A generic function has an entry for each of its types; they are added up.
fn read(export: &str, root: &Path) -> Result<Calls, String> {
    let export: Value = serde_json::from_str(export)
        .map_err(|error| format!("llvm-cov has printed no JSON: {error}."))?;
    let functions = export
        .pointer("/data/0/functions")
        .and_then(Value::as_array);
    let functions = functions.ok_or("llvm-cov has listed no functions.")?;
    let mut calls = Calls::new();
    for function in functions {
        if let Some((place, count, end)) = entry(function, root) {
            let known = calls.entry(place).or_default();
            *known = (known.0 + count, known.1.max(end));
        }
    }
    Ok(calls)
}

/// One entry, unless its file is outside the repository.
fn entry(function: &Value, root: &Path) -> Option<(Place, u64, u64)> {
    let file = Path::new(function.pointer("/filenames/0")?.as_str()?);
    let file = file.strip_prefix(root).ok()?.to_string_lossy().into_owned();
    let begin = |at: usize| function.pointer(&format!("/regions/0/{at}"))?.as_u64();
    let ends = function.get("regions")?.as_array()?.iter();
    let end = ends.filter_map(|region| region.get(2)?.as_u64()).max()?;
    let count = function.get("count")?.as_u64()?;
    Some(((file, begin(0)?, begin(1)?), count, end))
}

/// The lines of the files that were read so far, to find the names of functions.
struct Sources<'a> {
    root: &'a Path,
    files: HashMap<String, Vec<String>>,
}

impl<'a> Sources<'a> {
    fn new(root: &'a Path) -> Self {
        let files = HashMap::new();
        Self { root, files }
    }

    /// The line about one path; with `list`, also a line for each of its functions.
    fn row(&mut self, story: &str, path: &Called, list: bool) -> Result<String, String> {
        let files: BTreeSet<&str> = path.keys().map(|(file, ..)| file.as_str()).collect();
        let (mut functions, mut lines, mut listed) = (0, 0, String::new());
        for (place, (calls, end)) in path {
            let name = self.name(place)?;
            let (file, line, _) = place;
            if name.is_some() {
                functions += 1;
                lines += end - line + 1;
            }
            let name = name.as_deref().unwrap_or("(closure)");
            listed += &format!("  {calls:6.1}  {file}:{line} {name}\n");
        }
        let (files, closures) = (files.len(), path.len() - functions);
        let row = format!("{story:10} {files:6} {functions:10} {closures:9} {lines:7}\n");
        Ok(if list { row + &listed } else { row })
    }

    /// The name of a function; none for a closure or the body of an async function.
    fn name(&mut self, (file, line, column): &Place) -> Result<Option<String>, String> {
        if !self.files.contains_key(file) {
            let path = self.root.join(file);
            let text = fs::read_to_string(&path)
                .map_err(|e| format!("{} could not be read: {e}.", path.display()))?;
            let lines = text.lines().map(str::to_owned).collect();
            self.files.insert(file.clone(), lines);
        }
        let at = |number: &u64| usize::try_from(*number).unwrap_or(0).saturating_sub(1);
        let line = self.files[file].get(at(line));
        Ok(line.and_then(|line| name_at(line, at(column))))
    }
}

/// The name of the function whose signature begins in `line` at `column`.
fn name_at(line: &str, column: usize) -> Option<String> {
    let signature = line.get(column..)?;
    let mut words = signature.split_whitespace();
    let before = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    let is_before = |word: &str| before.contains(&word) || word.starts_with("pub(");
    let word = words.by_ref().find(|word| !is_before(word))?;
    let name = words.next().filter(|_| word == "fn")?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(name[..end.unwrap_or(name.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORT: &str = r#"{"data":[{"functions":[
        {"count":3,"filenames":["/here/a.rs"],"regions":[[7,5,9,6,3,0,0,0]]},
        {"count":4,"filenames":["/here/a.rs"],"regions":[[7,5,9,6,4,0,0,0]]},
        {"count":9,"filenames":["/elsewhere/b.rs"],"regions":[[1,1,2,2,9,0,0,0]]}]}]}"#;

    #[test]
    fn the_types_of_a_generic_function_are_one_function_and_other_repositories_do_not_count() {
        let calls = read(EXPORT, Path::new("/here")).unwrap();
        assert_eq!(calls, Calls::from([(("a.rs".to_owned(), 7, 5), (7, 9))]));
        assert!(read("", Path::new("/here")).is_err());
    }

    #[test]
    fn what_each_further_telling_calls_is_on_the_path() {
        let run = |times: u64| {
            let tenths = [("always.rs", 10), ("often.rs", 6), ("twice.rs", 20)];
            let at = |(file, tenths): (&str, u64)| {
                ((file.to_owned(), 1, 1), (tenths * times / 10 + 5, 9))
            };
            tenths.map(at).into_iter().collect::<Calls>()
        };
        let path = slope(&run(SHORT), &run(LONG));
        let files: Vec<_> = path.keys().map(|(file, ..)| file.as_str()).collect();
        assert_eq!(files, ["always.rs", "twice.rs"]);
        assert_eq!(path.into_values().collect::<Vec<_>>(), [(1.0, 9), (2.0, 9)]);
    }

    #[test]
    fn a_function_has_a_name_and_a_closure_has_none() {
        for (line, column, expected) in [
            ("    pub(crate) fn find<'a>(&self) {", 4, Some("find")),
            ("pub async unsafe fn go(", 0, Some("go")),
            ("    let each = |entry| entry + 1;", 15, None),
            ("async move {", 0, None),
            ("    fn", 4, None),
        ] {
            assert_eq!(name_at(line, column).as_deref(), expected, "{line}");
        }
    }
}
