//! Check: a word that once named many things names one, as far as names of code tell.
//!
//! Words that must not occur at all are in `.ci/words.toml`. Those here are good words, each for one thing: only these
//! files may define a function, a type or a constant that has the word in its name, or be a module that has it. `Look`,
//! `look_at`, `LOOKS` and `is_looked_at` have the word `look`; `lookup` has not. Test builds do not count.
//!
//! And a folder may have to do without a word: its code has it in no name, not even of a field, and in no text.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;

use super::Finding;
use super::modules::{Module, Modules};
use super::paths_in_code::left_out;
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

/// Words that the code in this `folder` of a crate must not have.
struct Without {
    crate_folder: &'static str,
    folder: &'static str,
    words: &'static [&'static str],
    reason: &'static str,
}

const WITHOUT: [Without; 1] = [Without {
    crate_folder: "kernel",
    folder: "kernel/src/job/",
    words: &["callback", "fork"],
    reason: "a job knows no feature",
}];

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
    findings.extend(WITHOUT.iter().flat_map(|it| with_its_words(repository, it)));
    findings
}

/// Where code of the folder has a word that it must not have.
fn with_its_words(repository: &Repository, without: &Without) -> Vec<Finding> {
    let modules = Modules::load(repository, without.crate_folder).all;
    let files: BTreeSet<String> = modules.into_iter().filter_map(|it| it.file).collect();
    let files = files
        .iter()
        .filter(|path| path.starts_with(without.folder))
        .filter_map(|path| repository.file(path));
    let mut findings = Vec::new();
    for file in files {
        let mut found = Vec::new();
        // The head of the file is no code.
        let items = file.syntax().map_or(&[][..], |syntax| &syntax.items);
        for item in items {
            names_and_texts(item.to_token_stream(), &mut found);
        }
        for (found, line) in found {
            let words = without.words.iter().filter(|word| has(&found, word));
            findings.extend(words.map(|word| {
                let (folder, reason) = (without.folder, without.reason);
                let sentence = format!(
                    "`{found}`: the code in `{folder}` does without the word `{word}` ({reason}); name it otherwise."
                );
                Finding::new(&file.path, line, sentence)
            }));
        }
    }
    findings
}

/// Every name and literal in `tokens`, with its line, except in attributes and in what only tests see.
fn names_and_texts(tokens: TokenStream, found: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        at += left_out(&tokens[at..]);
        match tokens.get(at) {
            Some(TokenTree::Group(group)) => names_and_texts(group.stream(), found),
            Some(token @ (TokenTree::Ident(_) | TokenTree::Literal(_))) => {
                found.push((token.to_string(), token.span().start().line));
            }
            _ => {}
        }
        at += 1;
    }
}

/// What a module defines, and the module itself, each with its line.
fn names(module: &Module) -> impl Iterator<Item = (String, usize)> {
    let own = module.path.last().map(|name| (name.clone(), 1));
    let defined = [&module.functions, &module.types, &module.constants];
    defined.into_iter().flatten().cloned().chain(own)
}

/// Whether the name or the text has the word, in any form.
fn has(name: &str, word: &str) -> bool {
    let name = snake(name).replace(|c: char| !c.is_alphanumeric(), "_");
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

    fn with_job(code: &str) -> MadeUp {
        let made_up = MadeUp::sound();
        let root = "//! The root.\nmod job { mod header; }\nmod fork { mod join; }\n";
        made_up.write("kernel/src/lib.rs", root);
        made_up.write(
            "kernel/src/fork/join.rs",
            "//! Forks.\nfn fork_callback() {}\n",
        );
        let code = format!("//! Forks and callbacks use it.\n{code}\n");
        made_up.write("kernel/src/job/header.rs", &code);
        made_up
    }

    #[test]
    fn a_folder_does_without_its_words_in_code_only() {
        for code in [
            "/// Of a fork.\nfn f() {} // A callback.",
            "fn f() { g(\"forklift\", pitchfork) }",
            "#[cfg(test)]\nmod tests { fn fork() {} }",
        ] {
            with_job(code).assert_none(check);
        }
        for code in [
            "struct A { callback: u8 }",
            "fn f() { a.forks }",
            "mod bit { const OF_ONE_CALLBACK: u8 = 0; }",
            "fn f() { g!(\"part of a fork\") }",
            "use crate::fork;",
            "fn f(x: CallbackName) {}",
        ] {
            let made_up = with_job(code);
            made_up.assert_one(
                check,
                "kernel/src/job/header.rs:2",
                "a job knows no feature",
            );
        }
    }
}
