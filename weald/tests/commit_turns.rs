//! A commit takes several reductions of its unit, so units that commit one after the other have short turns.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use weald::Runtime;
use weald::forest::{EditError, Forest};
use weald::process::{self, Inbox};

/// The commits of each process, more than fit into one turn.
const EACH: usize = 100;

const SEEDS: usize = 5;

#[test]
fn processes_that_commit_to_one_tree_take_short_turns() {
    let mut turns = 0;
    for seed in 0..SEEDS as u64 {
        let order = Arc::new(Mutex::new(Vec::new()));
        Runtime::test(seed).block_on(async {
            let forest = Forest::new();
            let tree = forest.create("one").await.unwrap();
            let processes = [1, 2].map(|number| {
                let (tree, order) = (tree.clone(), Arc::clone(&order));
                process::spawn(move |_: Inbox<()>| async move {
                    for _ in 0..EACH {
                        let mut edit = tree.edit().blind();
                        edit.put_attribute(edit.root(), "k", "v")?;
                        edit.commit().await.unwrap();
                        order.lock().unwrap().push(number);
                    }
                    Ok::<_, EditError>(())
                })
            });
            for process in processes {
                process.unwrap().await.unwrap().unwrap();
            }
        });
        let order = order.lock().unwrap();
        assert_eq!(order.len(), 2 * EACH);
        turns += order.chunk_by(|one, next| one == next).count();
    }
    // All commits of a process would fit into one turn, if each took one reduction.
    assert!(turns > 4 * SEEDS, "{turns}");
}
