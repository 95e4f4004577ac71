//! Positional paths: whatever parses prints, in both notations, as text that parses to the same path, and
//! a path that leads to a node is the path of that node.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weald_tree::{Path, PathError, Tree};

/// Nodes at different depths, with zero to three children.
const TREE: &str =
    r#"{"children":[{},{"children":[{"children":[{},{}]},{},{"children":[{}]}]},{}]}"#;

fuzz_target!(|text: &str| {
    let Ok(path) = text.parse::<Path>() else {
        return;
    };
    assert_eq!(path.to_string().parse(), Ok(path.clone()));
    assert_eq!(format!("{path:#}").parse(), Ok(path.clone()));

    let tree = Tree::from_json(TREE).expect("the text is a tree");
    match tree.at(&path) {
        Ok(node) => assert_eq!(node.path(), path),
        Err(PathError::OutOfRange {
            level, position, ..
        }) => {
            assert_eq!(path.positions()[level], position);
        }
        Err(error) => panic!("a parsed path fails only by its range: {error}"),
    }
});
