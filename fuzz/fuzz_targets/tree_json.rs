//! JSON text to a tree and back: whatever parses prints as text that parses to the same tree, even in two pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weald_tree::{JsonError, JsonReader, Tree, Where};

fuzz_target!(|text: &str| {
    let whole = Tree::from_json(text);
    let in_pieces = read_in_pieces(text);
    assert_eq!(whole.as_ref().err(), in_pieces.as_ref().err());
    let tree = match whole {
        Ok(tree) => tree,
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{error}");
            return;
        }
    };
    let printed = tree.root().to_json();
    let again = Tree::from_json(&printed).expect("printed JSON parses");
    assert_same(&tree, &again);
    assert_eq!(again.root().to_json(), printed);

    let spliced = tree
        .subtree_from_json(&printed)
        .expect("printed JSON parses");
    let mut edit = tree.edit();
    edit.splice(Where::Last(tree.root().id()), &spliced)
        .expect("the root is there and the subtree is new");
    assert_eq!(edit.freeze().len(), 2 * tree.len());
});

fn read_in_pieces(text: &str) -> Result<Tree, JsonError> {
    let (first, second) = text.as_bytes().split_at(text.len() / 2);
    let mut reader = JsonReader::new();
    reader.push(first)?;
    reader.push(second)?;
    reader.finish()
}

/// Ids are not part of the text; shape and attributes are.
fn assert_same(one: &Tree, other: &Tree) {
    assert_eq!(one.len(), other.len());
    let nodes = one.root().preorder().zip(other.root().preorder());
    let mut count = 0;
    for (one, other) in nodes {
        assert_eq!(one.child_count(), other.child_count());
        assert_eq!(one.attributes(), other.attributes());
        count += 1;
    }
    assert_eq!(count, one.len(), "a walk visits every node");
}
