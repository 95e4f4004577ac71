//! Check: a word that once named many things names one, as far as names of code tell.
//!
//! Words that must not occur at all are in `.ci/words.toml`. Those here are good words, each for one thing: only these
//! files may define a function, a type or a constant that has the word in its name, or be a module that has it. `Look`,
//! `look_at`, `LOOKS` and `is_looked_at` have the word `look`; `lookup` has not. Test builds do not count.

use super::Finding;
use super::modules::{Module, Modules};
use super::repository::Repository;

/// A word of the crate in the folder `crate_folder`, which only these `files` (or all in a folder) may have in names.
struct Word {
    crate_folder: &'static str,
    word: &'static str,
    files: &'static [&'static str],
    meaning: &'static str,
}

const WORDS: [Word; 6] = [
    Word {
        crate_folder: "kernel",
        word: "look",
        files: &[
            "kernel/src/scheduler/workers/search.rs",
            "kernel/src/scheduler/workers/search/pace.rs",
            "kernel/src/scheduler/workers/waker.rs",
            "kernel/src/scheduler/workers/worker_core.rs",
            "kernel/src/scheduler/workers/worker_core/turns.rs",
        ],
        meaning: "a worker looks around between jobs; the monitor checks, the reactor is polled, and an owner responds",
    },
    Word {
        crate_folder: "kernel",
        word: "visit",
        files: &[
            "kernel/src/scheduler/stackful/pinned.rs",
            "kernel/src/scheduler/stackful/visit_run.rs",
            "kernel/src/scheduler/stackful/wait/foreign_thread.rs",
            "kernel/src/scheduler/threads/pool.rs",
            "kernel/src/scheduler/threads/visits.rs",
        ],
        meaning: "a foreign thread visits a runtime in `block_on`; a job enters a foreign runtime, and a walk calls",
    },
    Word {
        crate_folder: "kernel",
        word: "turn",
        files: &[
            "kernel/src/callback/runner.rs",
            "kernel/src/scheduler/workers/worker_core.rs",
            "kernel/src/scheduler/workers/worker_core/turns.rs",
        ],
        meaning: "callbacks, pinned jobs and other jobs take turns at a worker; what waits for a thread says so",
    },
    Word {
        crate_folder: "kernel",
        word: "park",
        files: &[
            "kernel/src/api/park.rs",
            "kernel/src/job/state.rs",
            "kernel/src/job/transition.rs",
            "kernel/src/scheduler/workers/run.rs",
            "kernel/src/scheduler/workers/run/survival.rs",
        ],
        meaning: "a job parks; what parks an OS thread has `park_thread` in its name",
    },
    Word {
        crate_folder: "kernel",
        word: "serve",
        files: &[
            "kernel/src/api/unit.rs",
            "kernel/src/scheduler/threads/serve.rs",
            "kernel/src/scheduler/workers/serve_end.rs",
            "kernel/src/scheduler/workers/worker.rs",
        ],
        meaning: "a thread serves a worker; other threads run closures or leftovers",
    },
    Word {
        crate_folder: "forest",
        word: "publish_accepted",
        files: &["forest/src/combine/combiner.rs"],
        meaning: "the combiner publishes the commits that it has accepted",
    },
];

/// Parts of names that have a word of the table for another thing, and say so.
const EXCEPTIONS: [&str; 1] = ["park_thread"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for word in &WORDS {
        for module in Modules::load(repository, word.crate_folder).all {
            let Some(file) = module.file.clone() else {
                continue;
            };
            if word.files.contains(&file.as_str()) {
                continue;
            }
            let found = names(&module).filter(|(name, _)| has(name, word.word));
            findings.extend(found.map(|(name, line)| {
                let (word, folder, meaning) = (word.word, word.crate_folder, word.meaning);
                let sentence = format!(
                    "`{name}`: `{word}` means one thing in `{folder}` ({meaning}); name this otherwise."
                );
                Finding::new(&file, line, sentence)
            }));
        }
    }
    findings
}

/// What a module defines, and the module itself, each with its line.
fn names(module: &Module) -> impl Iterator<Item = (String, usize)> {
    let own = module.path.last().map(|name| (name.clone(), 1));
    let defined = [&module.functions, &module.types, &module.constants];
    defined.into_iter().flatten().cloned().chain(own)
}

/// Whether the name has the word, in any form.
fn has(name: &str, word: &str) -> bool {
    let name = snake(name);
    let name = EXCEPTIONS
        .iter()
        .fold(name, |name, other| name.replace(other, ""));
    let (parts, word): (Vec<&str>, Vec<&str>) =
        (name.split('_').collect(), word.split('_').collect());
    parts.windows(word.len()).any(|parts| {
        let mut pairs = parts.iter().zip(&word);
        pairs.all(|(part, word)| is_form_of(part, word))
    })
}

fn is_form_of(part: &str, word: &str) -> bool {
    let ending = part.strip_prefix(word);
    ending.is_some_and(|ending| ["", "s", "d", "ed", "er", "or", "ors", "ing"].contains(&ending))
}

/// `OfVisit` as `of_visit`, and `LOOKS` as `looks`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut after_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && after_small {
            snake.push('_');
        }
        after_small = letter.is_lowercase() || letter.is_ascii_digit();
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    fn with(path: &str, code: &str) -> MadeUp {
        let made_up = MadeUp::sound();
        let root = "//! The root.\nmod scheduler { mod workers { mod search; } }\nmod reactor;\n";
        made_up.write("kernel/src/lib.rs", root);
        made_up.write(path, &format!("//! A leaf.\n{code}\n"));
        made_up
    }

    #[test]
    fn the_file_of_the_word_and_tests_and_other_words_pass() {
        let search = "kernel/src/scheduler/workers/search.rs";
        with(search, "fn look() {}\nfn look_at() {}").assert_none(check);
        for code in [
            "#[cfg(test)]\nmod tests { fn look() {} }",
            "#[cfg(test)]\nconst LOOKS: u8 = 0;",
            "fn lookup() {}",
            "fn return_() { struct Look; }",
            "fn park_thread() {}",
            "fn unparker() {}",
        ] {
            with("kernel/src/reactor.rs", code).assert_none(check);
        }
    }

    #[test]
    fn another_name_with_the_word_is_found() {
        for code in [
            "fn look() {}",
            "impl A { fn look() {} }",
            "trait A { fn look(); }",
            "fn must_look_again() {}",
            "fn is_looked_at() {}",
            "struct Look;",
            "enum FirstLook {}",
            "const LOOKS: u8 = 0;",
            "static LAST_LOOK: u8 = 0;",
        ] {
            with("kernel/src/reactor.rs", code).assert_one(
                check,
                "kernel/src/reactor.rs:2",
                "looks around",
            );
        }
        let module = with("kernel/src/reactor.rs", "mod looks {}");
        module.assert_one(check, "kernel/src/reactor.rs:1", "`looks`: `look` means");
        let park = with("kernel/src/reactor.rs", "fn park_threads_of_park() {}");
        park.assert_one(check, "kernel/src/reactor.rs:2", "a job parks");
    }
}
