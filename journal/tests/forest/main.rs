//! A forest on disk: what it has acknowledged is there when it is opened again.

mod automatic;
mod beside;
mod bounded;
mod brought_back;
mod copied;
#[path = "../support/counted.rs"]
mod counted;
mod full;
mod full_disk;
mod kill;
mod openings;
mod past;
mod power;
mod reading;
mod reopen;
mod tagged;
