//! More threads that compute than cores: the monitor lowers the priority of those that serve no worker.
//!
//! These are [detached threads](super::detached), and [closures of blocking threads](super::blocking_pool). They count
//! together, and get the same share.

use crate::scheduler::{
    threads::{
        blocking_call::Purpose, detached::Competitors, priority::CpuShare,
        round_memory::RoundMemory,
    },
    workers::shared::Shared,
};

/// Lowers the threads without a worker if they and the busy workers together are more than the cores. Called by the
/// monitor each round.
pub(super) fn lower_if_crowded(shared: &Shared, memory: RoundMemory) {
    let closures = shared.blocking.of(Purpose::Closures);
    let computing = match memory.is_enough() {
        true => closures.count_computing(shared.config.stuck_after),
        false => 0,
    };
    let competitors = Competitors {
        busy_workers: shared.workers.len() - shared.sleepers.sleeping().min(shared.workers.len()),
        closures: computing,
    };
    let operations = |number| shared.pool.operations(number);
    let share: Option<CpuShare> = shared.detached.lower_if_crowded(competitors, operations);
    if let Some(share) = share.filter(|_| computing > 0) {
        closures.lower_computing(shared.detached.normal(), share);
    }
}
