//! Check: phrases that readers stumble over are in no comment, no doc and no page.
//!
//! - A phrase counts wherever it stands in a line comment of Rust or in a page, outside of backticks.
//! - CHANGELOG.md and the rivals are left out. So is this file.

use super::Finding;
use super::repository::{File, Repository};

/// A phrase, in lower case, and what to write instead.
const PHRASES: [(&str, &str); 6] = [
    (", say,", "\"for example\""),
    ("all but for", "\"all except\""),
    ("as was said", "a link, or nothing"),
    ("of the user's", "\"user code\" or \"user values\""),
    ("of themselves", "\"by themselves\" or \"their own\""),
    ("so to say", "nothing"),
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let is_looked_at = |file: &&File| {
        let is_left_out = file.path == "CHANGELOG.md" || file.path.ends_with("tidy/english.rs");
        (file.is_rust() || file.is_markdown()) && !is_left_out && !file.is_of_a_rival()
    };
    let files = repository.files.iter().filter(is_looked_at);
    files.flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    let found = lines.flat_map(|(at, line)| {
        let prose = prose(file, line);
        let phrases = PHRASES.into_iter();
        let phrases = phrases.filter(move |(phrase, _)| prose.contains(phrase));
        phrases.map(move |(phrase, instead)| {
            let sentence = format!("Readers stumble over \"{phrase}\"; write {instead}.");
            Finding::new(&file.path, at + 1, sentence)
        })
    });
    found.collect()
}

/// What of a line is prose, in lower case: without what is in backticks.
fn prose(file: &File, line: &str) -> String {
    let text = match file.is_rust() {
        true => line.split_once("//").map_or("", |(_, comment)| comment),
        false => line,
    };
    let outside = text.split('`').step_by(2);
    outside.collect::<Vec<_>>().join("x").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn a_phrase_is_found_in_comments_and_pages() {
        for (path, text) in [
            ("a.rs", "//! A leaf.\n// One, say, of many.\n"),
            ("a.rs", "//! A leaf.\n/// All but for the last.\n"),
            ("a.md", "# A page\nIt runs of themselves.\n"),
            ("a.rs", "//! A leaf.\n// Code of the user's.\n"),
        ] {
            let made_up = MadeUp::new(&[(path, text)]);
            made_up.assert_one(check, &format!("{path}:2"), "Readers stumble over");
        }
    }

    #[test]
    fn code_and_names_in_backticks_and_the_list_of_changes_pass() {
        for (path, text) in [
            (
                "a.rs",
                "//! A leaf.\nconst A: &str = \"one, say, of many\";\n",
            ),
            ("a.rs", "//! A leaf.\n// Finds `, say,` in a line.\n"),
            ("CHANGELOG.md", "All but for the last.\n"),
        ] {
            MadeUp::new(&[(path, text)]).assert_none(check);
        }
    }
}
