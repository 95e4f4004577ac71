//! Makes a forest with every kind of record, in the present format, and its description:
//! `cargo run -p weald-journal --example fixture -- DIR`. With `sealed` behind that, its keys are sealed.
//!
//! It is for the next format. A fixture that is in the repository is never made again.

#![allow(clippy::unwrap_used, reason = "a failure is seen at once")]

#[path = "../tests/support/describe.rs"]
mod describe;

use std::path::PathBuf;

use describe::describe;
use pollster::block_on;
use weald_forest::{Attributes, CommitId, Forest, Tree, TreeHandle, Where};
use weald_journal::{Directory, DiskForest, DiskJournal, MasterKey, Settings};

fn named(name: &str) -> Attributes {
    Attributes::new().with("name", name)
}

/// All operations of an edit.
fn edits(tree: &TreeHandle) {
    let mut edit = tree.edit();
    let root = edit.root();
    let nodes = ["a", "b", "c"].map(|name| edit.append(root, named(name)).unwrap());
    block_on(
        edit.commit()
            .id(CommitId(tree.number().into()))
            .bytes(b"by an author"),
    )
    .unwrap();
    let mut edit = tree.edit();
    let subtree = edit.tree().subtree_from_json(
        r#"{"attributes":{"name":"copy"},"children":[{"attributes":{"name":"child"}}]}"#,
    );
    edit.splice(Where::First(root), &subtree.unwrap()).unwrap();
    edit.move_to(nodes[0], Where::Last(nodes[1])).unwrap();
    edit.delete(nodes[2]).unwrap();
    edit.put_attribute(nodes[1], "long", [b'x'; 300]).unwrap();
    edit.delete_attribute(nodes[1], "name").unwrap();
    block_on(edit.commit()).unwrap();
    let before = tree.view().version();
    let mut edit = tree.edit();
    edit.push_root(named("above"));
    block_on(edit.commit()).unwrap();
    let mut edit = tree.edit();
    edit.pop_root().unwrap();
    block_on(edit.commit()).unwrap();
    let mut edit = tree.edit();
    edit.replace_root(named("new"));
    block_on(edit.commit()).unwrap();
    block_on(tree.restore(before)).unwrap();
}

fn erasable(tree: &TreeHandle) {
    let mut edit = tree.edit();
    let root = edit.root();
    edit.put_erasable(root, "erased", "erased bytes").unwrap();
    edit.put_erasable(root, "kept", "kept bytes").unwrap();
    block_on(edit.commit()).unwrap();
    let view = tree.view();
    let mut edit = tree.edit();
    let reference = view.tree().root().get("kept").unwrap();
    edit.put_attribute(root, "copied", reference).unwrap();
    block_on(edit.commit()).unwrap();
    block_on(tree.erase(root, "erased")).unwrap();
}

fn names_and_tags(forest: &DiskForest, tree: &TreeHandle) {
    block_on(tree.tag("first", tree.versions()[1].version())).unwrap();
    block_on(tree.tag("gone", tree.view().version())).unwrap();
    block_on(tree.untag("gone")).unwrap();
    block_on(tree.add_index("name")).unwrap();
    block_on(tree.add_index("kept")).unwrap();
    block_on(tree.drop_index("kept")).unwrap();
    block_on(forest.create("gone")).unwrap();
    block_on(forest.delete("gone")).unwrap();
    block_on(forest.create("old name")).unwrap();
    block_on(forest.rename("old name", "new name")).unwrap();
}

fn main() {
    let path: PathBuf = std::env::args_os()
        .nth(1)
        .expect("the argument is a directory")
        .into();
    let directory = Directory::create(&path).unwrap();
    let mut settings = Settings::new().segment(4096);
    if std::env::args().nth(2).is_some_and(|word| word == "sealed") {
        settings = settings.master_key(MasterKey::new([7; 32]));
    }
    let journal = DiskJournal::open_on(directory, settings).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let content = Tree::from_json(
        r#"{"attributes":{"name":"top"},"children":[{"attributes":{"name":"one"}}]}"#,
    )
    .unwrap();
    let tree = block_on(forest.create_from("tree", content)).unwrap();
    edits(&tree);
    erasable(&tree);
    block_on(forest.checkpoint()).unwrap();
    // The same again, in records behind the checkpoint.
    let other = block_on(forest.create("other")).unwrap();
    edits(&other);
    erasable(&other);
    names_and_tags(&forest, &other);
    std::fs::write(path.join("description.txt"), describe(&forest)).unwrap();
}
