//! Models: loom runs each of them through every interleaving, up to a number of preemptions.
//!
//! A waiter parks its loom thread (`made_up`), where a thread of the library suspends. The links and wakers of nodes
//! are cells of `std`, so loom does not see whether their accesses overlap: it explores what the atomics decide.

pub(crate) mod made_up;

mod condition;
mod join;
mod meetings;
mod mutex;
