//! What the program reads on its command line and from stdin: a moment, what is to be found, and the text of an import.
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
#[path = "../../cli/src/forest/term.rs"]
mod term;
#[path = "../../cli/src/forest/times.rs"]
mod times;

use std::sync::OnceLock;

use failure::Failure;
use weald_forest::{Forest, Query, TreeHandle};

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
    match term::read(text) {
        Ok(query) => finds(text, &query),
        Err(failure) => told(&failure),
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

/// What is to be found is the node that has just that attribute; and if only the beginning is said, even one whose
/// value is longer.
fn finds(text: &str, query: &Query) {
    static TREE: OnceLock<TreeHandle> = OnceLock::new();
    let tree = TREE.get_or_init(|| {
        let forest = Forest::builder().build();
        pollster::block_on(forest.create("found")).expect("a forest in memory makes a tree")
    });
    let at = text.find('=').expect("what is read has a value");
    let (name, value) = (&text[..at], &text[at + 1..]);
    let (name, is_beginning) = match name.strip_suffix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    for (value, expected) in [
        (value.to_owned(), true),
        (format!("{value}x"), is_beginning),
    ] {
        let mut edit = tree.edit();
        let root = edit.root();
        // An attribute may be too long, or have no name.
        if edit.put_attribute(root, name, &value).is_ok() {
            let found = edit.find(query).expect("nobody takes the tree away");
            assert_eq!(found == [root], expected, "{text:?} {value:?}");
        }
    }
}

/// A failure tells what is wrong.
fn told(failure: &Failure) {
    let (Failure::Failed(text) | Failure::Usage(text) | Failure::Absent(text)) = failure;
    assert!(text.len() > 20, "{text}");
}
