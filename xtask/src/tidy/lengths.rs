//! Check: files and functions keep to their lengths, and those that do not may only shrink.
//!
//! A file is measured without its test module, a function from `fn` to its closing brace. What is
//! over a limit needs an entry in the ratchet, which equals its length of today.

use super::Finding;
use super::ratchet::{self, Entry, LIST};
use super::repository::{File, Repository};
use super::rust::{Function, Rust};

const FILE_LIMIT: usize = 400;
const FUNCTION_LIMIT: usize = 70;

/// Something that is over its limit.
struct Overlong {
    path: String,
    line: usize,
    lines: usize,
    subject: String,
    limit: usize,
}

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let (entries, mut findings) = ratchet::entries(repository);
    let overlong: Vec<Overlong> = repository
        .our_rust()
        .flat_map(|(file, rust)| measure(file, &rust))
        .collect();
    for over in &overlong {
        let entry = entries.iter().find(|entry| entry.subject == over.subject);
        findings.extend(compare(over, entry));
    }
    let idle = entries
        .iter()
        .filter(|entry| overlong.iter().all(|o| o.subject != entry.subject));
    findings.extend(idle.map(|entry| {
        let sentence = format!(
            "`{}` is within its limit or gone; take the entry out.",
            entry.subject
        );
        Finding::new(LIST, entry.line, sentence)
    }));
    findings
}

fn compare(over: &Overlong, entry: Option<&Entry>) -> Option<Finding> {
    let (subject, lines, limit) = (&over.subject, over.lines, over.limit);
    let Some(entry) = entry else {
        let sentence = format!("`{subject}` has {lines} lines, the limit is {limit}; divide it.");
        return Some(Finding::new(&over.path, over.line, sentence));
    };
    let permitted = entry.lines;
    if lines > permitted {
        let sentence =
            format!("`{subject}` grew from {permitted} to {lines} lines; it may only shrink.");
        Some(Finding::new(&over.path, over.line, sentence))
    } else if lines < permitted {
        let sentence =
            format!("`{subject}` shrank from {permitted} to {lines} lines; lower the entry.");
        Some(Finding::new(LIST, entry.line, sentence))
    } else {
        None
    }
}

/// What is over its limit in one file; of functions with one name, the longest.
fn measure(file: &File, rust: &Rust) -> Vec<Overlong> {
    let path = &file.path;
    let tests = rust.test_modules();
    let lines = file.text.lines().count() - tests.iter().map(|range| range.len()).sum::<usize>();
    let mut overlong = Vec::new();
    if lines > FILE_LIMIT && !is_test_module(path) {
        let subject = path.clone();
        overlong.push(Overlong {
            path: path.clone(),
            line: 1,
            lines,
            subject,
            limit: FILE_LIMIT,
        });
    }
    let mut functions = rust.functions();
    functions.retain(|f| f.lines > FUNCTION_LIMIT && !tests.iter().any(|t| t.contains(&f.line)));
    functions.sort_by_key(|function| std::cmp::Reverse(function.lines));
    for Function { name, line, lines } in functions {
        let subject = format!("{path}#{name}");
        if overlong.iter().all(|o| o.subject != subject) {
            let limit = FUNCTION_LIMIT;
            overlong.push(Overlong {
                path: path.clone(),
                line,
                lines,
                subject,
                limit,
            });
        }
    }
    overlong
}

/// Whether the whole file is the test module of another one.
fn is_test_module(path: &str) -> bool {
    path.contains("/tests/") || (path.contains("/src/") && path.ends_with("/tests.rs"))
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const PATH: &str = "kernel/src/a.rs";

    fn file(lines: usize) -> String {
        format!("//! A leaf.\n{}", "// Line.\n".repeat(lines - 1))
    }

    fn function(lines: usize) -> String {
        format!(
            "//! A leaf.\nfn f() {{\n{}}}\n",
            "    g();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn lengths_at_the_limit_pass() {
        MadeUp::new(&[(PATH, &file(400))]).assert_none(check);
        MadeUp::new(&[(PATH, &function(70))]).assert_none(check);
    }

    #[test]
    fn lengths_over_the_limit_are_found() {
        MadeUp::new(&[(PATH, &file(401))]).assert_one(check, "kernel/src/a.rs:1", "401 lines");
        MadeUp::new(&[(PATH, &function(71))]).assert_one(check, "kernel/src/a.rs:2", "71 lines");
    }

    #[test]
    fn tests_and_rivals_are_not_measured() {
        let tests = format!(
            "//! A leaf.\n#[cfg(test)]\nmod tests {{\n{}}}\n",
            function(500)
        );
        let tests = tests.replace("\n//! A leaf.", "");
        MadeUp::new(&[(PATH, &tests)]).assert_none(check);
        MadeUp::new(&[("kernel/src/a/tests.rs", &file(500))]).assert_none(check);
        MadeUp::new(&[("kernel/tests/order.rs", &file(500))]).assert_none(check);
        MadeUp::new(&[("lab/rivals/a/src/main.rs", &function(500))]).assert_none(check);
    }

    #[test]
    fn an_entry_permits_its_length_exactly() {
        let made_up = MadeUp::new(&[(PATH, &file(420)), (LIST, "420 kernel/src/a.rs\n")]);
        made_up.assert_none(check);
        made_up.write(PATH, &file(421));
        made_up.assert_one(check, "kernel/src/a.rs:1", "grew from 420 to 421");
        made_up.write(PATH, &file(419));
        made_up.assert_one(check, "xtask/ratchet.txt:1", "shrank from 420 to 419");
        made_up.write(PATH, &file(400));
        made_up.assert_one(check, "xtask/ratchet.txt:1", "take the entry out");
    }

    #[test]
    fn an_entry_for_a_function_permits_the_longest_of_its_name() {
        let twice = function(80) + &function(75).replace("//! A leaf.\n", "");
        let made_up = MadeUp::new(&[(PATH, &twice), (LIST, "80 kernel/src/a.rs#f\n")]);
        made_up.assert_none(check);
        made_up.write(PATH, &function(90));
        made_up.assert_one(check, "kernel/src/a.rs:2", "grew from 80 to 90");
    }

    #[test]
    fn an_entry_for_nothing_is_found() {
        MadeUp::new(&[(LIST, "500 gone.rs\n")]).assert_one(check, "xtask/ratchet.txt:1", "or gone");
    }
}
