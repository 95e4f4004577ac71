//! The models: small scenes of the tools that loom runs through every interleaving.
//!
//! Each is a test that uses the tools themselves, built with loom's atomics and cells, and says what it
//! proves. A wait that never ends is a deadlock, which loom reports. `cargo xtask ci` and `cargo xtask soak`
//! run the models.
//!
//! What they cannot see: state in `std`'s own locks (names, the table of holders), and the numbers of
//! threads, because loom runs all its threads on one.

mod made_up;

mod claim;

mod channel;
mod mutex;
mod oneshot;

mod barrier;
mod semaphore;

mod seqlock;
