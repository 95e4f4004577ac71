//! Watches: every commit once and in order, only those of a subtree, and slow watches.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use tools::{Wait, commit, with_children};
use weald_forest::{
    Attributes, Forest, NodeId, Path, Seen, Since, TreeHandle, Watch, WatchEnd, WatchError, Where,
};

fn ready(watch: &mut Watch) -> Option<Result<Seen, WatchEnd>> {
    match watch.poll_next(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(seen) => Some(seen),
        std::task::Poll::Pending => None,
    }
}

fn put(tree: &TreeHandle, node: NodeId, value: &str) {
    let mut edit = tree.edit();
    edit.put_attribute(node, "k", value).unwrap();
    edit.commit().wait().unwrap();
}

#[test]
fn every_commit_is_yielded_once_and_in_order() {
    let tree = Forest::new().create("t").wait().unwrap();
    let start = commit(&tree, "k", "0").version;
    let mut watch = tree.watch(&Path::default(), Since::Version(start)).unwrap();
    assert!(ready(&mut watch).is_none());
    let versions: Vec<_> = (1..5)
        .map(|n| commit(&tree, "k", &n.to_string()).version)
        .collect();
    for version in &versions {
        let seen = ready(&mut watch).unwrap().unwrap();
        assert_eq!(seen.after.version(), *version);
        assert!(seen.before.version() < *version);
    }
    assert!(ready(&mut watch).is_none());
    let mut again = tree
        .watch(&Path::default(), Since::Version(versions[1]))
        .unwrap();
    assert_eq!(
        ready(&mut again).unwrap().unwrap().after.version(),
        versions[2]
    );
}

#[test]
fn only_commits_under_the_path_are_yielded() {
    let (tree, children) = with_children(&Forest::new(), 3);
    let mut watch = tree.watch(&"-1,1".parse().unwrap(), Since::Now).unwrap();
    put(&tree, children[0], "a");
    assert!(ready(&mut watch).is_none());
    put(&tree, children[1], "b");
    assert!(ready(&mut watch).unwrap().unwrap().touches(children[1]));
    let mut edit = tree.edit();
    let grandchild = edit.append(children[1], Default::default()).unwrap();
    edit.move_to(children[1], weald_forest::Where::Last(children[2]))
        .unwrap();
    edit.commit().wait().unwrap();
    assert!(ready(&mut watch).is_some());
    put(&tree, grandchild, "below, and after a move");
    assert!(ready(&mut watch).is_some());
    let nowhere = tree.watch(&"-1,9".parse().unwrap(), Since::Now);
    assert!(matches!(nowhere.err(), Some(WatchError::Path(_))));
}

#[test]
fn a_slow_watch_reports_where_it_resumes() {
    let forest = Forest::builder().keep(3).build();
    let tree = forest.create("t").wait().unwrap();
    let start = tree.view().version();
    let mut watch = tree.watch(&Path::default(), Since::Now).unwrap();
    // The version after the last one yielded is the oldest kept: nothing is lost yet.
    let versions: Vec<_> = (0..3)
        .map(|n| commit(&tree, "k", &n.to_string()).version)
        .collect();
    assert_eq!(
        ready(&mut watch).unwrap().unwrap().after.version(),
        versions[0]
    );
    let versions: Vec<_> = (0..9)
        .map(|n| commit(&tree, "k", &n.to_string()).version)
        .collect();
    let resume_at = versions[6];
    assert_eq!(
        ready(&mut watch).unwrap().unwrap_err(),
        WatchEnd::Lagged { resume_at }
    );
    assert_eq!(watch.last().version(), resume_at);
    assert_eq!(
        ready(&mut watch).unwrap().unwrap().after.version(),
        versions[7]
    );
    assert_eq!(
        ready(&mut watch).unwrap().unwrap().after.version(),
        versions[8]
    );
    assert!(ready(&mut watch).is_none());
    let too_old = tree.watch(&Path::default(), Since::Version(start)).err();
    assert_eq!(too_old, Some(WatchError::TooOld { oldest: resume_at }));
}

#[test]
fn a_watch_does_not_begin_at_a_version_that_only_a_tag_keeps() {
    let forest = Forest::builder().keep(2).build();
    let tree = forest.create("t").wait().unwrap();
    let tagged = commit(&tree, "k", "0").version;
    tree.tag("old", tagged).wait().unwrap();
    assert!(tree.watch(&Path::default(), Since::Version(tagged)).is_ok());
    let oldest = commit(&tree, "k", "1").version;
    commit(&tree, "k", "2");
    assert!(tree.kept_at(tagged).is_ok());
    let too_old = tree.watch(&Path::default(), Since::Version(tagged)).err();
    assert_eq!(too_old, Some(WatchError::TooOld { oldest }));
}

#[test]
fn a_deleted_tree_ends_its_watches_after_its_last_commit() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let mut watch = tree.watch(&Path::default(), Since::Now).unwrap();
    let last = commit(&tree, "k", "v").version;
    forest.delete("t").wait().unwrap();
    assert_eq!(ready(&mut watch).unwrap().unwrap().after.version(), last);
    assert_eq!(ready(&mut watch).unwrap().unwrap_err(), WatchEnd::Deleted);
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_commit_and_a_deletion_wake_and_a_dropped_wait_loses_nothing() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let mut watch = tree.watch(&Path::default(), Since::Now).unwrap();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let woken = || count.0.load(Ordering::SeqCst);
    assert!(
        watch
            .poll_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    commit(&tree, "k", "1");
    assert_eq!(woken(), 1);
    drop(watch.next());
    assert!(ready(&mut watch).unwrap().is_ok());
    assert!(
        watch
            .poll_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    forest.delete("t").wait().unwrap();
    assert_eq!(woken(), 2);
    drop(watch);
    assert_eq!(Arc::strong_count(&count), 2, "the waker was dropped");
}

#[test]
fn a_watch_on_another_thread_sees_all() {
    let tree = Forest::new().create("t").wait().unwrap();
    let mut watch = tree.watch(&Path::default(), Since::Now).unwrap();
    let seen = std::thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            let versions = (0..500).map(|_| watch.next().wait().unwrap().after.version().number);
            versions.collect::<Vec<_>>()
        });
        (0..500).for_each(|n| _ = commit(&tree, "k", &n.to_string()));
        watcher.join().unwrap()
    });
    assert!(seen.is_sorted_by(|a, b| a + 1 == *b), "{seen:?}");
}

#[test]
fn a_watched_node_is_the_same_whatever_others_insert() {
    let forest = Forest::new();
    let (tree, children) = with_children(&forest, 3);
    let mut edit = tree.edit();
    edit.add(Where::Before(children[0]), Attributes::new())
        .unwrap();
    edit.commit().wait().unwrap();
    let mut watch = tree.watch_node(children[1], Since::Now).unwrap();
    for child in &children {
        let mut edit = tree.edit();
        edit.put_attribute(*child, "k", "v").unwrap();
        edit.commit().wait().unwrap();
    }
    let seen = watch.next().wait().unwrap();
    let changed: Vec<_> = seen.changes().map(|change| change.id()).collect();
    assert_eq!(changed, [children[1]]);
    assert!(tools::ByHand::new(async move { watch.next().await.is_ok() }).is_pending());
    let mut edit = tree.edit();
    edit.delete(children[2]).unwrap();
    edit.commit().wait().unwrap();
    let missing = tree.watch_node(children[2], Since::Now).err();
    assert_eq!(missing, Some(WatchError::Missing(children[2])));
}
