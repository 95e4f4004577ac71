//! Pictures of trees and of what changed between two versions, and walks that know their depth.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use weald_tree::{Attributes, Builder, NodeId, Tree, Where};

fn id(number: u64) -> NodeId {
    NodeId::new(number).unwrap()
}

/// Children 2, 3 (with 4 and 5) and 6 below the root 1.
fn tree() -> Tree {
    let mut builder = Builder::new(Attributes::new());
    builder.leaf(Attributes::new().with("text", "tea"));
    builder.open(Attributes::new());
    builder.leaf(Attributes::new());
    builder.leaf(Attributes::new().with("raw", [0xff, 0]));
    builder.close();
    builder.leaf(Attributes::new());
    builder.finish().into_tree()
}

#[test]
fn a_tree_is_drawn() {
    assert_eq!(
        tree().root().draw(),
        "#1\n\
         ├─ #2 text=\"tea\"\n\
         ├─ #3\n\
         │  ├─ #4\n\
         │  └─ #5 raw=0xff00\n\
         └─ #6\n"
    );
    let below = tree();
    let below = below.node(id(3)).unwrap();
    assert_eq!(below.draw(), "#3\n├─ #4\n└─ #5 raw=0xff00\n");
    let short = below.draw_with(&mut |node| format!("{}\nmore", node.position()));
    assert_eq!(short, "1\n├─ 0\n└─ 1\n");
    let dot = below.to_dot();
    assert_eq!(
        dot.lines()
            .filter(|line| line.contains("->"))
            .collect::<Vec<_>>(),
        ["  n3 -> n4;", "  n3 -> n5;"]
    );
}

#[test]
fn signs_tell_what_changed() {
    let old = tree();
    let mut edit = old.edit();
    edit.put_attribute(id(2), "text", "coffee").unwrap();
    edit.delete(id(4)).unwrap();
    edit.move_to(id(3), Where::After(id(6))).unwrap();
    edit.append(id(3), Attributes::new()).unwrap();
    let picture = old.draw_beside(&edit.freeze(), 20);
    let signs: Vec<_> = picture
        .lines()
        .map(|line| (line.chars().nth(21), line.contains('…')))
        .map(|(sign, _)| sign.unwrap_or(' '))
        .collect();
    assert_eq!(
        signs,
        [' ', '~', '<', '-', '<', ' ', '>', '>', '+'],
        "\n{picture}"
    );
}

#[test]
fn what_is_the_same_is_left_out() {
    let mut builder = Builder::new(Attributes::new());
    for _ in 0..100 {
        builder.leaf(Attributes::new());
    }
    let old = builder.finish().into_tree();
    let mut edit = old.edit();
    edit.delete(id(50)).unwrap();
    let picture = old.draw_beside(&edit.freeze(), 12);
    assert_eq!(
        picture,
        "⋮ 47 lines are the same\n\
         ├─ #48         ├─ #48\n\
         ├─ #49         ├─ #49\n\
         ├─ #50       -\n\
         ├─ #51         ├─ #51\n\
         ├─ #52         ├─ #52\n\
         ⋮ 49 lines are the same\n"
    );
    assert_eq!(old.draw_beside(&old, 12), "⋮ 101 lines are the same\n");
}

#[test]
fn depth_costs_no_width() {
    let mut builder = Builder::new(Attributes::new());
    for _ in 0..10_000 {
        builder.open(Attributes::new());
    }
    let tree = builder.finish().into_tree();
    let picture = tree.root().draw();
    assert!(picture.lines().all(|line| line.chars().count() < 130));
    assert!(picture.ends_with("└─ [10000] #10001\n"));
}

#[test]
fn an_outline_knows_its_depth_and_skips() {
    let tree = tree();
    let all: Vec<_> = tree
        .root()
        .outline()
        .map(|(depth, node)| (depth, node.id()))
        .collect();
    let preorder: Vec<_> = tree
        .root()
        .preorder()
        .map(|node| (node.ancestors().count(), node.id()))
        .collect();
    assert_eq!(all, preorder);
    for most in 0..4 {
        let some: Vec<_> = tree
            .root()
            .outline()
            .to_depth(most)
            .map(|(_, node)| node.id())
            .collect();
        let expected: Vec<_> = preorder
            .iter()
            .filter(|(depth, _)| *depth <= most)
            .map(|(_, id)| *id)
            .collect();
        assert_eq!(some, expected);
    }
    let mut outline = tree.root().outline();
    let mut seen = Vec::new();
    while let Some((_, node)) = outline.next() {
        seen.push(node.id().get());
        if node.id() == id(3) {
            outline.skip_below();
        }
    }
    assert_eq!(seen, [1, 2, 3, 6]);
}
