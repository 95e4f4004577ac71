//! Check: no file names a folder that exists on one machine only, such as a home folder.
//!
//! The folders are spelled in two parts here, so that this file does not name them.

use super::Finding;
use super::repository::{File, Repository};

const PLACES: [&str; 5] = [
    concat!("/wo", "rk"),
    concat!("/ho", "me"),
    concat!("/roo", "t"),
    concat!("/Use", "rs"),
    concat!("../sh", "ared"),
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    let places = lines.flat_map(|(at, line)| PLACES.map(|place| (at + 1, line, place)));
    let named = places.filter(|(_, line, place)| names(line, place));
    let sentence = "exists on one machine only; use a path from the repository's root.";
    named
        .map(|(at, _, place)| Finding::new(&file.path, at, format!("`{place}` {sentence}")))
        .collect()
}

/// Whether `line` contains `place` as a whole name, not as a part of a longer one.
fn names(line: &str, place: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + place.len()..].chars().next();
        let is_whole =
            place.starts_with('.') || !before.is_some_and(|c| is_name(c) || "*/}>)".contains(c));
        is_whole && !after.is_some_and(|c| is_name(c) && c != '.')
    })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn places_of_the_repository_pass() {
        let text = "docs/home/a, ../kernel, ~/x, https://a.b/root/c, /workers, and/or /rooted";
        MadeUp::new(&[("a.md", text), ("b.sh", text), ("c.rs", text)]).assert_none(check);
    }

    #[test]
    fn a_place_of_one_machine_is_found_in_any_kind_of_file() {
        for place in PLACES {
            for path in [
                "a.md",
                "kernel/src/a.rs",
                ".ci/run",
                "lab/rivals/a/src/main.rs",
                "x.toml",
            ] {
                for text in [format!("a\nsee {place}/b\n"), format!("a\n`{place}`.\n")] {
                    let made_up = MadeUp::new(&[(path, &text)]);
                    made_up.assert_one(check, &format!("{path}:2"), "on one machine only");
                }
            }
        }
    }
}
