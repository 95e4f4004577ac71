//! The record of a commit: whatever is read was written by the rules of records, or refused, and the operations in it
//! apply to a tree or are refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weald_forest::Tree;
use weald_forest::journal::{Change, Stored};

fuzz_target!(|bytes: &[u8]| {
    let Ok(stored) = Stored::read(bytes) else {
        return;
    };
    let tree = Tree::new();
    let ids = tree.ids().clone();
    let Ok(changes) = stored.changes(&mut |_| Some(ids.clone())) else {
        return;
    };
    let mut edit = tree.edit();
    for change in changes {
        match change {
            Change::Edit { operations, .. } => {
                for operation in operations {
                    let before = edit.tree().len();
                    if edit.replay(&operation).is_err() {
                        assert_eq!(edit.tree().len(), before, "what is refused changes nothing");
                    }
                }
            }
            Change::Create { content, .. } => {
                let nodes = content.root().preorder().count() as u64;
                assert_eq!(nodes, content.len(), "a walk visits every node");
            }
            _ => {}
        }
    }
    let tree = edit.freeze();
    assert_eq!(tree.root().preorder().count() as u64, tree.len());
});
