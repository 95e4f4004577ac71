//! Reports of jobs that wait for each other, which nobody asks for. Called by the monitor.
//!
//! *When it is quiet*: every worker sleeps, and no timer is pending. Then each cycle of the wait-for graph is reported.
//!
//! *While others go on*: a sample of all jobs ([`depending`](crate::scheduler::threads::queue_watch::depending)) finds
//! the waits one after the other, so a circle in it may be none: each wait may have ended before the next one was
//! found. A circle that two samples in a row have found is checked again, several times at once. If it stands then,
//! too, it is reported. A wait that may end for another reason, such as a time limit, is not in the sample. Nor is one
//! of several waits that a job has at the same time: another part of the job, which goes on, may hold what this one
//! waits for.
//!
//! A report tells what is known: who waits, where, and for what that the next one has locked, or is. It asserts no
//! more: a part of a job may wait for something that notes nothing, such as a future of another library, and a guard or
//! a reply may have been passed on.
//!
//! Each circle is reported once, as long as it stands: its jobs' blocks may be those of other jobs later.

use std::collections::{HashMap, HashSet};

use weald_sync::reason::Reason;

use crate::{
    job::{JobPtr, JobRef},
    observe::{
        metrics::Metrics,
        waits::{Graph, LateWaiting, WaitingNode, cycles, sentence},
    },
    report,
    scheduler::{
        stackful::pinned,
        threads::{
            monitor::circle_watch::CircleWatch,
            queue_watch::depending::{DependingJob, holder_of, only_holder_of},
        },
        workers::shared::Shared,
    },
};

/// With more processes than this the monitor does not search for cycles when the runtime falls idle: it would walk
/// through all jobs each time. [`Runtime::waits`](crate::Runtime::waits) has no such limit.
const MOST_PROCESSES: usize = 100_000;

/// How often in a row a circle must stand that two samples have found. Were it none, a job would have to leave its wait
/// and begin it again between any two of these checks.
const CHECKS: usize = 8;

/// How the reports begin.
const WHEN_QUIET: &str =
    "no worker has anything to run, no timer is pending, and no descriptor is waited for";
const BESIDE_DESCRIPTORS: &str = "no worker has anything to run, and no timer is pending";
const BESIDE_OTHERS: &str = "while others go on";
/// How they end.
const UNLESS: &str = "Unless another unit, or another part of one of them, ends one of these waits, they never go on.";

/// The jobs of a circle, each of which waits for the next one, with what they wait for; the one with the lowest address
/// is first. Their blocks may be free, or belong to other jobs.
type Circle = Vec<(JobPtr, Reason)>;

/// The circles that were found, so that each is reported once. Owned by the monitor.
#[derive(Default)]
pub(crate) struct Circles {
    /// What the last check found when it was quiet.
    quiet: Vec<Circle>,
    /// What the last sample found, and was not reported yet.
    seen: Vec<Circle>,
    /// What the last sample found, and was reported.
    reported: Vec<Circle>,
}

impl CircleWatch for Circles {
    fn check_when_quiet(&mut self, shared: &Shared) {
        let metrics = Metrics::without_queues(shared);
        if metrics.timers > 0 || metrics.runnable > 0 || metrics.processes > MOST_PROCESSES {
            self.quiet.retain(still_stands);
            return;
        }
        // No other job is in a cycle.
        let depends = |job: &JobRef| job.header().state.is_waiting() && holder_of(job).is_some();
        let depending = shared.jobs_that(depends);
        let graph = Graph::among(&depending, |_| true);
        let mut now = Vec::new();
        for cycle in &graph.cycles {
            let nodes = || cycle.iter().map(|&index| &graph.waiting[index]);
            // A job that has just left its wait has no reason: then this is no circle.
            let links = nodes().map(|node| Some((node.job.ptr(), node.job.header().waits_for()?)));
            let Some(circle) = links.collect::<Option<Circle>>() else {
                continue;
            };
            let circle = from_lowest(circle);
            if !self.is_reported(&circle) {
                let begins = match shared.reactor.is_waited_for() {
                    true => BESIDE_DESCRIPTORS,
                    false => WHEN_QUIET,
                };
                report(nodes().map(WaitingNode::named).collect(), begins);
            }
            now.push(circle);
        }
        self.quiet = now;
    }

    fn check(&mut self, shared: &Shared, depending: Vec<DependingJob>) {
        let found = circles(depending);
        self.quiet.retain(still_stands);
        self.reported.retain(|circle| found.contains(circle));
        let before = std::mem::take(&mut self.seen);
        for circle in found {
            if self.is_reported(&circle) {
                continue;
            }
            match before.contains(&circle) && report_if_it_stands(shared, &circle) {
                true => self.reported.push(circle),
                false => self.seen.push(circle),
            }
        }
    }

    fn must_recheck(&self) -> bool {
        !self.seen.is_empty()
    }
}

impl Circles {
    fn is_reported(&self, circle: &Circle) -> bool {
        self.quiet.contains(circle) || self.reported.contains(circle)
    }
}

fn address(job: JobPtr) -> usize {
    job.as_raw().addr().get()
}

/// The same circle, as [`Circle`] says.
fn from_lowest(mut circle: Circle) -> Circle {
    let lowest = (0..circle.len()).min_by_key(|&index| address(circle[index].0));
    circle.rotate_left(lowest.unwrap_or(0));
    circle
}

/// The circles among these jobs. Thousands may wait for one lock, but few hold one while they wait.
fn circles(mut depending: Vec<DependingJob>) -> Vec<Circle> {
    let holders: HashSet<usize> = depending.iter().map(|it| it.holder).collect();
    depending.retain(|it| holders.contains(&address(it.job)));
    let indices = depending.iter().enumerate();
    let index_of: HashMap<usize, usize> = indices
        .map(|(index, it)| (address(it.job), index))
        .collect();
    let edges: Vec<Option<usize>> = depending
        .iter()
        .map(|it| index_of.get(&it.holder).copied())
        .collect();
    let link = |index: usize| (depending[index].job, depending[index].reason);
    let found = cycles(&edges).into_iter();
    found
        .map(|cycle| from_lowest(cycle.into_iter().map(link).collect()))
        .collect()
}

/// Whether each job of a circle that was reported is in its wait, as far as this tells: one may have begun it again.
fn still_stands(circle: &Circle) -> bool {
    circle.iter().all(|(job, reason)| {
        let job = pinned::job_in(job.as_raw().cast());
        let waits = |job: &JobRef| {
            job.header().state.is_waiting() && job.header().waits_for() == Some(*reason)
        };
        let waits = job.as_ref().is_some_and(waits);
        // The monitor may have the last reference.
        report::without_user_code(|| drop(job));
        waits
    })
}

/// Reports the circle, if its jobs still wait for each other.
fn report_if_it_stands(shared: &Shared, circle: &Circle) -> bool {
    let found = circle
        .iter()
        .filter_map(|(job, _)| pinned::job_in(job.as_raw().cast()));
    let jobs: Vec<JobRef> = found.collect();
    // Each job, and the one for which it waits.
    let links = || jobs.iter().zip(jobs.iter().cycle().skip(1));
    let waits = |(job, next): (&JobRef, &JobRef)| {
        let holder = only_holder_of(job).map(|(_, holder)| holder);
        job.header().runtime() == shared.id() && holder == Some(address(next.ptr()))
    };
    let stands = jobs.len() == circle.len() && (0..CHECKS).all(|_| links().all(waits));
    if stands {
        let named = links().map(|(job, next)| {
            let holder = Some(next);
            WaitingNode { job, holder }.named()
        });
        report(named.collect(), BESIDE_OTHERS);
    }
    // The monitor may have the last references.
    report::without_user_code(|| drop(jobs));
    stands
}

fn report(jobs: Vec<LateWaiting>, begins: &'static str) {
    report::cycle(jobs[0].job.clone(), begins, move || {
        let jobs: Vec<_> = jobs.into_iter().map(LateWaiting::now).collect();
        format!("{}. {UNLESS}", sentence(jobs.iter().collect()))
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use weald_sync::reason::Kind;

    use super::*;
    use crate::job::testing;

    #[test]
    fn a_circle_in_the_blocks_of_a_reported_one_is_another_and_one_that_has_ended_is_forgotten() {
        let jobs = [testing::job(), testing::job()];
        let circle = |object: &u64| {
            let links = jobs
                .iter()
                .map(|job| (job.ptr(), Reason::new(Kind::Mutex, object)));
            from_lowest(links.collect())
        };
        let locks = [0, 0];
        let [former, later] = [0, 1].map(|index| circle(&locks[index]));
        let mut circles = Circles::default();
        circles.quiet.push(former.clone());
        assert!(circles.is_reported(&former));
        assert!(!circles.is_reported(&later));
        // The jobs wait for nothing.
        circles.quiet.retain(still_stands);
        assert!(!circles.is_reported(&former));
    }
}
