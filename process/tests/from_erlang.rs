//! The tests that docs/from-erlang.md names exist.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

#[test]
fn every_test_that_the_guide_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let guide = fs::read_to_string(root.join("docs/from-erlang.md")).unwrap();
    let (_, table) = guide.split_once("## Which test shows it").unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut named = 0;
    for row in rows {
        let tests = row.split('|').nth(2).unwrap();
        let mut file = (String::new(), String::new());
        for word in tests.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                let source = fs::read_to_string(root.join(word));
                file = (word.to_owned(), source.unwrap_or_default());
                continue;
            }
            let head = format!("#[test]\nfn {word}() {{");
            assert!(file.1.contains(&head), "{} has no test {word}", file.0);
            named += 1;
        }
    }
    assert!(named > 50, "the table is no longer found: {named} tests");
}
