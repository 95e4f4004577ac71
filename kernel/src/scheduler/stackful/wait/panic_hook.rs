//! Whether the calling code runs in a panic hook.
//!
//! The standard library notes for each OS thread that a panic hook runs there. If the thread panics meanwhile, it ends
//! the program. So a stack must never be suspended in a hook: the next job on the thread that panics would end all of
//! them. In a destructor during unwinding, however, a stack must be suspended in the end, because the destructor may
//! wait for a job that is pinned to this thread. `thread::panicking` is true in both.
//!
//! What tells them apart is the stack. Below a hook are the functions of the standard library that called it; when
//! destructors run, the unwinder has removed those frames. So this takes a backtrace and looks for their names. In a
//! program that was stripped, it looks for where they begin, which was learned at the start
//! ([`hook_frames`]). If neither is known, it may be a hook.
//!
//! Rejected: a wrapper around the hook that counts, because a hook that is set later replaces it (0054).
//!
//! On the thread that drives a test runtime, waits run the other jobs on top of their own stack. In a hook they only
//! advance time ([`drive_until`]).
//!
//! A backtrace takes milliseconds. Callers ask once, and only where a wait has already held its thread for long.

use std::{backtrace::Backtrace, cell::OnceCell, thread};

use crate::{
    FEATURES,
    report::{self, LateName, hook_frames},
    scheduler::workers::context,
};

/// Parts of the names of functions that are on the stack while a hook runs, and at no other time.
const PANICS: [&str; 4] = [
    "panic_with_hook",
    "rust_begin_unwind",
    "std::panicking::begin_panic",
    "core::panicking::panic",
];

/// Whether the caller runs in a panic hook. True if that cannot be told.
#[cold]
#[inline(never)]
pub(super) fn is_in_panic_hook() -> bool {
    if let Some(is_in_hook) = hook_frames::is_in_hook() {
        return is_in_hook;
    }
    let frames = Backtrace::force_capture();
    // Names take more stack to find than a small fiber has left.
    let names = thread::Builder::new()
        .name("weald-backtrace".to_owned())
        .spawn(move || frames.to_string());
    match names.map(thread::JoinHandle::join) {
        Ok(Ok(names)) => may_be_in_hook(&names),
        _ => true,
    }
}

/// Advances a test runtime, on the thread that drives it, until `is_over`. Inside of a panic hook no job runs: if one
/// panicked, the standard library would end the program. `in_hook` keeps the answer, because a backtrace takes long.
///
/// # Panics
/// If nothing can run any longer. In a hook, that ends the program, with a sentence.
// Not inlined: see `hold_in_job`.
#[cold]
#[inline(never)]
pub(super) fn drive_until(in_hook: &OnceCell<bool>, is_over: &dyn Fn() -> bool) {
    if !thread::panicking() || !*in_hook.get_or_init(is_in_panic_hook) {
        return FEATURES.driver.drive_until(is_over);
    }
    if FEATURES.driver.advance_until(is_over) {
        return;
    }
    let job = context::here().job_ref();
    let name = job.map_or_else(
        || "the main future".to_owned(),
        |job| LateName::of(job.header()).known().to_string(),
    );
    report::abort(format_args!(
        "weald: the panic hook waits for another job, or for a second for a descriptor, for {name}, and on a test runtime \
         no job runs beside a panic hook: if it panicked, too, the standard library would end the program; aborting\n"
    ));
}

fn may_be_in_hook(names: &str) -> bool {
    let has_names = names.contains("is_in_panic_hook");
    !has_names || PANICS.iter().any(|function| names.contains(function))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind},
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use super::*;

    struct Asks<'a>(&'a Mutex<Vec<bool>>);

    impl Drop for Asks<'_> {
        fn drop(&mut self) {
            assert!(thread::panicking());
            self.0.lock().expect("no panic").push(is_in_panic_hook());
        }
    }

    /// A panic of each kind: its hook is seen, and neither the destructors of its unwinding nor other code is taken
    /// for one.
    #[test]
    fn a_hook_is_told_from_a_destructor() {
        static IN_HOOK: AtomicUsize = AtomicUsize::new(0);
        let former = Arc::new(std::panic::take_hook());
        let inner = former.clone();
        let me = thread::current().id();
        std::panic::set_hook(Box::new(move |info| {
            if thread::current().id() != me {
                return inner(info);
            }
            IN_HOOK.fetch_add(usize::from(is_in_panic_hook()), Ordering::SeqCst);
        }));
        let in_destructors = Mutex::new(Vec::new());
        let panics: [&dyn Fn(); 5] = [
            &|| panic!("formatted {}", 1),
            &|| panic_any(7),
            &|| assert_eq!("x".parse::<u32>().expect("a number"), 0),
            &|| assert_eq!([1, 2, 3][std::hint::black_box(7)], 0),
            &|| resume_unwind(Box::new(1)),
        ];
        for code in panics {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _asks = Asks(&in_destructors);
                code();
            }));
            assert!(caught.is_err());
        }
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| former(info)));
        assert_eq!(
            IN_HOOK.load(Ordering::SeqCst),
            4,
            "the last one runs no hook"
        );
        assert_eq!(*in_destructors.lock().unwrap(), [false; 5]);
        assert!(!is_in_panic_hook());
    }

    #[test]
    fn without_names_it_may_be_a_hook() {
        assert!(may_be_in_hook("   0: <unknown>\n   1: <unknown>\n"));
    }
}
