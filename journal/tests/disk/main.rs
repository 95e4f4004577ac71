//! The journal on simulated disks and in files.
//!
//! | fault | cases |
//! |---|---|
//! | an end at any byte, write or sync | `bytes`, `crash` |
//! | an end within an opening, and within the next one | `ends`, `crash`, `torture`, `reserve` |
//! | a short write, and the next one succeeds | `faults` (`a_short_write_…`) |
//! | a sync fails, and the next one succeeds | `faults` (`a_sync_that_fails_…`, `what_a_failed_sync_left_…`) |
//! | a checkpoint was renamed, and the names were not synced | `faults` (`a_checkpoint_that_was_renamed_…`) |
//! | a blob reaches the medium later than its record | `ends` (`a_blob_that_comes_later_…`), `erasing` |
//! | the head of a segment is torn | `faults` (`a_torn_head_…`), `lost` |
//! | the clock was set back | `ends` (`a_clock_that_was_set_back_…`) |
//! | a copy that is older than the epoch | `faults` (`a_copy_that_is_older_…`), `lost` |
//! | an end while a large record is written ahead, or what was is given up | `ahead`, `crash` |
//! | a kill between two marks | `ends` (`a_kill_between_two_marks_…`) |

mod ahead;
mod bounded;
mod bytes;
mod closing;
mod conformance;
#[path = "../support/counted.rs"]
mod counted;
mod crash;
mod directory;
mod ends;
mod erasing;
mod faults;
mod full;
mod garbage;
mod hooked;
mod hostile_wakers;
mod leading;
mod long_names;
mod lost;
mod panics;
mod reading;
mod records;
mod reserve;
mod room;
mod sealed;
mod skipped;
mod torture;
mod trimming;
#[path = "../../../forest/tests/support/wakers.rs"]
mod wakers;
