//! What a scope whose parent holds its thread waits for.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use super::*;

/// One child ends late, while the other shuts its runtime down, which waits for the parent.
#[test]
fn the_end_of_a_child_is_noticed_beside_one_that_shuts_the_runtime_down() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (end, ended) = mpsc::channel::<()>();
    let scope = runtime.block_on(async {
        let scope = Arc::new(Scope::default());
        let ends_late = async move { ended.recv().unwrap() };
        scope.spawn(ends_late).detach();
        // Its destructor does not run before the test ends.
        let shuts_down = scope.spawn(std::future::pending::<()>());
        let job = shuts_down.job().unwrap();
        job.header().extensions.lock().shuts_down = true;
        scope
    });
    let (parent, (wait_ends, wait_ended)) = (scope.clone(), mpsc::channel());
    // Not a scoped thread: if it waits for ever, the test fails and does not wait for it.
    thread::spawn(move || {
        parent.wait_with_stack();
        wait_ends.send(()).unwrap();
    });
    let waits = || lock(&scope.children).waiter.is_some();
    while !waits() {
        thread::yield_now();
    }
    end.send(()).unwrap();
    let noticed = wait_ended.recv_timeout(Duration::from_secs(60));
    assert!(noticed.is_ok(), "the parent waits on");
    assert_eq!(lock(&scope.children).live.len(), 1);
}
