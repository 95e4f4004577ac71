//! The documents of the tree workloads: their shapes, how they are built, and how they are counted.
//!
//! All systems build the same ones: every node has the attribute `k` with eight bytes, and all nodes of
//! a level have the same number of children.

use weald::forest::{CommitError, EditError};
use weald_tree::{Attributes, Builder, Edit, Node, NodeId, Tree};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// How many children the nodes of each level have, from the root downwards.
pub(crate) type Fanout = &'static [usize];

/// The shapes, by their numbers of nodes: a counter, a form, a page, a document, and a library.
const SHAPES: [(usize, Fanout); 5] = [
    (1, &[]),
    (100, &[3, 4, 7]),
    (156, &[5, 5, 5]),
    (10_005, &[4, 4, 4, 5, 5, 5]),
    (810_156, &[5, 5, 5, 5, 5, 6, 6, 6]),
];

/// The shape with this many nodes.
pub(crate) fn shape(params: &Params) -> Result<(usize, Fanout), Error> {
    let nodes = params.count("nodes")?;
    let known = SHAPES.iter().find(|(known, _)| *known == nodes).copied();
    known.ok_or_else(|| {
        let sentence = format!("nodes={nodes} is none of 1, 100, 156, 10005, 810156.");
        Error::Usage(sentence)
    })
}

/// The attributes of a node.
#[inline]
pub(super) fn attributes(number: u64) -> Attributes {
    Attributes::new().with("k", number.to_le_bytes())
}

/// A tree that is built at once.
pub(super) fn build(shape: Fanout) -> Tree {
    let mut builder = Builder::new(attributes(0));
    build_below(&mut builder, shape, &mut 0);
    builder.finish().into_tree()
}

fn build_below(builder: &mut Builder, shape: &[usize], number: &mut u64) {
    let Some((children, below)) = shape.split_first() else {
        return;
    };
    for _ in 0..*children {
        *number += 1;
        if below.is_empty() {
            builder.leaf(attributes(*number));
        } else {
            builder.open(attributes(*number));
            build_below(builder, below, number);
            builder.close();
        }
    }
}

/// Appends all nodes but the root to an edit of a tree that has only a root, level by level.
pub(super) fn append_all(edit: &mut Edit, shape: Fanout) -> Result<(), EditError> {
    let mut level = vec![edit.tree().root().id()];
    let mut number = 0;
    for children in shape {
        let mut next = Vec::with_capacity(level.len() * children);
        for parent in level {
            for _ in 0..*children {
                number += 1;
                next.push(edit.append(parent, attributes(number))?);
            }
        }
        level = next;
    }
    Ok(())
}

/// The ids of all nodes, parents before children.
pub(super) fn ids(tree: &Tree) -> Vec<NodeId> {
    tree.root().preorder().map(weald_tree::Node::id).collect()
}

/// Counts all nodes by walking through them.
pub(super) async fn count(tree: &Tree) -> usize {
    visit(tree, |_| 1, |subtree| subtree.preorder().count()).await
}

/// Counts the nodes that have their attribute, which is read by its name.
pub(super) async fn count_attributes(tree: &Tree) -> usize {
    let has = |node: Node<'_>| {
        // The highest byte of the number.
        usize::from(node.get("k").is_some_and(|value| value.last() == Some(&0)))
    };
    visit(tree, has, |subtree| subtree.preorder().map(has).sum()).await
}

/// Adds up what is said of the upper nodes, and of the subtrees below them. It yields between subtrees, as a process
/// that computes for long should.
async fn visit(
    tree: &Tree,
    of_node: impl Fn(Node<'_>) -> usize,
    of_subtree: impl Fn(Node<'_>) -> usize,
) -> usize {
    let mut sum = of_node(tree.root());
    for child in tree.root().children() {
        sum += of_node(child);
        for subtree in child.children() {
            sum += of_subtree(subtree);
            weald::yield_now().await;
        }
    }
    sum
}

/// The sentence for a commit that the forest refused.
pub(super) fn not_committed(error: &CommitError) -> Error {
    Error::workload(format!("A commit was refused: {error}."))
}

/// The sentence for an edit that the tree refused.
pub(super) fn not_edited(error: &EditError) -> Error {
    Error::workload(format!("An edit was refused: {error}."))
}

/// The metrics of a time in which this many nodes were visited or written.
pub(crate) fn per_node(elapsed: std::time::Duration, nodes: usize) -> [Metric; 2] {
    [
        Metric::new("ns_per_node", super::team::ns_per(elapsed, nodes)),
        Metric::new("s", elapsed.as_secs_f64()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_as_many_nodes_as_their_names_say() {
        for (nodes, shape) in SHAPES {
            let levels = shape.iter().scan(1, |level, children| {
                *level *= children;
                Some(*level)
            });
            assert_eq!(1 + levels.sum::<usize>(), nodes);
        }
    }

    #[test]
    fn built_and_appended_trees_are_the_same() {
        let (nodes, shape) = SHAPES[2];
        let mut edit = Tree::with_root(attributes(0)).edit();
        append_all(&mut edit, shape).unwrap();
        let (built, appended) = (build(shape), edit.freeze());
        for tree in [built, appended] {
            assert_eq!(tree.root().breadth_first().count(), nodes);
            assert_eq!(ids(&tree).len(), nodes);
        }
    }
}
