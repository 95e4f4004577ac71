//! Any bytes as a JSON document, at once and in pieces: what is read comes back, and what is refused is refused both
//! ways.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weald_tree::{DocumentError, DocumentReader, Tree};

fuzz_target!(|input: &[u8]| {
    let [cut, text @ ..] = input else {
        return;
    };
    let whole = read(&[text]);
    let (begin, end) = text.split_at(usize::from(*cut).min(text.len()));
    let pieces = read(&[begin, end]);
    let tree = match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert_eq!(printed(&whole), printed(&pieces));
            whole
        }
        (Err(whole), Err(pieces)) => {
            assert_eq!(whole.to_string(), pieces.to_string());
            return;
        }
        (whole, pieces) => panic!("at once {whole:?}, in pieces {pieces:?}"),
    };
    let printed_once = printed(&tree);
    let again = Tree::from_document(&printed_once).expect("what is printed is a document");
    assert_eq!(again.len(), tree.len());
    assert_eq!(printed(&again), printed_once);
});

fn read(pieces: &[&[u8]]) -> Result<Tree, DocumentError> {
    let mut reader = DocumentReader::new();
    pieces.iter().try_for_each(|piece| reader.push(piece))?;
    reader.finish()
}

fn printed(tree: &Tree) -> String {
    let document = tree.root().to_document();
    document.expect("what was read as a document can be written as one")
}
