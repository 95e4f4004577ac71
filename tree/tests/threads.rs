//! Threads share versions and subtrees, and send edits to each other.

use weald_tree::{Attributes, Edit, Script, Subtree, Tree};

fn is_shared<T: Send + Sync>() {}
fn is_sent<T: Send>() {}

#[test]
fn versions_are_shared_and_edits_are_sent() {
    is_shared::<Tree>();
    is_shared::<Subtree>();
    is_shared::<Script>();
    is_sent::<Edit>();
}

#[test]
fn edits_of_one_base_on_many_threads_bring_different_ids() {
    let base = Tree::new();
    let root = base.root().id();
    let edits = std::thread::scope(|scope| {
        let edit = || {
            let mut edit = base.edit();
            for _ in 0..1000 {
                edit.append(root, Attributes::new())
                    .expect("the root is there");
            }
            edit.finish().1
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(edit)).collect();
        let scripts = threads.into_iter().map(|thread| thread.join());
        scripts
            .map(|script| script.expect("no edit panics"))
            .collect::<Vec<_>>()
    });
    let mut all = base.edit();
    for operation in edits.iter().flat_map(Script::operations) {
        all.apply(operation).expect("no id is there twice");
    }
    assert_eq!(all.freeze().len(), 4001);
    assert_eq!(base.len(), 1);
}
