//! A value of the user that other units carry: a panic of its destructor does not reach them.

use weald_kernel::catch_unwinding;

/// A value whose destructor is isolated: if it panics, that is reported, and the unit that drops the value
/// continues.
pub(crate) struct Guarded<T>(
    /// None while it is dropped.
    Option<T>,
);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Guarded<T> {
        Guarded(Some(value))
    }

    pub(crate) fn value_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is there until it is dropped")
    }

    pub(crate) fn value(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        let _unwound = catch_unwinding(|| drop(value));
    }
}
