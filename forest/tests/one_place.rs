//! Users of a forest need types of the tree as well, and find them beside it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs::read_to_string;

/// The types that a crate gives out, and what else begins with a capital in the statements that do so.
fn given_out(folder: &str) -> BTreeSet<String> {
    let path = format!("{}/{folder}/src/lib.rs", env!("CARGO_MANIFEST_DIR"));
    let text = read_to_string(path).unwrap();
    let uses = text.split("pub use ").skip(1);
    let uses = uses.filter_map(|rest| rest.split(';').next());
    let words = uses.flat_map(|names| names.split(|sign: char| !sign.is_alphanumeric()));
    let types = words.filter(|word| word.starts_with(char::is_uppercase));
    types.map(str::to_owned).collect()
}

#[test]
fn every_type_of_the_tree_comes_with_the_forest() {
    let [tree, forest] = ["../tree", "."].map(given_out);
    assert!(tree.len() > 40, "{tree:?}");
    let missing: Vec<_> = tree.difference(&forest).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
