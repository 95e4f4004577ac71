//! The ivar: one value, for all waits, earlier and later ones.

use std::time::Duration;

use futures_util::future::join_all;
use weald_sync::{IVar, Wait, ivar::Full};

use crate::hand::{hand, waiting};

#[test]
fn it_is_written_once() {
    let ivar = IVar::new();
    assert_eq!(ivar.try_get(), None);
    ivar.put(1).unwrap();
    assert_eq!(ivar.put(2), Err(Full(2)));
    assert!(Full(2).to_string().contains("already written"));
    assert_eq!(hand(ivar.get()).now(), &1);
    assert_eq!(ivar.into_inner(), Some(1));
}

#[test]
fn all_waits_get_the_value() {
    // One waiter, a few, and the limits of the batches in which they are woken.
    for count in [1, 2, 3, 31, 32, 33, 100] {
        let ivar = IVar::new();
        let waits: Vec<_> = (0..count).map(|_| waiting(ivar.get())).collect();
        ivar.put("value").unwrap();
        for wait in waits {
            assert_eq!(wait.woken(), &"value");
        }
    }
}

#[test]
fn a_wait_that_is_dropped_leaves_nothing_behind() {
    let ivar = IVar::new();
    let (one, other) = (waiting(ivar.get()), waiting(ivar.get()));
    drop(one);
    let third = waiting(ivar.get());
    ivar.put(1).unwrap();
    drop(third);
    assert_eq!(other.woken(), &1);
    drop(ivar);
}

#[test]
fn a_deadline_leaves_no_waiter_behind() {
    let ivar = IVar::new();
    assert!(ivar.get().within(Duration::ZERO).wait().is_err());
    assert!(ivar.get().within(Duration::from_millis(1)).wait().is_err());
    ivar.put(1).unwrap();
    assert_eq!(ivar.get().within(Duration::ZERO).wait(), Ok(&1));
}

#[test]
fn threads_read_what_one_of_them_wrote() {
    for _ in 0..100 {
        let ivar = IVar::new();
        let written = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|n| {
                    let ivar = &ivar;
                    scope.spawn(move || ivar.put(n).is_ok().then_some(n))
                })
                .collect();
            let read = *ivar.get().wait();
            let wrote: Vec<_> = writers
                .into_iter()
                .filter_map(|w| w.join().unwrap())
                .collect();
            assert_eq!(wrote, [read]);
            read
        });
        assert_eq!(ivar.into_inner(), Some(written));
    }
}

#[test]
fn another_executor_can_wait() {
    let ivar = IVar::new();
    let reads = join_all((0..10).map(|_| async { *ivar.get().await }));
    let (values, ()) = futures_util::future::join(reads, async { ivar.put(3).unwrap() }).wait();
    assert_eq!(values, [3; 10]);
}

#[test]
fn it_is_small() {
    assert_eq!(size_of::<IVar<()>>(), 24 + 8);
    assert_eq!(size_of::<IVar<u64>>(), 24 + 8 + 8);
}
