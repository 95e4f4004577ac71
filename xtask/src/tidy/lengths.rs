//! Check: a file is short. Clippy's `too_many_lines` limits functions.
//!
//! A file is measured with all that a reader scrolls past, so a long test module is a file of its own. A file of tests
//! is not measured.

use super::Finding;
use super::repository::{File, Repository};

const LIMIT: usize = 450;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let ours = repository.our_rust();
    ours.filter(|file| !is_of_tests(&file.path))
        .filter_map(finding)
        .collect()
}

fn finding(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let sentence = format!(
        "The file has {lines} lines, it must have fewer than {LIMIT}; split it, or move its tests out."
    );
    (lines >= LIMIT).then(|| Finding::new(&file.path, 1, sentence))
}

/// Whether the whole file is the test module of another one, or a test of the crate.
fn is_of_tests(path: &str) -> bool {
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

    #[test]
    fn a_file_below_the_limit_passes_and_one_at_it_is_found() {
        MadeUp::new(&[(PATH, &file(449))]).assert_none(check);
        MadeUp::new(&[(PATH, &file(450))]).assert_one(check, "kernel/src/a.rs:1", "450 lines");
    }

    #[test]
    fn a_test_module_counts() {
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    // Line.\n".repeat(10)
        );
        let text = file(440) + &tests;
        MadeUp::new(&[(PATH, &text)]).assert_one(check, "kernel/src/a.rs:1", "453 lines");
    }

    #[test]
    fn files_of_tests_and_rivals_are_not_measured() {
        for path in [
            "kernel/src/a/tests.rs",
            "kernel/tests/order.rs",
            "lab/rivals/a/src/main.rs",
        ] {
            MadeUp::new(&[(path, &file(500))]).assert_none(check);
        }
    }
}
