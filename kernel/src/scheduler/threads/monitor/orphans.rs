//! The begin of a round of the monitor: workers for which no spare thread was found. Called by the monitor only.

use std::sync::Arc;

use crate::scheduler::{
    threads::{
        overdue::{Moved, take_overdue, take_ready},
        round_memory::RoundMemory,
        serve,
    },
    workers::{run_word::RunWord, shared::Shared},
};

/// Tries again to give threads to the workers for which there was none. Does what is due at those that get none.
pub(super) fn hand_off(shared: &Arc<Shared>, memory: RoundMemory) {
    serve::hand_off_orphans(shared);
    for worker in (0..).map_while(|index| serve::orphan(shared, index)) {
        let (worker, moved) = (&shared.workers[worker], Moved::to_sleeper(memory));
        take_overdue(shared, worker, RunWord::NONE, moved);
        if memory.is_enough() {
            take_ready(shared);
        }
        if worker.has_open_jobs() {
            shared.wake_one();
        }
    }
}
