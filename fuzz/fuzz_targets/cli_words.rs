//! What the program reads on its command line and from stdin: a moment, and the text of an import.
//!
//! The files of the program are compiled in here, because a program is no library.

#![no_main]
#![allow(dead_code, reason = "the files have more than is tried here")]

use libfuzzer_sys::fuzz_target;

/// Stands for the program's own, which knows every error of a journal.
mod failure {
    #[derive(Debug)]
    pub(crate) enum Failure {
        Failed(String),
        Usage(String),
        Absent(String),
    }
}
#[path = "../../cli/src/forest/import_text.rs"]
mod import_text;
#[path = "../../cli/src/forest/moment.rs"]
mod moment;
#[path = "../../cli/src/forest/times.rs"]
mod times;

use failure::Failure;

fuzz_target!(|text: &str| {
    if let Some(time) = times::read(text) {
        // What is shown has no parts of milliseconds.
        let shown = times::shown(time);
        let again = times::read(&shown).expect("what is shown is read");
        assert_eq!(times::shown(again), shown);
    }
    if let Err(failure) = moment::Moment::read(Some(text)) {
        told(&failure);
    }
    match import_text::several(text) {
        Ok(trees) => {
            for named in trees {
                let printed = named.tree.root().to_json();
                let line = serde_json::json!({ "name": named.name }).to_string();
                let line = format!("{},\"tree\":{printed}}}", line.trim_end_matches('}'));
                if named.erasable.is_empty() {
                    let again = import_text::several(&line).expect("what is printed is read");
                    assert_eq!(again[0].name, named.name);
                    assert_eq!(again[0].tree.root().to_json(), printed);
                }
            }
        }
        Err(failure) => told(&failure),
    }
    for is_document in [false, true] {
        if let Err(failure) = import_text::one("a tree", text, is_document) {
            told(&failure);
        }
    }
});

/// A failure tells what is wrong.
fn told(failure: &Failure) {
    let (Failure::Failed(text) | Failure::Usage(text) | Failure::Absent(text)) = failure;
    assert!(text.len() > 20, "{text}");
}
