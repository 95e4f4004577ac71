//! Events: the laws of Concurrent ML, and what a choice leaves behind.

mod hand;

mod dropped;
mod fairness;
mod futures;
mod laws;
mod modules;
mod nacks;
mod rendezvous;
mod select;
