//! The wait-for graph: what each waiting job waits for, and the cycles in the graph.
//!
//! A job notes what it waits for ([`Reason`]), and a lock with waiters knows its holder. So a job that waits for a
//! lock, for the end of another job or for its answer to a call has an edge to the job that can end the wait. The jobs
//! of a cycle wait for ever, unless one of them is cancelled or has a deadline, another part of one of them ends a
//! wait, or a guard or a reply was passed on.

pub(crate) mod circles;

use std::{collections::HashMap, fmt, panic::Location, time::Duration};

use weald_sync::reason::{Kind, Reason};

use crate::{
    job::JobRef,
    report::{self, JobName, LateName},
    scheduler::{
        threads::{held_up, queue_watch::depending::holder_of},
        workers::shared::Shared,
    },
};

/// So many jobs that wait for a spare thread are named: they are looked at under the lock of their queue.
const MOST_HELD_BACK: usize = 1000;

/// What the jobs of a runtime wait for, at about one moment; see
/// [`Runtime::waits`](crate::Runtime::waits).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Waits {
    /// The waiting jobs.
    pub jobs: Vec<WaitingJob>,
    /// The cycles of the wait-for graph, as indices into `jobs`: each job of a cycle waits for the next one, and
    /// the last for the first.
    pub cycles: Vec<Vec<usize>>,
    /// Jobs that are runnable, and wait only for their OS thread, which another job holds, or the future of
    /// `block_on`.
    pub held_up: Vec<HeldUpJob>,
    /// Jobs that wait for nothing, and so have not seen yet that they were asked to end.
    pub pending_kills: Vec<UnendedJob>,
    /// Runnable jobs of kinds that block, which wait for a spare thread; parts of forks are among them. The first
    /// thousand: [`Metrics::runnable`](crate::Metrics::runnable) counts all.
    pub held_back_jobs: Vec<JobName>,
    /// Forks with parts that no further thread may begin at present, because as many forks compute as there are
    /// workers, or because parts of that line block and no spare thread is free for another one.
    pub held_back_forks: Vec<HeldBackParts>,
}

/// A fork with parts that no further thread may begin at present. Its own thread runs them after the part that it runs
/// now; those of a scope, whichever of the threads that run its parts is free first. A scope is one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldBackParts {
    /// Where the fork was called.
    pub site: &'static Location<'static>,
    /// The job that forked, or that runs the part which did, or one of those that run the parts of a scope; none on a
    /// thread outside of the runtime.
    pub by: Option<JobName>,
}

impl fmt::Display for HeldBackParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldBackParts { site, by } = self;
        write!(f, "parts of the fork at {site}")?;
        if let Some(by) = by {
            write!(f, ", which is in {by},")?;
        }
        f.write_str(
            " wait for a thread that runs it, because as many forks compute as there are workers, or because such \
             parts block and no spare thread is free",
        )
    }
}

/// A job that was asked to end, by a kill or a cancel, and has not come to a wait since: it blocks, computes or is
/// queued. It ends at its next wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnendedJob {
    /// The job.
    pub job: JobName,
    /// How long the kill has been pending, at least. Known if the job has blocked or computed for so long that its
    /// thread was detached from its worker.
    pub pending: Option<Duration>,
}

impl fmt::Display for UnendedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pending {
            Some(pending) => write!(
                f,
                "{} has not waited since it was asked to end; the kill has been pending for {pending:.1?}",
                self.job
            ),
            None => write!(
                f,
                "{} was asked to end, and is about to run or runs",
                self.job
            ),
        }
    }
}

/// A job that is runnable, but pinned to an OS thread that another job holds, or the future of `block_on`, by blocking
/// or computing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldUpJob {
    /// The job that stands still.
    pub job: JobName,
    /// The job that holds the thread, or the future of `block_on`, which is named so, with the line of the call.
    pub by: JobName,
}

impl fmt::Display for HeldUpJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldUpJob { job, by } = self;
        write!(f, "{job} is held up by {by}, which holds their OS thread")
    }
}

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingJob {
    /// The job.
    pub job: JobName,
    /// What the job waits for; none if the future does not note it, such as that of another library.
    pub reason: Option<Reason>,
    /// The job that can end the wait, if it is known: the job that holds the mutex or the write lock, whose end is
    /// awaited, or that was called. Readers, and threads outside of jobs, are not named.
    pub holder: Option<JobName>,
}

impl Waits {
    pub(crate) fn of(shared: &Shared) -> Waits {
        // The caller may have the last reference to a job that ends meanwhile.
        report::without_user_code(|| Waits::collect(shared))
    }

    fn collect(shared: &Shared) -> Waits {
        let live = match shared.is_driven() {
            true => shared.live_jobs(),
            false => shared.jobs_that(|_| true),
        };
        let mut waits = Waits::among(&live, |job| job.header().state.is_waiting());
        waits.pending_kills = pending_kills(shared, &live);
        let held_back = shared.quarantine.first(MOST_HELD_BACK);
        let names = held_back.iter().map(|job| JobName::of(job.header()));
        waits.held_back_jobs = names.collect();
        waits.held_back_forks = held_back_forks(shared);
        for held_up in held_up::all(shared) {
            let by = held_up.by.now();
            let name = |job: &JobRef| HeldUpJob {
                job: JobName::of(job.header()),
                by: by.clone(),
            };
            waits.held_up.extend(held_up.jobs.iter().map(name));
        }
        waits
    }

    /// What the jobs of `live` that `is_waiting` selects wait for.
    pub(crate) fn among(live: &[JobRef], is_waiting: impl Fn(&JobRef) -> bool) -> Waits {
        let graph = Graph::among(live, is_waiting);
        let jobs = graph.waiting.iter();
        Waits {
            jobs: jobs.map(|waiting| waiting.named().now()).collect(),
            cycles: graph.cycles,
            held_up: Vec::new(),
            pending_kills: Vec::new(),
            held_back_jobs: Vec::new(),
            held_back_forks: Vec::new(),
        }
    }

    /// One sentence for each cycle.
    fn sentences(&self) -> impl Iterator<Item = String> {
        let jobs = |cycle: &Vec<usize>| cycle.iter().map(|&index| &self.jobs[index]).collect();
        self.cycles.iter().map(move |cycle| sentence(jobs(cycle)))
    }
}

fn held_back_forks(shared: &Shared) -> Vec<HeldBackParts> {
    let forks = shared.forks.held_back(shared).into_iter();
    let named = forks.map(|fork| HeldBackParts {
        site: fork.site,
        by: fork.job.map(|job| JobName::of(job.header())),
    });
    named.collect()
}

fn pending_kills(shared: &Shared, live: &[JobRef]) -> Vec<UnendedJob> {
    let on_detached = shared.detached.pending_kills();
    let unended = live.iter().filter(|job| {
        let state = &job.header().state;
        state.is_cancelled() && !state.is_waiting() && !job.header().is_being_ended()
    });
    let named = unended.map(|job| {
        let known = on_detached.iter().find(|kill| kill.job.ptr() == job.ptr());
        UnendedJob {
            job: JobName::of(job.header()),
            pending: known.map(|kill| kill.pending),
        }
    });
    named.collect()
}

/// The jobs of a cycle, in one sentence.
pub(super) fn sentence(cycle: Vec<&WaitingJob>) -> String {
    let links: Vec<String> = cycle.iter().map(ToString::to_string).collect();
    match cycle.len() {
        1 => format!("a job waits for itself: {}", links.concat()),
        n => format!("{n} jobs wait for each other: {}", links.join("; ")),
    }
}

/// The wait-for graph among some jobs. Making it runs no user code.
pub(super) struct Graph<'a> {
    pub(super) waiting: Vec<WaitingNode<'a>>,
    /// As [`Waits::cycles`].
    pub(super) cycles: Vec<Vec<usize>>,
}

/// A job that waits, and the one that can end the wait, if it is known.
pub(super) struct WaitingNode<'a> {
    pub(super) job: &'a JobRef,
    pub(super) holder: Option<&'a JobRef>,
}

/// A [`WaitingJob`] whose descriptions were not asked yet.
pub(super) struct LateWaiting {
    pub(super) job: LateName,
    holder: Option<LateName>,
}

impl WaitingNode<'_> {
    pub(super) fn named(&self) -> LateWaiting {
        LateWaiting {
            job: LateName::of(self.job.header()),
            holder: self.holder.map(|holder| LateName::of(holder.header())),
        }
    }
}

impl LateWaiting {
    pub(super) fn now(self) -> WaitingJob {
        WaitingJob {
            reason: self.job.known().waits_for,
            job: self.job.now(),
            holder: self.holder.map(LateName::now),
        }
    }
}

impl<'a> Graph<'a> {
    pub(super) fn among(live: &'a [JobRef], is_waiting: impl Fn(&JobRef) -> bool) -> Graph<'a> {
        let addresses: HashMap<usize, &JobRef> =
            live.iter().map(|job| (address(job), job)).collect();
        let waiting: Vec<&JobRef> = live.iter().filter(|job| is_waiting(job)).collect();
        let index_of: HashMap<usize, usize> = waiting
            .iter()
            .enumerate()
            .map(|(index, job)| (address(job), index))
            .collect();
        let holders: Vec<Option<usize>> = waiting.iter().map(|job| holder_of(job)).collect();
        let edges: Vec<Option<usize>> = holders
            .iter()
            .map(|holder| holder.and_then(|address| index_of.get(&address).copied()))
            .collect();
        let nodes = waiting.into_iter().zip(holders).map(|(job, holder)| {
            let holder = holder.and_then(|address| addresses.get(&address).copied());
            WaitingNode { job, holder }
        });
        Graph {
            waiting: nodes.collect(),
            cycles: cycles(&edges),
        }
    }
}

impl fmt::Display for WaitingJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Some(reason) => write!(f, "{} waits for {reason}", self.job)?,
            None => write!(f, "{} waits for something unnamed", self.job)?,
        }
        let Some(holder) = &self.holder else {
            return Ok(());
        };
        match self.reason.map(|reason| reason.kind) {
            Some(Kind::Mutex | Kind::RwLock) => write!(f, ", which {holder} has locked"),
            Some(Kind::Call) => write!(f, ", made to {holder}"),
            _ => write!(f, ", that of {holder}"),
        }
    }
}

fn address(job: &JobRef) -> usize {
    job.ptr().as_raw().as_ptr().addr()
}

/// The cycles of a graph in which each node has at most one outgoing edge.
pub(super) fn cycles(edges: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut walk_of = vec![0; edges.len()];
    let mut cycles = Vec::new();
    for start in 0..edges.len() {
        let walk = start + 1;
        let mut node = Some(start);
        // Numbers the nodes of this walk until it ends, or meets a node that has a number.
        while let Some(here) = node.filter(|here| walk_of[*here] == 0) {
            walk_of[here] = walk;
            node = edges[here];
        }
        let Some(first) = node.filter(|here| walk_of[*here] == walk) else {
            continue;
        };
        let next = |here: &usize| edges[*here].filter(|next| *next != first);
        cycles.push(std::iter::successors(Some(first), next).collect());
    }
    cycles
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for waiting in &self.jobs {
            writeln!(f, "{waiting}")?;
        }
        for held_up in &self.held_up {
            writeln!(f, "{held_up}")?;
        }
        for kill in &self.pending_kills {
            writeln!(f, "{kill}")?;
        }
        for job in &self.held_back_jobs {
            writeln!(
                f,
                "{job} waits for a spare thread, because others of its kind block"
            )?;
        }
        for parts in &self.held_back_forks {
            writeln!(f, "{parts}")?;
        }
        for sentence in self.sentences() {
            writeln!(f, "{sentence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::cycles;

    #[test]
    fn each_cycle_is_found_once() {
        assert_eq!(cycles(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(cycles(&[None, Some(0)]), Vec::<Vec<usize>>::new());
        assert_eq!(cycles(&[Some(0)]), [[0]]);
        assert_eq!(cycles(&[Some(1), Some(0), Some(0)]), [[0, 1]]);
        let two = cycles(&[Some(1), Some(2), Some(1), Some(4), Some(3), None]);
        assert_eq!(two, [[1, 2], [3, 4]]);
    }
}
