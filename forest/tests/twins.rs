//! A request that is repeated while its first run is still at work: both have the outcome of one commit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use tools::{Wait, commit, value_of};
use weald_forest::{CommitId, Edit, EditError, Forest, Terms};

/// Runs something on another thread, because a closure of `update` may not commit.
fn elsewhere<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

fn count(edit: &mut Edit) -> Result<u32, EditError> {
    let root = edit.root();
    let count = edit.attribute(root, "count")?.unwrap_or(b"0");
    let count = str::from_utf8(count).unwrap().parse::<u32>().unwrap() + 1;
    edit.put_attribute(root, "count", count.to_string())?;
    Ok(count)
}

#[test]
fn an_update_whose_twin_was_faster_has_its_receipt_and_its_value() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let terms = || Terms::new().id(CommitId(7));
    let mut twin = None;
    let slower = tree.update_with(terms(), |edit| {
        let counted = count(edit);
        twin.get_or_insert_with(|| {
            elsewhere(|| {
                commit(&tree, "count", "10");
                tree.update_with(terms(), count).wait().unwrap()
            })
        });
        counted
    });
    let slower = slower.wait().unwrap();
    assert_eq!((slower.0, Some(slower)), (11, twin));
    assert_eq!(value_of(&tree, "count").as_deref(), Some("11"));
}

/// What it gives up on is what its twin has done.
#[test]
fn an_update_that_gives_up_on_its_twin_has_its_outcome() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let terms = || Terms::new().id(CommitId(7));
    let mut twin = None;
    let slower = tree.update_with(terms(), |edit| {
        if twin.is_none() {
            twin = Some(elsewhere(|| {
                tree.update_with(terms(), count).wait().unwrap()
            }));
            return Err("it was counted");
        }
        Ok(count(edit).unwrap())
    });
    assert_eq!(slower.wait().ok(), twin);
    assert_eq!(value_of(&tree, "count").as_deref(), Some("1"));
    // Without a twin it has given up.
    let terms = Terms::new().id(CommitId(8));
    let given_up = tree.update_with(terms, |_| Err::<(), _>("no"));
    assert!(given_up.wait().is_err());
}

/// Only one with an id keeps its error while it waits.
#[test]
fn an_update_without_an_id_is_send_whatever_its_error_is() {
    fn must_be_send<T: Send>(_: &T) {}
    let tree = Forest::new().create("t").wait().unwrap();
    must_be_send(&tree.update(|_| Err::<(), _>(std::rc::Rc::new(7))));
}

#[test]
fn twins_over_several_trees_have_one_outcome() {
    for gives_up in [false, true] {
        let forest = Forest::new();
        let [a, b] = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
        let terms = || Terms::new().id(CommitId(7));
        let both = |edits: &mut [Edit]| {
            let [one, other] = edits else { unreachable!() };
            Ok::<_, EditError>((count(one)?, count(other)?))
        };
        let mut twin = None;
        let slower = forest.update_all(&[&a, &b], terms(), |edits| {
            let counted = both(edits).unwrap();
            if twin.is_none() {
                twin = Some(elsewhere(|| {
                    commit(&a, "count", "10");
                    let twin = forest.update_all(&[&a, &b], terms(), both);
                    twin.wait().unwrap()
                }));
                if gives_up {
                    return Err("it was counted");
                }
            }
            Ok(counted)
        });
        let slower = slower.wait().unwrap();
        assert_eq!((slower.0, Some(slower)), ((11, 1), twin));
    }
}
