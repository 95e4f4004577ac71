//! Fork-join: halves of one computation, which idle workers share.
//!
//! Read `join` first; then `deque` (who gets a half), `theft` (a half elsewhere), `lane` and `region` (whose
//! deque), `lanes` (where thieves look).

mod cancel;
mod depth;
mod deque;
mod half;
mod join;
mod lane;
mod lanes;
mod patience;
mod region;
mod theft;

pub use join::join;

pub(crate) use lane::Lane;
pub(crate) use lanes::{Lanes, steal, steal_for_driver};
pub(crate) use patience::Patience;
