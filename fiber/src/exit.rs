//! Ending a thread from deep inside its calls.

use std::{
    any::{Any, type_name},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// The payload of the unwinding that ends a thread; holds the value, of whatever type.
struct Exit(Box<dyn Any + Send>);

/// Ends the running thread with `value` as its result. The stack unwinds, so destructors run; the panic hook
/// does not.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// fn deep() {
///     weald::thread::exit(7_u32);
/// }
/// let thread = weald::thread::spawn(|| -> u32 {
///     deep();
///     0
/// });
/// assert_eq!(thread.join().unwrap(), 7);
/// # });
/// ```
///
/// # Panics
/// The thread counts as panicked if `value` is not of the type of its result. A thread of a
/// [`scope`](crate::scope()), whose result may borrow, always counts as panicked, and so does any job that
/// is not a thread.
pub fn exit<T: Send + 'static>(value: T) -> ! {
    resume_unwind(Box::new(Exit(Box::new(value))))
}

/// Runs a thread's code; the value of an [`exit`] in it is its result.
pub(crate) fn catch<F: FnOnce() -> T, T: 'static>(code: F) -> T {
    let payload = match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => return result,
        Err(payload) => payload,
    };
    match payload.downcast::<Exit>() {
        Ok(exit) => match exit.0.downcast::<T>() {
            Ok(result) => *result,
            Err(_) => panic!(
                "thread::exit was called with a value that is not of the thread's result type, {}",
                type_name::<T>()
            ),
        },
        Err(payload) => resume_unwind(payload),
    }
}
