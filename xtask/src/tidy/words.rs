//! Check: a word that once named many things names one, as far as the name of a function tells.
//!
//! Words that must not occur at all are in `.ci/words.toml`. Those here are good words, each for one thing: only these
//! files may define a function with exactly that name. Test builds do not count.

use super::Finding;
use super::modules::Modules;
use super::repository::Repository;

/// The folder of a crate, the word, the files that may define a function of the name, and what the word means there.
const WORDS: [(&str, &str, &[&str], &str); 4] = [
    (
        "kernel",
        "look",
        &["kernel/src/scheduler/workers/search.rs"],
        "a worker looks around between jobs; the monitor checks, and a reactor polls",
    ),
    (
        "kernel",
        "park",
        &[
            "kernel/src/api/park.rs",
            "kernel/src/job/state.rs",
            "kernel/src/scheduler/workers/run.rs",
        ],
        "a job parks; what parks an OS thread says so in its name",
    ),
    (
        "kernel",
        "take_in_turn",
        &["kernel/src/scheduler/workers/worker_core/turns.rs"],
        "a worker's core takes pinned and other jobs in turns",
    ),
    (
        "forest",
        "publish_accepted",
        &["forest/src/combine/combiner.rs"],
        "the combiner publishes the commits that it has accepted",
    ),
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, word, files, meaning) in WORDS {
        for module in Modules::load(repository, folder).all {
            let Some(file) = module.file.filter(|file| !files.contains(&file.as_str())) else {
                continue;
            };
            let named = module.functions.iter().filter(|(name, _)| name == word);
            findings.extend(named.map(|(_, line)| {
                let sentence = format!(
                    "`{word}` means one thing in `{folder}` ({meaning}); name this function otherwise."
                );
                Finding::new(&file, *line, sentence)
            }));
        }
    }
    findings
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
    fn the_file_of_the_word_and_tests_pass() {
        let search = "kernel/src/scheduler/workers/search.rs";
        with(search, "fn look() {}").assert_none(check);
        let others = "fn look_around() {}\n#[cfg(test)]\nmod tests { fn look() {} }";
        with("kernel/src/reactor.rs", others).assert_none(check);
    }

    #[test]
    fn another_function_of_the_name_is_found() {
        for code in [
            "fn look() {}",
            "impl A { fn look() {} }",
            "trait A { fn look(); }",
        ] {
            with("kernel/src/reactor.rs", code).assert_one(
                check,
                "kernel/src/reactor.rs:2",
                "looks around",
            );
        }
    }
}
