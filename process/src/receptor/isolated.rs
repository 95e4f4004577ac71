//! Isolation from user code: values whose destructors may panic, and closures that are called where a panic must
//! not spread.
//!
//! A panic here goes no further, and in a job it is reported. Otherwise it would hit the receptor's process, which
//! other threads use, or a crashed thread that is already unwinding, where a second panic ends the program. If the
//! running unit is cancelled meanwhile, its own next wait ends.

use weald_kernel::catch_unwinding;

/// A value whose destructor is isolated.
pub(super) struct Isolated<T>(Option<T>);

/// Runs `act`, which calls or drops what a user gave; a panic in it ends here.
pub(super) fn isolate(act: impl FnOnce()) {
    let _unwound = catch_unwinding(act);
}

impl<T> Isolated<T> {
    pub(super) fn new(value: T) -> Isolated<T> {
        Isolated(Some(value))
    }

    /// The value, no longer isolated.
    pub(super) fn into_inner(mut self) -> T {
        self.0.take().expect("a value is taken out once")
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0
            .as_mut()
            .expect("a value is used before it is taken out")
    }
}

impl<T> Drop for Isolated<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            isolate(|| drop(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    use weald_kernel::{Runtime, Wait, yield_with_stack};

    use super::*;

    #[test]
    fn a_unit_that_is_cancelled_in_isolated_code_ends_at_its_own_next_wait() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (waits, waiting) = mpsc::channel();
        let passed = Arc::new(AtomicBool::new(false));
        let passes = passed.clone();
        let job = runtime.spawn(async move {
            isolate(|| {
                waits.send(()).unwrap();
                std::future::pending::<()>().wait();
            });
            yield_with_stack();
            passes.store(true, Ordering::SeqCst);
        });
        waiting.recv().unwrap();
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert!(!passed.load(Ordering::SeqCst));
    }
}
