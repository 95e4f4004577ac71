//! A forest as text: everything of it that must be the same after it was opened again.

use std::fmt::Write;

use weald_forest::Forest;

pub(crate) fn describe(forest: &Forest) -> String {
    let mut text = String::new();
    for name in forest.list() {
        let tree = forest.get(&name).unwrap();
        writeln!(text, "tree {name}, number {}", tree.number()).unwrap();
        for (tag, version) in tree.tags() {
            writeln!(text, "  tag {tag}: {version}").unwrap();
        }
        for root in tree.versions() {
            let (version, id, bytes) = (root.version(), root.commit_id(), root.bytes());
            let since = root
                .time()
                .duration_since(std::time::SystemTime::UNIX_EPOCH);
            let nanoseconds = since.unwrap().as_nanos();
            writeln!(
                text,
                "  version {version}, commit {id}, time {nanoseconds}, bytes {bytes:?}"
            )
            .unwrap();
            writeln!(text, "    {}", forest.export(root.tree().root())).unwrap();
            for node in root.tree().records() {
                let (parent, words) = (node.parent.map(|parent| parent.get()), node.key.words());
                writeln!(
                    text,
                    "    node {}, parent {parent:?}, key {words:?}",
                    node.id.get()
                )
                .unwrap();
            }
        }
    }
    text
}
