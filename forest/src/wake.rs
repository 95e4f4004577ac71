//! Calls foreign code, whose panic ends nothing of a forest or a journal: wakers, clocks, journals, media.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Drops the payload of a panic, a value of a foreign type. If its destructor panics, that panic ends here.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Dropping the second payload could panic again, and so on for ever.
        mem::forget(second);
    }
}

/// Calls foreign code; `None`, if it panics. A journal wakes wakers by it, so that its threads live on, and the other
/// wakers are woken.
pub fn catch_foreign<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(discard).ok()
}

/// Wakes. A waker that panics keeps nobody from waking the next one.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        catch_foreign(|| waker.wake());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::panic::panic_any;
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    /// A payload whose destructor panics, with such a payload too.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Self)
        }
    }

    /// A waker that panics with such a payload.
    pub(crate) struct Hostile;

    impl Wake for Hostile {
        fn wake(self: Arc<Self>) {
            panic_any(Bomb)
        }
    }

    #[test]
    fn neither_a_panic_nor_that_of_its_payload_goes_on() {
        wake(Some(Waker::from(Arc::new(Hostile))));
        assert_eq!(catch_foreign::<()>(|| panic_any(Bomb)), None);
        assert_eq!(catch_foreign(|| 5), Some(5));
    }
}
