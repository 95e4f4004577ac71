//! Check: one word per concept, so that a search for it finds all there is.
//!
//! - Only words that have no second meaning here are looked for, in prose and in names.
//! - A line beside which another system is named may use that system's words.
//! - A file that is about a foreign thing with the same name, such as a cgroup, may name it.

use super::Finding;
use super::repository::{File, Repository};

/// Words to avoid, in the singular and in lower case, and our word for each.
const SYNONYMS: [(&[&str], &str); 7] = [
    (&["actor"], "process"),
    (&["goroutine"], "process or job"),
    (&["green", "thread"], "fiber"),
    (&["quota"], "budget"),
    (&["fuel"], "budget or reductions"),
    (&["global", "queue"], "injector"),
    (&["dead", "letter"], "message to a dead process"),
];

/// Other systems, spelled as they spell themselves.
const OTHER_SYSTEMS: [&str; 17] = [
    "Go", "Erlang", "Elixir", "Akka", "Pony", "Orleans", "Swift", "Tokio", "tokio", "ractor",
    "actix", "kameo", "xtra", "lunatic", "wasmtime", "Java", "Kotlin",
];

/// Words that a foreign thing is called by, and the name of that thing.
const FOREIGN: [(&str, &str); 1] = [("quota", "cgroup")];

/// The list of words itself.
const THIS_FILE: &str = "xtask/src/tidy/words.rs";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let files = repository
        .files
        .iter()
        .filter(|file| file.is_rust() || file.is_markdown());
    let ours = files.filter(|file| !file.is_of_a_rival() && file.path != THIS_FILE);
    ours.flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words = words(line);
        for (synonym, ours) in SYNONYMS {
            let stands = words.windows(synonym.len()).any(|words| is(words, synonym));
            let near = &lines[at.saturating_sub(1)..lines.len().min(at + 2)];
            if stands && !names_another_system(near) && !is_foreign(synonym, &file.text) {
                let synonym = synonym.join(" ");
                let sentence = format!(
                    "Our word for `{synonym}` is {ours}; use it, or name the other system."
                );
                findings.push(Finding::new(&file.path, at + 1, sentence));
            }
        }
    }
    findings
}

/// The words of a line in lower case; names are divided at underscores and capitals.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in line.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words
                .last_mut()
                .expect("one word is always there")
                .extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is(words: &[String], synonym: &[&str]) -> bool {
    words
        .iter()
        .zip(synonym)
        .all(|(word, s)| word == s || word.strip_suffix('s') == Some(*s))
}

fn is_foreign(synonym: &[&str], text: &str) -> bool {
    FOREIGN
        .iter()
        .any(|(word, thing)| synonym == [*word] && text.contains(thing))
}

fn names_another_system(lines: &[&str]) -> bool {
    let mut names = lines
        .iter()
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
    names.any(|name| OTHER_SYSTEMS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn our_words_and_longer_ones_pass() {
        let text =
            "A factor, a refactoring, a process, evergreen threads, quotation, `factory_actory`.";
        MadeUp::new(&[("a.md", text), ("kernel/src/a.rs", text)]).assert_none(check);
    }

    #[test]
    fn a_synonym_is_found_in_prose_and_in_names() {
        for text in [
            "An actor has a mailbox.",
            "Actors",
            "struct ActorRef;",
            "fn spawn_actor()",
            "goroutines",
            "green threads",
            "green-thread",
            "GreenThread",
            "let quota = 1;",
            "fuel",
            "the global queue",
        ] {
            for path in ["docs/a.md", "kernel/src/a.rs"] {
                let made_up = MadeUp::new(&[(path, &format!("//! A leaf.\n\n{text}\n"))]);
                made_up.assert_one(check, &format!("{path}:3"), "Our word for");
            }
        }
    }

    #[test]
    fn the_words_of_another_system_pass_beside_its_name_and_in_a_rival() {
        let made_up = MadeUp::new(&[
            (
                "a.md",
                "In ractor an actor has\nfour channels per actor.\n\nGo's goroutine.\n",
            ),
            (
                "lab/rivals/ractor/src/main.rs",
                "//! A rival.\nstruct Actor;\n",
            ),
        ]);
        made_up.assert_none(check);
        made_up.write(
            "a.md",
            "In ractor this differs.\n\nAn actor waits. We go on.\n",
        );
        made_up.assert_one(check, "a.md:3", "`actor` is process");
    }

    #[test]
    fn a_foreign_thing_of_the_same_name_passes_in_a_file_about_it() {
        let made_up = MadeUp::new(&[("a.rs", "// The cgroup.\n\n\n\nfn quota() {}\n")]);
        made_up.assert_none(check);
        made_up.write("a.rs", "// The cgroup.\n\n\n\nfn fuel() {}\n");
        made_up.assert_one(check, "a.rs:5", "`fuel` is budget");
        made_up.write("a.rs", "fn quota() {}\n");
        made_up.assert_one(check, "a.rs:1", "`quota` is budget");
    }
}
