//! A model of the condition variable: a signal that is sent under the mutex wakes whoever waits.

use std::sync::Arc;

use loom::{cell::Cell, thread};

use super::made_up::Shared;
use crate::{cond::Cond, mutex::Mutex};

#[test]
fn no_signal_is_lost() {
    loom::model(|| {
        let parts = (Mutex::new(0).unwrap(), Cond::new(), Cell::new(false));
        let shared = Arc::new(Shared(parts));
        let waiter = Arc::clone(&shared);
        let waiter = thread::spawn(move || {
            let (mutex, cond, is_set) = &waiter.0;
            mutex.lock(None).unwrap();
            while !is_set.get() {
                cond.wait(mutex).unwrap();
            }
            mutex.unlock().unwrap();
        });
        let (mutex, cond, is_set) = &shared.0;
        mutex.lock(None).unwrap();
        is_set.set(true);
        cond.signal();
        mutex.unlock().unwrap();
        waiter.join().unwrap();
    });
}
