//! The part of loom that the models use, on the threads of `std`, for Miri and ThreadSanitizer.
//!
//! These try a few interleavings by chance, where loom tries all. But they see what loom does not: memory that is used
//! after it was freed, references that alias, values read before they were written.

#![allow(unsafe_code)]

/// Runs of each model.
const RUNS: usize = if cfg!(miri) { 4 } else { 500 };

pub(in crate::models) fn model(run: impl Fn()) {
    crate::sys::barrier::register();
    for _ in 0..RUNS {
        run();
    }
}

pub(in crate::models) mod thread {
    pub(in crate::models) use std::thread::{JoinHandle, yield_now};

    /// loom runs all its threads on one, so the models pass what is not `Send`.
    struct AnyThread<T>(T);

    // SAFETY: a model that lets two threads use it at once without an order fails under loom.
    unsafe impl<T> Send for AnyThread<T> {}

    impl<T> AnyThread<T> {
        fn into_inner(self) -> T {
            self.0
        }
    }

    pub(in crate::models) fn spawn<R: Send + 'static>(
        run: impl FnOnce() -> R + 'static,
    ) -> JoinHandle<R> {
        let run = AnyThread(run);
        std::thread::spawn(move || run.into_inner()())
    }
}

pub(in crate::models) mod cell {
    use std::cell;

    /// A cell that two threads may share. An access without an order is a data race, which the tools report.
    #[derive(Default)]
    pub(in crate::models) struct Cell<T>(cell::Cell<T>);

    // SAFETY: a model that uses it from two threads without an order fails under loom.
    unsafe impl<T> Sync for Cell<T> {}

    impl<T> Cell<T> {
        pub(in crate::models) fn new(value: T) -> Cell<T> {
            Cell(cell::Cell::new(value))
        }

        pub(in crate::models) fn set(&self, value: T) {
            self.0.set(value);
        }

        pub(in crate::models) fn get(&self) -> T
        where
            T: Copy,
        {
            self.0.get()
        }

        pub(in crate::models) fn replace(&self, value: T) -> T {
            self.0.replace(value)
        }

        pub(in crate::models) fn take(&self) -> T
        where
            T: Default,
        {
            self.0.take()
        }
    }
}

pub(in crate::models) mod sync {
    use std::sync::{Condvar, Mutex};

    /// Lets a thread wait for another one; remembers one notification.
    pub(in crate::models) struct Notify(Mutex<bool>, Condvar);

    impl Notify {
        pub(in crate::models) fn new() -> Notify {
            Notify(Mutex::new(false), Condvar::new())
        }

        pub(in crate::models) fn notify(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        pub(in crate::models) fn wait(&self) {
            let mut notified = self.0.lock().unwrap();
            while !*notified {
                notified = self.1.wait(notified).unwrap();
            }
            *notified = false;
        }
    }
}
