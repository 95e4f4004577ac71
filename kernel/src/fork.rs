//! Fork-join: halves of one computation, which idle workers share.
//!
//! Read `join` first; then `deque` (who gets a half), `theft` (a half elsewhere), `lane` and `region` (whose
//! deque), `lanes` (where thieves look).

mod cancel;
mod depth;
pub(crate) mod deque;
mod grain;
mod half;
mod join;
mod lane;
mod lanes;
mod merge;
mod parts;
mod patience;
mod pieces;
mod region;
mod root;
mod scope;
mod sort;
mod theft;

pub use grain::{Grain, for_each, map, reduce, try_for_each, try_map, try_reduce};
pub use join::join;
pub use parts::{IntoParts, Parts};
pub use scope::{Scope, scope};
pub use sort::{sort, sort_by, sort_by_key, sort_unstable, sort_unstable_by, sort_unstable_by_key};

pub(crate) use lane::Lane;
pub(crate) use lanes::{Lanes, Parked, steal, steal_for_driver};
pub(crate) use patience::Patience;
