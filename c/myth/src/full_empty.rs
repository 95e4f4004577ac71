//! The full/empty lock: a mutex with a mark, and two conditions, one for each mark.
//!
//! A release signals one thread that waits for the mark that it leaves, also if it leaves the mark as it was.

use std::{cell::Cell, ffi::c_int};

use crate::{cond::Cond, mutex::Mutex};

/// `myth_felock_t`.
#[repr(C)]
pub(crate) struct FullEmptyLock {
    mutex: Mutex,
    marked: [Cond; 2],
    /// 0 or 1; only the owner of the mutex changes it.
    mark: Cell<c_int>,
    reserved: usize,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<FullEmptyLock>() == 120);

impl FullEmptyLock {
    /// One that is free and empty.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> Result<FullEmptyLock, c_int> {
        Ok(FullEmptyLock {
            mutex: Mutex::new(0)?,
            marked: [Cond::new(), Cond::new()],
            mark: Cell::new(0),
            reserved: 0,
        })
    }

    /// Locks it, whatever its mark.
    ///
    /// # Errors
    /// None.
    pub(crate) fn lock(&self) -> Result<(), c_int> {
        self.mutex.lock(None)
    }

    /// Unlocks it, and leaves the mark.
    ///
    /// # Errors
    /// `EPERM` if nobody has it.
    pub(crate) fn unlock(&self) -> Result<(), c_int> {
        self.release(self.mark.get())
    }

    /// Waits until it is free and marked as `mark`, and locks it.
    ///
    /// # Errors
    /// `EINVAL` if there is no such mark.
    pub(crate) fn wait_and_lock(&self, mark: c_int) -> Result<(), c_int> {
        let marked = self.marked(mark)?;
        self.mutex.lock(None)?;
        while self.mark.get() != mark {
            marked.wait(&self.mutex)?;
        }
        Ok(())
    }

    /// Marks it as `mark`, and unlocks it.
    ///
    /// # Errors
    /// `EINVAL` if there is no such mark, `EPERM` if nobody has it.
    pub(crate) fn mark_and_signal(&self, mark: c_int) -> Result<(), c_int> {
        self.marked(mark)?;
        if !self.mutex.is_locked() {
            return Err(libc::EPERM);
        }
        self.release(mark)
    }

    /// The mark.
    pub(crate) fn mark(&self) -> c_int {
        self.mark.get()
    }

    /// Whether somebody has it.
    pub(crate) fn is_locked(&self) -> bool {
        self.mutex.is_locked()
    }

    fn marked(&self, mark: c_int) -> Result<&Cond, c_int> {
        let place = usize::try_from(mark).map_err(|_negative| libc::EINVAL)?;
        self.marked.get(place).ok_or(libc::EINVAL)
    }

    fn release(&self, mark: c_int) -> Result<(), c_int> {
        self.mark.set(mark);
        // Before the unlock: its next owner may free it.
        self.marked(mark)?.signal();
        self.mutex.unlock()
    }
}
