//! An edit defers its first operation until a caller looks or until the second operation. The results do not
//! depend on it.

use proptest::prelude::*;
use weald_tree::{Attributes, Edit, EditError, NodeId, Tree};

type Step = fn(&mut Edit, NodeId) -> Result<(), EditError>;

const STEPS: [Step; 3] = [
    |edit, root| {
        edit.append(root, Attributes::new().with("k", "v"))
            .map(|_| ())
    },
    |edit, root| edit.put_attribute(root, "k", "v"),
    |edit, root| edit.put_attribute(root, "long", "more than twenty-three bytes"),
];

fn json(tree: &Tree) -> String {
    tree.root().to_json()
}

#[test]
fn looking_shows_what_was_done_and_changes_nothing() {
    for first in STEPS {
        for second in STEPS {
            let base = Tree::new();
            let root = base.root().id();
            let (mut seen, mut unseen) = (base.edit(), base.edit());
            let mut alone = base.edit();
            for edit in [&mut seen, &mut unseen, &mut alone] {
                first(edit, root).expect("the root is there");
            }
            assert_ne!(json(seen.tree()), json(&base));
            assert_eq!(json(seen.tree()), json(&alone.freeze()));
            for edit in [&mut seen, &mut unseen] {
                second(edit, root).expect("the root is there");
            }
            assert_eq!(json(seen.tree()), json(unseen.tree()));
            let (made, mut script) = seen.finish();
            assert_eq!(script.operations().len(), 2);
            let again = script.replay(&base).expect("the base allowed it before");
            assert_eq!(json(&again), json(&made));
            assert_eq!(json(&base), "{}");
        }
    }
}

#[test]
fn a_refused_operation_is_refused_immediately_and_leaves_the_first_one() {
    let base = Tree::new();
    let root = base.root().id();
    let missing = NodeId::new(77).expect("not zero");
    let mut edit = base.edit();
    assert!(edit.append(missing, Attributes::new()).is_err());
    assert!(edit.put_attribute(missing, "k", "v").is_err());
    assert_eq!(json(edit.tree()), json(&base));
    edit.put_attribute(root, "k", "v")
        .expect("the root is there");
    assert!(edit.append(missing, Attributes::new()).is_err());
    assert!(edit.put_attribute(missing, "k", "w").is_err());
    let (made, script) = edit.finish();
    assert_eq!(made.root().get_str("k"), Some("v"));
    assert_eq!(script.operations().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// Nodes are appended to a few parents, mostly several in turn to one of them; between them a caller looks, another
    /// edit takes ids, or something else is done.
    #[test]
    fn appended_nodes_are_where_an_edit_for_each_puts_them(
        steps in prop::collection::vec((0..16_u8, any::<prop::sample::Index>()), 1..60)
    ) {
        let mut single = Tree::new();
        let mut edit = single.edit();
        let root = single.root().id();
        let (mut parents, mut parent) = (vec![root], root);
        for (step, at) in steps {
            let mut alone = single.edit();
            match step {
                0 => prop_assert!(edit.tree().records().eq(single.records())),
                1 => drop(single.ids().take()),
                2 => {
                    let number = [step];
                    alone.put_attribute(parent, "k", number).unwrap();
                    edit.put_attribute(parent, "k", number).unwrap();
                }
                3 if parents.len() > 1 => {
                    let gone = parents.swap_remove(1 + at.index(parents.len() - 1));
                    alone.delete(gone).unwrap();
                    edit.delete(gone).unwrap();
                    parents.retain(|id| alone.tree().node(*id).is_some());
                    parent = root;
                }
                _ => {
                    if step < 7 {
                        parent = parents[at.index(parents.len())];
                    }
                    let id = edit.append(parent, Attributes::new().with("n", [step])).unwrap();
                    let operation = edit.operations().last().expect("it was just done");
                    alone.apply(operation).unwrap();
                    parents.push(id);
                }
            }
            single = alone.freeze();
        }
        let (made, script) = edit.finish();
        prop_assert!(made.records().eq(single.records()));
        prop_assert_eq!(made.len(), single.len());
        prop_assert!(script.operations().len() < 61);
    }
}
