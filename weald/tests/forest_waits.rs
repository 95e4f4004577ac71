//! Weald's own `wait()` serves for the forest: a thread that waits for a commit or a watch gives its OS
//! thread to others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::mpsc;
use std::time::Duration;

use weald::Wait;
use weald::forest::*;
use weald::sync::oneshot;
use weald::thread;

/// Far more than the test takes; it fails then instead of hanging.
const LIMIT: Duration = Duration::from_secs(60);

fn put(tree: &TreeHandle, value: &str) -> Committed {
    let mut edit = tree.edit();
    edit.put_attribute(edit.root(), "k", value).unwrap();
    edit.commit().wait().unwrap()
}

/// Both threads start on one OS thread, to which their stacks are then pinned.
fn watch_and_write() -> (Version, Version) {
    let tree = Forest::new().create("t").wait().unwrap();
    let mut watch = tree.watch(&Path::default(), Since::Now).unwrap();
    let (writer_started, mut started) = oneshot::channel();
    let (watcher_started, mut watcher) = oneshot::channel();
    let writer = thread::spawn(move || {
        writer_started.send(std::thread::current().id()).unwrap();
        let watcher = watcher.receive().wait().unwrap();
        assert_eq!(std::thread::current().id(), watcher, "one OS thread");
        put(&tree, "v").version
    });
    let writer_runs_on = started.receive().wait().unwrap();
    let watcher = thread::spawn(move || {
        let runs_on = std::thread::current().id();
        assert_eq!(runs_on, writer_runs_on, "one OS thread");
        watcher_started.send(runs_on).unwrap();
        watch.next().wait().unwrap().after.version()
    });
    (writer.join().unwrap(), watcher.join().unwrap())
}

#[test]
fn a_thread_that_watches_lets_a_thread_of_its_os_thread_commit() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        // No worker is retaken, so both threads start on its first OS thread.
        let builder = weald::Runtime::builder().workers(1);
        let runtime = builder.stuck_after(LIMIT).build().unwrap();
        let versions = runtime.block_on(async { thread::spawn(watch_and_write).await });
        done.send(versions.unwrap()).unwrap();
    });
    let (committed, seen) = ended
        .recv_timeout(LIMIT)
        .expect("the writer commits while the watcher waits");
    assert_eq!(committed, seen);
}

#[test]
fn one_wait_serves_for_all_of_the_forest() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let updated = tree.update(|edit| edit.put_attribute(edit.root(), "k", "v"));
    let (_, updated) = updated.wait().unwrap();
    assert_eq!(
        tree.at(updated.version).wait().unwrap().version(),
        updated.version
    );
    assert!(put(&tree, "w").version > updated.version);
}
