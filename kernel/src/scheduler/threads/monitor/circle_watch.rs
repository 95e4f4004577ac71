//! What looks for circles of waits, for the monitor: a feature of a later layer.

use std::time::Instant;

use crate::scheduler::{threads::queue_watch::depending::DependingJob, workers::shared::Shared};

/// What looks for circles of waits. Called by the monitor.
pub(crate) trait CircleWatch: Send {
    /// Every worker has slept for a while.
    fn check_when_quiet(&mut self, shared: &Shared);

    /// A sample has found these jobs.
    fn check(&mut self, shared: &Shared, depending: Vec<DependingJob>);

    /// Whether a circle was seen once, so that the next sample decides whether it is one.
    fn must_recheck(&self) -> bool;
}

/// Passes on what the last sample has found, once. The check counts as a part of the sample: it is not cut into steps,
/// so there are fewer samples if it takes long. Called by the monitor each round.
pub(super) fn pass_on(shared: &Shared, circles: &mut dyn CircleWatch) {
    if let Some(depending) = shared.queues.take_depending() {
        let began = Instant::now();
        circles.check(shared, depending);
        shared.queues.add_to_sample(began.elapsed());
    }
}
