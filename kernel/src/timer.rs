//! Timers: a wheel for each worker, and the entries in it.
//!
//! An entry is one allocation that a wheel and a future share; [`entry`] says who frees it. Deadlines
//! are counted in ticks of 1 ms since the runtime started, rounded up, so that nothing fires early.

pub(crate) mod entry;
pub(crate) mod wheel;
