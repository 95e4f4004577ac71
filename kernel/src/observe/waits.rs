//! Who waits for what: a picture of all jobs that wait, and the circles in it.
//!
//! A job notes what it waits for ([`Reason`]), and a lock that is waited for knows who holds it; so there is
//! an arrow from each job that waits for a lock or for another job's end to who can end that wait. Jobs in a
//! circle of such arrows wait for ever, unless one of them is cancelled or has a deadline.

use std::{collections::HashMap, fmt};

use weald_sync::{
    holders,
    reason::{Kind, Reason},
};

use crate::{
    job::JobRef, observe::metrics::Metrics, report::JobName, scheduler::workers::shared::Shared,
};

/// With more processes than this the monitor does not look for circles by itself: it would walk through
/// all of them each time the runtime falls idle. Whoever asks gets them.
const MOST_LOOKED_AT: usize = 100_000;

/// What the jobs of a runtime wait for, at about one moment; see [`Runtime::waits`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Waits {
    /// The jobs that wait.
    pub jobs: Vec<WaitingJob>,
    /// Those that wait for each other in a circle: each by its place in `jobs`, and each waits for the
    /// next one, the last for the first.
    pub circles: Vec<Vec<usize>>,
}

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingJob {
    /// Which job.
    pub job: JobName,
    /// What for; none if it did not say so (a future of a foreign library).
    pub reason: Option<Reason>,
    /// Who can end the wait, if that is known: the job that holds a mutex or writes under a read-write
    /// lock, or whose end it waits for. A plain thread and readers are not named.
    pub holder: Option<JobName>,
}

impl Waits {
    pub(crate) fn of(shared: &Shared) -> Waits {
        Waits::among(&shared.live_jobs(), |job| job.header().state.is_waiting())
    }

    /// What those of the `live` jobs wait for that wait.
    pub(crate) fn among(live: &[JobRef], is_waiting: impl Fn(&JobRef) -> bool) -> Waits {
        let addresses: HashMap<usize, &JobRef> =
            live.iter().map(|job| (address(job), job)).collect();
        let waiting: Vec<&JobRef> = live.iter().filter(|job| is_waiting(job)).collect();
        let spare_places: HashMap<usize, usize> = waiting
            .iter()
            .enumerate()
            .map(|(place, job)| (address(job), place))
            .collect();
        let holders: Vec<Option<usize>> = waiting.iter().map(|job| holder_of(job)).collect();
        let arrows: Vec<Option<usize>> = holders
            .iter()
            .map(|holder| holder.and_then(|address| spare_places.get(&address).copied()))
            .collect();
        let jobs = waiting.iter().zip(&holders).map(|(job, holder)| {
            let holder = holder.and_then(|address| addresses.get(&address));
            let name = JobName::of(job.header());
            WaitingJob {
                reason: name.waits_for,
                job: name,
                holder: holder.map(|holder| JobName::of(holder.header())),
            }
        });
        Waits {
            jobs: jobs.collect(),
            circles: circles(&arrows),
        }
    }

    /// A sentence for each circle.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = String> {
        self.circles.iter().map(|circle| {
            let links: Vec<String> = circle
                .iter()
                .map(|&place| self.jobs[place].to_string())
                .collect();
            match circle.len() {
                1 => format!("a job waits for itself: {}", links.concat()),
                n => format!("{n} jobs wait for each other: {}", links.join("; ")),
            }
        })
    }
}

impl fmt::Display for WaitingJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Some(reason) => write!(f, "{} waits for {reason}", self.job)?,
            None => write!(f, "{} waits for something unnamed", self.job)?,
        }
        match &self.holder {
            Some(holder) => write!(f, ", which depends on {holder}"),
            None => Ok(()),
        }
    }
}

fn address(job: &JobRef) -> usize {
    job.ptr().as_raw().as_ptr().addr()
}

/// The address of the job that can end the wait of `job`, if that is known.
fn holder_of(job: &JobRef) -> Option<usize> {
    let reason = job.header().waits_for()?;
    match reason.kind {
        Kind::End => Some(reason.object),
        Kind::Mutex | Kind::RwLock => holders::holder(reason.object),
        _ => None,
    }
}

/// The circles of a graph in which each place has at most one arrow.
fn circles(arrows: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut walk_of = vec![0; arrows.len()];
    let mut circles = Vec::new();
    for start in 0..arrows.len() {
        let walk = start + 1;
        let mut place = Some(start);
        // Marks the places of this walk until it ends, or meets a marked place.
        while let Some(here) = place.filter(|here| walk_of[*here] == 0) {
            walk_of[here] = walk;
            place = arrows[here];
        }
        let Some(first) = place.filter(|here| walk_of[*here] == walk) else {
            continue;
        };
        let next = |here: &usize| arrows[*here].filter(|next| *next != first);
        circles.push(std::iter::successors(Some(first), next).collect());
    }
    circles
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for waiting in &self.jobs {
            writeln!(f, "{waiting}")?;
        }
        for sentence in self.sentences() {
            writeln!(f, "{sentence}")?;
        }
        Ok(())
    }
}

/// The circles that were reported, so that each is told once. Owned by the monitor.
#[derive(Default)]
pub(crate) struct Told(Vec<Vec<JobName>>);

/// Called by the monitor when every worker sleeps: reports circles, if no timer is pending that could end a
/// wait.
pub(crate) fn report_circles(shared: &Shared, told: &mut Told) {
    let metrics = Metrics::of(shared);
    if metrics.timers > 0 || metrics.runnable > 0 || metrics.processes > MOST_LOOKED_AT {
        return;
    }
    let waits = Waits::of(shared);
    let now: Vec<Vec<JobName>> = waits
        .circles
        .iter()
        .map(|circle| {
            circle
                .iter()
                .map(|&place| waits.jobs[place].job.clone())
                .collect()
        })
        .collect();
    for (circle, sentence) in now.iter().zip(waits.sentences()) {
        if !told.0.contains(circle) {
            tracing::error!(target: "weald::waits", "nothing can run any more: {sentence}");
        }
    }
    told.0 = now;
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn circles_are_found_once_each() {
        assert_eq!(circles(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(circles(&[None, Some(0)]), Vec::<Vec<usize>>::new());
        assert_eq!(circles(&[Some(0)]), [[0]]);
        assert_eq!(circles(&[Some(1), Some(0), Some(0)]), [[0, 1]]);
        let two = circles(&[Some(1), Some(2), Some(1), Some(4), Some(3), None]);
        assert_eq!(two, [[1, 2], [3, 4]]);
    }
}
