//! The journal on simulated disks and in files.

mod bytes;
mod conformance;
mod crash;
mod directory;
mod ends;
mod erasing;
mod faults;
mod full;
mod garbage;
mod hooked;
mod leading;
mod long_names;
mod lost;
mod reading;
mod records;
mod reserve;
mod room;
mod sealed;
mod torture;
mod trimming;
