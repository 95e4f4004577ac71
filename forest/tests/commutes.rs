//! The table of `docs/commits.md`, cell by cell: two edits of one base, committed one after the other.
//!
//! The table is written down here a second time, in terms of the base only. A conflict leaves no trace; two
//! edits that commute give the outcome of a serial execution of both, in either order, except that two nodes
//! inserted in the same gap may be in either order.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tools::Wait;
use weald_forest::{Attributes, CommitError, Edit, EditError, Forest, NodeId, TreeHandle, Where};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Append(NodeId),
    /// Before or after a sibling.
    Beside(NodeId, bool),
    Splice(NodeId),
    Put(NodeId, &'static str),
    Unput(NodeId, &'static str),
    Move(NodeId, NodeId),
    Delete(NodeId),
    ReplaceRoot,
    PushRoot,
}

use Op::*;

fn perform(edit: &mut Edit, op: Op, tag: &str) -> Result<(), EditError> {
    let new = Attributes::new().with("tag", tag);
    match op {
        Append(parent) => edit.append(parent, new).map(|_| ()),
        Beside(sibling, true) => edit.add(Where::Before(sibling), new).map(|_| ()),
        Beside(sibling, false) => edit.add(Where::After(sibling), new).map(|_| ()),
        Splice(parent) => {
            let mut builder = edit.tree().builder(new);
            builder.leaf(Attributes::new().with("tag", "below"));
            edit.splice(Where::Last(parent), &builder.finish())
        }
        Put(node, name) => edit.put_attribute(node, name, tag),
        Unput(node, name) => edit.delete_attribute(node, name),
        Move(node, parent) => edit.move_to(node, Where::Last(parent)),
        Delete(node) => edit.delete(node),
        ReplaceRoot => Ok(_ = edit.replace_root(new)),
        PushRoot => Ok(_ = edit.push_root(new)),
    }
}

/// The base, as this version of the table sees it.
struct Base<'a>(&'a weald_forest::Tree);

impl Base<'_> {
    /// A node and all its ancestors.
    fn line(&self, node: NodeId) -> BTreeSet<NodeId> {
        let node = self.0.node(node).unwrap();
        std::iter::once(node)
            .chain(node.ancestors())
            .map(|node| node.id())
            .collect()
    }

    fn is_under(&self, node: NodeId, above: NodeId) -> bool {
        self.line(node).contains(&above)
    }

    fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.0.node(node).unwrap().parent().map(|node| node.id())
    }

    /// The nodes without which an operation is impossible.
    fn needs(&self, op: Op) -> Vec<NodeId> {
        match op {
            Append(node)
            | Beside(node, _)
            | Splice(node)
            | Put(node, _)
            | Unput(node, _)
            | Delete(node) => vec![node],
            Move(node, parent) => vec![node, parent],
            ReplaceRoot | PushRoot => vec![self.0.root().id()],
        }
    }

    /// The nodes that an operation changes, or whose children it changes, by their place in the base.
    fn touches(&self, op: Op) -> Vec<NodeId> {
        match op {
            Append(parent) | Splice(parent) => vec![parent],
            Beside(sibling, _) => self.parent(sibling).into_iter().collect(),
            Put(node, _) | Unput(node, _) | Delete(node) => vec![node],
            Move(node, parent) => vec![node, parent],
            ReplaceRoot | PushRoot => vec![self.0.root().id()],
        }
    }

    /// Whether `second`, rebased to the version of `first`, conflicts.
    fn conflict(&self, first: Op, second: Op) -> bool {
        let root = self.0.root().id();
        match (first, second) {
            // Deleting a subtree relies on all that was in it.
            (_, ReplaceRoot) | (ReplaceRoot, _) => true,
            (first, Delete(gone))
                if self
                    .touches(first)
                    .iter()
                    .any(|node| self.is_under(*node, gone)) =>
            {
                true
            }
            // Nothing can be done with a deleted node.
            (Delete(gone), second) => self
                .needs(second)
                .iter()
                .any(|node| self.is_under(*node, gone)),
            (Put(n, a) | Unput(n, a), Put(m, b) | Unput(m, b)) => (n, a) == (m, b),
            (Move(n, _), Move(m, _)) if n == m => true,
            // A node that was moved under `parent` took its descendants along.
            (Move(n, parent), Move(m, to)) => {
                self.is_under(to, n) && self.is_under(parent, m) && n != root
            }
            (Move(n, parent), Beside(sibling, _)) => n == sibling && self.parent(n) != Some(parent),
            _ => false,
        }
    }

    fn share_a_gap(&self, first: Op, second: Op) -> bool {
        match (first, second) {
            (Beside(a, _), Beside(b, _)) => self.parent(a) == self.parent(b),
            // An append goes into the gap after the last child.
            (Append(parent) | Splice(parent) | Move(_, parent), Beside(sibling, false)) => {
                self.parent(sibling) == Some(parent)
            }
            _ => false,
        }
    }
}

fn base() -> (TreeHandle, Vec<NodeId>) {
    let tree = Forest::new().create("t").wait().unwrap();
    let mut edit = tree.edit();
    let mut nodes = vec![edit.root()];
    for number in 1..10_usize {
        let parent = nodes[(number - 1) / 2];
        let attributes = Attributes::new()
            .with("a", "old")
            .with("b", "old")
            .with("tag", number.to_string());
        nodes.push(edit.append(parent, attributes).unwrap());
    }
    for name in ["a", "b"] {
        edit.put_attribute(nodes[0], name, "old").unwrap();
    }
    edit.commit().wait().unwrap();
    (tree, nodes)
}

/// Kind of the operation, two nodes, one choice.
type Drawn = (u8, Index, Index, bool);

fn op(nodes: &[NodeId], (kind, one, other, choice): &Drawn) -> Op {
    let (one, other) = (
        nodes[one.index(nodes.len())],
        nodes[other.index(nodes.len())],
    );
    let name = if *choice { "a" } else { "b" };
    match kind {
        0 => Append(one),
        1 => Beside(one, *choice),
        2 => Splice(one),
        3 => Put(one, name),
        4 => Unput(one, name),
        5 => Move(one, other),
        6 => Delete(one),
        7 => ReplaceRoot,
        _ => PushRoot,
    }
}

fn json(tree: &TreeHandle) -> String {
    tree.view().tree().root().to_json()
}

/// The outcome of both operations one after the other, if that is possible.
fn serial(ops: [(Op, &str); 2]) -> Option<String> {
    let (tree, _) = base();
    for (op, tag) in ops {
        let mut edit = tree.edit();
        perform(&mut edit, op, tag).ok()?;
        edit.commit().wait().unwrap();
    }
    Some(json(&tree))
}

fn drawn() -> impl Strategy<Value = Drawn> {
    (0..9_u8, any::<Index>(), any::<Index>(), any::<bool>())
}

/// Checks one pair against the table; returns whether it conflicted, if both were possible in the base.
fn check(drawn: &[Drawn; 2]) -> Result<Option<bool>, TestCaseError> {
    let (tree, nodes) = base();
    let [first, second] = drawn.each_ref().map(|drawn| op(&nodes, drawn));
    let (mut one, mut other) = (tree.edit(), tree.edit());
    if perform(&mut one, first, "first").is_err() || perform(&mut other, second, "second").is_err()
    {
        return Ok(None); // Impossible even in the base.
    }
    let before = tree.snapshot();
    one.commit().wait().unwrap();
    let between = json(&tree);
    let outcome = other.commit().wait();
    let is_conflict = Base(before.tree()).conflict(first, second);
    prop_assert_eq!(
        outcome.is_err(),
        is_conflict,
        "{:?} then {:?}: {:?}",
        first,
        second,
        outcome
    );
    let Ok(_) = outcome else {
        prop_assert!(matches!(outcome, Err(CommitError::Conflict(_))));
        prop_assert_eq!(json(&tree), between);
        return Ok(Some(true));
    };
    let in_order = serial([(first, "first"), (second, "second")]);
    let turned = serial([(second, "second"), (first, "first")]);
    let is_serial = [in_order, turned].contains(&Some(json(&tree)));
    prop_assert!(
        is_serial || Base(before.tree()).share_a_gap(first, second),
        "{:?} then {:?}",
        first,
        second
    );
    Ok(Some(false))
}

/// What a cell of the table says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Together,
    Conflict,
    /// It depends on the nodes.
    Depends,
}

/// The rows and columns of the table, each with its kinds of operations.
const KINDS: [&[u8]; 7] = [&[0, 2], &[1], &[3, 4], &[5], &[6], &[7], &[8]];

#[rustfmt::skip]
const TABLE: [[Cell; 7]; 7] = {
    use Cell::{Conflict as X, Depends as D, Together as T};
    [
        // append, beside, put, move, delete, replace root, push root
        [T, T, T, T, D, X, T],
        [T, T, T, T, D, X, T],
        [T, T, D, T, D, X, T],
        [T, D, T, D, D, X, T],
        [D, D, D, D, D, X, T],
        [X, X, X, X, X, X, X],
        [T, T, T, T, T, X, T],
    ]
};

/// A property for each cell: over many pairs of its operations, every outcome that the cell allows occurs.
#[test]
fn each_cell_of_the_table_holds() {
    let mut runner = TestRunner::deterministic();
    let mut draw = |kinds: &[u8]| -> Drawn {
        let (at, one, other, choice) = (
            any::<Index>(),
            any::<Index>(),
            any::<Index>(),
            any::<bool>(),
        )
            .new_tree(&mut runner)
            .unwrap()
            .current();
        (kinds[at.index(kinds.len())], one, other, choice)
    };
    for (row, first) in TABLE.iter().zip(KINDS) {
        for (cell, second) in row.iter().zip(KINDS) {
            let mut seen = [false; 2];
            for _ in 0..100 {
                let drawn = [draw(first), draw(second)];
                if let Some(is_conflict) = check(&drawn).unwrap() {
                    seen[usize::from(is_conflict)] = true;
                }
            }
            let is_so = match cell {
                Cell::Together => [true, false],
                Cell::Conflict => [false, true],
                Cell::Depends => [true, true],
            };
            assert_eq!(seen, is_so, "{first:?} then {second:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn every_pair_of_operations_goes_together_as_the_table_says(drawn in [drawn(), drawn()]) {
        let _ = check(&drawn)?;
    }

    /// Appends and pushed roots show the order of the commits.
    #[test]
    fn what_stands_last_stands_in_the_order_of_commits(kinds in [0..3_u8, 0..3_u8], node in any::<Index>()) {
        let of = |kind| match kind { 0 => (0, node, node, true), 1 => (2, node, node, true), _ => (8, node, node, true) };
        let (tree, nodes) = base();
        let [first, second] = kinds.map(|kind| op(&nodes, &of(kind)));
        let (mut one, mut other) = (tree.edit(), tree.edit());
        perform(&mut other, second, "second").unwrap();
        perform(&mut one, first, "first").unwrap();
        one.commit().wait().unwrap();
        other.commit().wait().unwrap();
        prop_assert_eq!(Some(json(&tree)), serial([(first, "first"), (second, "second")]));
    }

    /// A blind edit is refused only for what is impossible.
    #[test]
    fn a_blind_edit_goes_over_what_others_did(drawn in [drawn(), drawn()]) {
        let (tree, nodes) = base();
        let [first, second] = drawn.each_ref().map(|drawn| op(&nodes, drawn));
        let (mut one, mut other) = (tree.edit(), tree.edit().blind());
        prop_assume!(perform(&mut one, first, "first").is_ok() && perform(&mut other, second, "second").is_ok());
        one.commit().wait().unwrap();
        let again = perform(&mut tree.edit(), second, "second");
        let outcome = other.commit().wait();
        // The sibling of an insertion may have moved; the operation must then name its place again, so it is
        // not blind.
        let has_moved = matches!((first, second), (Move(n, _), Beside(m, _)) if n == m);
        prop_assert!(outcome.is_ok() == again.is_ok() || has_moved, "{:?} then {:?}: {:?}", first, second, outcome);
    }
}

#[test]
fn what_an_edit_read_must_be_unchanged() {
    type Reading = fn(&Edit, NodeId);
    let attribute: Reading = |edit, node| _ = edit.attribute(node, "a").unwrap();
    let children: Reading = |edit, node| _ = edit.children(node).unwrap();
    let subtree: Reading = |edit, node| _ = edit.subtree(node).unwrap();
    let (_, nodes) = base();
    let [root, one, leaf] = [nodes[0], nodes[1], nodes[9]];
    let cases = [
        (attribute, Put(one, "a"), true),
        (attribute, Put(one, "b"), false),
        (attribute, Put(root, "a"), false),
        (attribute, Append(one), false),
        (attribute, Move(one, nodes[2]), false),
        (attribute, Delete(one), true),
        (children, Append(one), true),
        (children, Put(one, "a"), false),
        (children, Put(leaf, "a"), false),
        (children, Delete(nodes[3]), true),
        (children, Move(nodes[2], one), true),
        (subtree, Put(leaf, "a"), true),
        (subtree, Append(nodes[3]), true),
        (subtree, Put(nodes[2], "a"), false),
        (subtree, Append(root), false),
    ];
    for (number, (reading, first, is_conflict)) in cases.into_iter().enumerate() {
        for is_blind in [false, true] {
            let (tree, _) = base();
            let mut reader = if is_blind {
                tree.edit().blind()
            } else {
                tree.edit()
            };
            reading(&reader, one);
            reader.append(root, Attributes::new()).unwrap();
            let mut writer = tree.edit();
            perform(&mut writer, first, "first").unwrap();
            writer.commit().wait().unwrap();
            let is_refused = reader.commit().wait().is_err();
            assert_eq!(
                is_refused,
                is_conflict && !is_blind,
                "case {number}, {is_blind}"
            );
        }
    }
}

#[test]
fn what_a_deleting_edit_moved_away_before_is_relied_on_too() {
    let (tree, nodes) = base();
    let mut edit = tree.edit();
    edit.move_to(nodes[9], Where::Last(nodes[2])).unwrap();
    edit.delete(nodes[2]).unwrap();
    tools::commit(&tree, "unrelated", "v");
    let mut writer = tree.edit();
    writer.put_attribute(nodes[9], "a", "not seen").unwrap();
    writer.commit().wait().unwrap();
    assert!(edit.commit().wait().is_err());
}
