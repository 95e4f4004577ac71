//! Check: a line of comment has at most 120 characters. rustfmt's `max_width` does not bind comments, and its
//! `wrap_comments` needs a nightly toolchain.
//!
//! Rows of tables and pictures in fences are free, as they cannot be broken.

use super::Finding;
use super::repository::{File, Repository};

const WIDEST: usize = 120;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.our_rust().flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<Finding> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            is_fenced = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']).trim_start();
        if text.starts_with("```") {
            is_fenced = !is_fenced;
        }
        let width = line.chars().count();
        if width > WIDEST && !is_fenced && !text.starts_with('|') {
            let sentence = format!(
                "The comment has {width} characters, at most {WIDEST} are read well; wrap it."
            );
            found.push(Finding::new(&file.path, number, sentence));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const PATH: &str = "kernel/src/a.rs";

    #[test]
    fn a_wide_comment_is_found_and_a_wide_table_or_picture_is_not() {
        let wide = "w".repeat(WIDEST);
        let text = format!(
            "//! A leaf.\n{}\n    /// {wide}\n",
            "//".to_owned() + &wide[2..]
        );
        MadeUp::new(&[(PATH, &text)]).assert_one(check, "kernel/src/a.rs:3", "128 characters");
        let free = format!("//! | {wide} |\n//! ```text\n//! {wide}\n//! ```\n");
        MadeUp::new(&[(PATH, &free)]).assert_none(check);
        let behind = free + "// " + &wide + "\n";
        MadeUp::new(&[(PATH, &behind)]).assert_one(check, "kernel/src/a.rs:5", "123 characters");
    }
}
