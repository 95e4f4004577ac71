//! An XML document to a tree and back: whatever is read is written as a document that is read as the same tree, even in
//! two pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weald_tree::{Tree, XmlError, XmlReader};

fuzz_target!(|text: &str| {
    let whole = Tree::from_xml(text);
    let in_pieces = read_in_pieces(text);
    assert_eq!(whole.as_ref().err(), in_pieces.as_ref().err());
    let Ok(tree) = whole else { return };
    let written = tree.root().to_xml().expect("it came from XML");
    let again = Tree::from_xml(&written).expect("what is written is read");
    assert_same(&tree, &again);
    assert_eq!(again.root().to_xml().expect("it came from XML"), written);
});

fn read_in_pieces(text: &str) -> Result<Tree, XmlError> {
    let (first, second) = text.as_bytes().split_at(text.len() / 2);
    let mut reader = XmlReader::new();
    reader.push(first)?;
    reader.push(second)?;
    reader.finish()
}

/// Ids are not part of the text; shape and attributes are.
fn assert_same(one: &Tree, other: &Tree) {
    assert_eq!(one.len(), other.len());
    for (one, other) in one.root().preorder().zip(other.root().preorder()) {
        assert_eq!(one.child_count(), other.child_count());
        assert_eq!(one.attributes(), other.attributes());
    }
}
