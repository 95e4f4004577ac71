//! A tree of depth 100,000 on a small stack: every walk, every edit, JSON and drop.

use weald_tree::{Attributes, Builder, Tree, Where};

const DEPTH: usize = 100_000;

fn on_a_small_stack(body: fn()) {
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    let thread = thread.spawn(body).expect("the system can start a thread");
    thread.join().expect("the body does not panic");
}

fn chain() -> Tree {
    let mut builder = Builder::new(Attributes::new());
    for _ in 0..DEPTH {
        builder.open(Attributes::new().with("k", "v"));
    }
    builder.finish().into_tree()
}

#[test]
fn walks_reach_the_bottom() {
    on_a_small_stack(|| {
        let tree = chain();
        let root = tree.root();
        assert_eq!(root.preorder().count(), DEPTH + 1);
        assert_eq!(root.breadth_first().count(), DEPTH + 1);
        let lowest = root.postorder().next().unwrap();
        assert_eq!(root.postorder().count(), DEPTH + 1);
        assert_eq!(lowest.ancestors().count(), DEPTH);
        assert_eq!(lowest.path().positions(), vec![0; DEPTH]);
        assert_eq!(tree.at(&lowest.path()), Ok(lowest));
        assert_eq!(root.find(|node| node.child_count() == 0).count(), 1);
    });
}

#[test]
fn edits_reach_the_bottom() {
    on_a_small_stack(|| {
        let tree = chain();
        let root = tree.root();
        let lowest = root.postorder().next().unwrap().id();
        let top = root.child(0).unwrap().id();
        let mut edit = tree.edit();
        let mut deepest = edit.append(lowest, Attributes::new()).unwrap();
        for _ in 0..DEPTH {
            deepest = edit.append(deepest, Attributes::new()).unwrap();
        }
        assert!(edit.move_to(top, Where::Last(deepest)).is_err());
        edit.push_root(Attributes::new());
        let longer = edit.freeze();
        assert_eq!(tree.diff(&longer).count(), DEPTH + 3);
        let mut edit = longer.edit();
        edit.delete(top).unwrap();
        let rest = edit.freeze();
        assert_eq!(rest.len(), 2);
        assert_eq!(longer.len(), 2 * DEPTH as u64 + 3);
        assert_eq!(tree.root().preorder().count(), DEPTH + 1);
    });
}

#[test]
fn json_reaches_the_bottom() {
    on_a_small_stack(|| {
        let tree = chain();
        let text = tree.root().to_json();
        assert_eq!(Tree::from_json(&text).unwrap().root().to_json(), text);
    });
}
