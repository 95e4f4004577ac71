//! The models: small protocols of the kernel that loom runs through every interleaving.
//!
//! Each model is a test that exercises the kernel's own types, built with loom's atomics, and says
//! what it proves. Where the code around them needs a whole runtime, a model repeats its steps in the
//! same order and names the function that it stands for. Run by `cargo xtask ci` and `cargo xtask soak`.
//!
//! What they cannot see: loom treats `SeqCst` accesses as acquire and release, and knows no load that
//! happens before an earlier one of its thread. Both sides of the asymmetric fence are full fences
//! here, so no model notices if what pairs with a light fence is not a heavy one.

#![allow(
    clippy::arc_with_non_send_sync,
    reason = "loom runs all its threads on one"
)]

mod posts;
mod state_word;

mod injector;
mod run_queue;

mod forks;
mod reactor;

mod callbacks;
mod sleep;
mod take_over;
mod timer;

mod made_up;
