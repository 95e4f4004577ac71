//! Late names: a job's name as it is known at once, and the description that is asked for the rest of it.
//!
//! A description is user code. It may panic, or take long, so neither the monitor nor a thread that holds a lock of the
//! kernel may ask it. They take a [`LateName`], which is plain data, and it is completed ([`LateName::now`]) on the
//! reporting thread, or by a caller that was asked for names.

use std::{
    fmt,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    sync::Arc,
};

use crate::report::{JobName, MAIN_FUTURE, payload};

/// Names a job that does different things over time; see [`Spawn::described_by`](crate::Spawn::described_by).
pub trait Describe: fmt::Debug + Send + Sync + 'static {
    /// The name of what the job does at this moment, as reports print it.
    ///
    /// Called when something is reported, some time after it happened, and when somebody asks for the name; on any
    /// thread, while the job may be running. It must not wait or call the runtime. If it panics, the job has the name
    /// that it was given at spawn.
    fn name(&self) -> String;

    /// The job is about to wait with its stack, or has blocked or computed for too long. If the job has buffered work
    /// to do more of it at once, that work should be flushed now: nobody knows when the job continues.
    ///
    /// Called on any thread, while the job may be running, and some time after a job was found to block or compute. It
    /// must not wait or call the runtime.
    fn takes_long(&self) {}
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub(crate) struct LateName {
    known: JobName,
    description: Option<Arc<dyn Describe>>,
}

impl LateName {
    pub(crate) fn new(known: JobName, description: Option<Arc<dyn Describe>>) -> LateName {
        LateName { known, description }
    }

    /// The future of `block_on`, which was called at `site` outside of jobs.
    pub(crate) fn of_main_future(
        site: &'static Location<'static>,
        type_name: &'static str,
    ) -> LateName {
        let known = JobName {
            name: Some(MAIN_FUTURE.to_owned()),
            type_name,
            site,
            waits_for: None,
        };
        LateName::new(known, None)
    }

    /// Where the job was spawned.
    pub(crate) fn site(&self) -> &'static Location<'static> {
        self.known.site
    }

    /// Whether there is a description to ask.
    pub(crate) fn is_described(&self) -> bool {
        self.description.is_some()
    }

    /// The name without what the description says.
    pub(crate) fn known(&self) -> &JobName {
        &self.known
    }

    /// The whole name, including what the description says. Runs user code.
    pub(crate) fn now(self) -> JobName {
        let mut name = self.known;
        if let Some(description) = self.description {
            let asked = catch_unwind(AssertUnwindSafe(|| description.name()));
            name.name = asked.map_err(payload::discard).ok().or(name.name);
        }
        name
    }
}

/// The first of several jobs, and how many there are.
#[derive(Debug)]
pub(crate) struct LateNames {
    first: Vec<LateName>,
    all: usize,
}

impl LateNames {
    /// At most `most` of the jobs are named.
    pub(crate) fn of(names: impl ExactSizeIterator<Item = LateName>, most: usize) -> LateNames {
        let all = names.len();
        LateNames {
            first: names.take(most).collect(),
            all,
        }
    }

    /// These jobs, and as many others that there are `all` in all.
    pub(crate) fn of_first(first: Vec<LateName>, all: usize) -> LateNames {
        let all = all.max(first.len());
        LateNames { first, all }
    }

    /// No jobs.
    pub(crate) fn none() -> LateNames {
        LateNames::of([].into_iter(), 0)
    }

    /// How many jobs there are.
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    /// The names in one line, and how many there are beyond. Runs user code.
    pub(crate) fn now(self) -> String {
        let more = self.all - self.first.len();
        let first = self.first.into_iter().map(|name| name.now().to_string());
        let first = first.collect::<Vec<_>>().join("; ");
        match more {
            0 => first,
            more => format!("{first}; and {more} more"),
        }
    }
}
