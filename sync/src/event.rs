//! Events: descriptions of waits, and the one future that performs them.
//!
//! Every wait of this crate is an event, and [`Waiting`] waits for every event: the wait of one tool is a
//! choice of one. The steps of a wait:
//! 1. [`Branch::attempt`] each base event: the first that is ready ends the wait. Left out for one that is alone
//!    and [enrols at once](Branch::enrols_at_once).
//! 2. [`Branch::enrol`] each under one [`Claim`](crate::queue::claim::Claim): it leaves an offer where a
//!    partner will find it.
//! 3. A partner wins the claim for one of the offers, and wakes the owner.
//! 4. [`Branch::settle`] takes all other offers back; [`Branch::collect`] takes what the partner left.
//!
//! A oneshot's receive that is alone leaves its waker in place of an offer, and takes only step 1 (`waiting/alone.rs`).
//!
//! Then, when no offer is left, [`Event::conclude`] turns the branch's output into the output of the wait:
//! functions of [`Event::wrap`] run there.
//!
//! The words and the laws are those of Concurrent ML: J. H. Reppy, CML: A higher-order concurrent language,
//! PLDI 1991; the claims are those of J. Reppy, C. V. Russo, Y. Xiao, Parallel Concurrent ML, ICFP 2009.

mod branch;
mod description;
mod waiting;

pub use branch::Branch;
pub(crate) use branch::{Enrolled, Won};
pub(crate) use description::awaitable;
pub use description::{Event, Syncing};
pub use waiting::Waiting;
