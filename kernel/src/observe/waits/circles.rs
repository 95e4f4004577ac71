//! Reports of jobs that wait for each other, which nobody asks for. Called by the monitor.
//!
//! *When nothing can run*: every worker sleeps, and no timer is pending. Then each cycle of the wait-for graph is a
//! deadlock.
//!
//! *While others go on*: a sample of all jobs ([`depending`](crate::scheduler::threads::queue_watch::depending)) finds the waits one
//! after the other, so a circle in it may be none: each wait may have ended before the next one was found. A circle that
//! two samples in a row have found is looked at again, several times at once. If it stands then, too, it is reported. A
//! wait that may end for another reason, such as a time limit, is not in the sample. Nor is one of several waits that a
//! job has at the same time: another part of the job, which goes on, may hold what this one waits for.
//!
//! Each circle is reported once.

use std::collections::{HashMap, HashSet};

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

/// With more processes than this the monitor does not look for cycles when the runtime falls idle: it would walk
/// through all jobs each time. [`Runtime::waits`](crate::Runtime::waits) has no such limit.
const MOST_PROCESSES: usize = 100_000;

/// How often in a row a circle must stand that two samples have found. Were it none, a job would have to leave its wait
/// and begin it again between any two of these looks.
const LOOKS: usize = 8;

/// How the reports begin.
const WHEN_QUIET: &str = "nothing can run any longer";
const BESIDE_OTHERS: &str = "a deadlock, while others go on";

/// The jobs of a circle, each of which waits for the next one; the one with the lowest address is first. Their blocks may
/// be free, or belong to other jobs.
type Circle = Vec<JobPtr>;

/// The circles that were found, so that each is reported once. Owned by the monitor.
#[derive(Default)]
pub(crate) struct Circles {
    /// What the last look found when nothing could run.
    quiet: Vec<Circle>,
    /// What the last sample found, and was not reported yet.
    seen: Vec<Circle>,
    /// What the last sample found, and was reported.
    reported: Vec<Circle>,
}

impl CircleWatch for Circles {
    fn look_when_quiet(&mut self, shared: &Shared) {
        let metrics = Metrics::without_queues(shared);
        if metrics.timers > 0 || metrics.runnable > 0 || metrics.processes > MOST_PROCESSES {
            return;
        }
        // No other job is in a cycle.
        let depends = |job: &JobRef| job.header().state.is_waiting() && holder_of(job).is_some();
        let depending = shared.jobs_that(depends);
        let graph = Graph::among(&depending, |_| true);
        let mut now = Vec::new();
        for cycle in &graph.cycles {
            let nodes = || cycle.iter().map(|&index| &graph.waiting[index]);
            let circle = from_lowest(nodes().map(|node| node.job.ptr()).collect());
            if !self.is_reported(&circle) {
                report(nodes().map(WaitingNode::named).collect(), WHEN_QUIET);
            }
            now.push(circle);
        }
        self.quiet = now;
    }

    fn look_at(&mut self, shared: &Shared, depending: Vec<DependingJob>) {
        let found = circles(depending);
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

    fn must_look_again(&self) -> bool {
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
    let lowest = (0..circle.len()).min_by_key(|&index| address(circle[index]));
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
    let jobs = |cycle: Vec<usize>| cycle.into_iter().map(|index| depending[index].job);
    let found = cycles(&edges).into_iter();
    found
        .map(|cycle| from_lowest(jobs(cycle).collect()))
        .collect()
}

/// Reports the circle, if its jobs still wait for each other.
fn report_if_it_stands(shared: &Shared, circle: &Circle) -> bool {
    let found = circle
        .iter()
        .filter_map(|job| pinned::job_in(job.as_raw().cast()));
    let jobs: Vec<JobRef> = found.collect();
    // Each job, and the one for which it waits.
    let links = || jobs.iter().zip(jobs.iter().cycle().skip(1));
    let waits = |(job, next): (&JobRef, &JobRef)| {
        job.header().runtime() == shared.id() && only_holder_of(job) == Some(address(next.ptr()))
    };
    let stands = jobs.len() == circle.len() && (0..LOOKS).all(|_| links().all(waits));
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
        sentence(jobs.iter().collect())
    });
}
