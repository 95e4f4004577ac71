//! The state of an mvar and its steps, which run under its lock.
//!
//! Invariants, after [`MVarState::step`] found nothing to do:
//! - A take waits only while there is no value, or the value is lent.
//! - A put waits only while there is a value, lent or not.
//! - Further values (from swaps that were dropped) are kept only while there is a first value, lent or not.

use crate::{
    queue::{offer::Offers, serve::Served},
    runtime::reason::Name,
};

pub(super) struct MVarState<T> {
    value: Option<T>,
    /// Whether a reader has the value.
    is_lent: bool,
    pub(super) name: Name,
    /// Values of waits that were dropped after others had put new ones. The last one is the next.
    behind: Vec<T>,
    pub(super) puts: Offers<Option<T>>,
    pub(super) takes: Offers<MVarWaiter<T>>,
}

/// What is done with the value.
pub(super) enum Mode<T> {
    Take,
    Swap,
    /// Read, by copies that this function makes.
    Read(fn(&T) -> T),
}

impl<T> Clone for Mode<T> {
    fn clone(&self) -> Mode<T> {
        *self
    }
}

impl<T> Copy for Mode<T> {}

/// A waiter that wants the value.
pub(super) struct MVarWaiter<T> {
    pub(super) mode: Mode<T>,
    /// The new value of a swap, then the value that was handed over.
    pub(super) value: Option<T>,
}

impl<T> MVarState<T> {
    pub(super) fn new(name: Name, value: Option<T>) -> MVarState<T> {
        MVarState {
            value,
            is_lent: false,
            name,
            behind: Vec::new(),
            puts: Offers::new(),
            takes: Offers::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.value.is_some() || self.is_lent || !self.behind.is_empty()
    }

    pub(super) fn into_value(self) -> Option<T> {
        self.value
    }

    /// Moves the value out of `value` into the mvar, if that is empty and no put waits.
    pub(super) fn put(&mut self, value: &mut Option<T>) -> bool {
        let is_free = !self.is_full() && self.puts.first().is_none();
        if is_free {
            self.value = value.take();
        }
        is_free
    }

    /// Gets the value, if there is one and no take waits for it. `new`: the new value of a swap.
    pub(super) fn get(&mut self, mode: Mode<T>, new: &mut Option<T>) -> Option<T> {
        match self.takes.first() {
            None => hand_out(&mut self.value, &mut self.is_lent, (mode, new)),
            Some(_) => None,
        }
    }

    /// A reader puts the value back.
    pub(super) fn end_loan(&mut self, value: T) {
        self.value = Some(value);
        self.is_lent = false;
    }

    /// Takes back a value from a take that is dropped: it becomes the first again.
    pub(super) fn put_back(&mut self, value: T) {
        match self.is_lent {
            true => self.behind.push(value),
            false => self.behind.extend(self.value.replace(value)),
        }
    }

    /// Takes back a value from a swap that is dropped: it goes behind the new one.
    pub(super) fn put_behind(&mut self, value: T) {
        self.behind.push(value);
    }

    /// The rule: one put, or one handover of the value.
    pub(super) fn step(&mut self) -> Served {
        if self.is_lent {
            return None;
        }
        if self.value.is_none() {
            self.value = self.behind.pop();
        }
        if self.value.is_none() {
            let mut put = self.puts.accept()?;
            self.value = put.slot().take();
            return Some(put.win());
        }
        let mut want = self.takes.accept()?;
        let MVarWaiter { mode, value } = want.slot();
        let handed = hand_out(&mut self.value, &mut self.is_lent, (*mode, value));
        *value = handed;
        Some(want.win())
    }
}

/// Takes the value out as the mode says.
fn hand_out<T>(
    value: &mut Option<T>,
    is_lent: &mut bool,
    (mode, new): (Mode<T>, &mut Option<T>),
) -> Option<T> {
    let old = value.take()?;
    match mode {
        Mode::Take => {}
        Mode::Swap => *value = new.take(),
        Mode::Read(_) => *is_lent = true,
    }
    Some(old)
}
