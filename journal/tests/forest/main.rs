//! A forest on disk: what it has acknowledged is there when it is opened again.

mod kill;
mod power;
mod reading;
mod reopen;
