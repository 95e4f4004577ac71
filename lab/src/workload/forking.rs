//! Shared by the workloads that fork and join: Weald as a system that can fork, and their figures.
//!
//! The forking program runs inside a process of a runtime of its own. Its serial forms run on the calling
//! thread, which does not belong to the runtime.

use std::time::Duration;

use weald::process::Inbox;
use weald::{Runtime, fork};

use super::host::{build, inside};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::fork::Fork;
use crate::programs::measure::{ForkSystem, Program, forking, never_forking};

/// The metrics that explain the others, for all of these workloads.
pub(super) const EXPLAINING: &[&str] = &["speedup", "speedup_outlined", "ms_serial", "ms_outlined"];

/// A runtime with its workers.
pub(super) struct Weald {
    pub(super) runtime: Runtime,
    pub(super) workers: usize,
}

/// Its forks.
pub(super) enum Joins {}

impl Fork for Joins {
    type Scope<'a> = ();

    #[inline]
    fn join<A, B, RA, RB>(_: &mut (), a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut ()) -> RA + Send,
        B: FnOnce(&mut ()) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        fork::join(|| a(&mut ()), || b(&mut ()))
    }
}

impl ForkSystem for Weald {
    type Forks = Joins;

    fn workers(&self) -> usize {
        self.workers
    }

    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut ()) -> T + Send + 'static,
    {
        let done = inside(&self.runtime, move |inbox: Inbox<()>| async move {
            drop(inbox);
            Ok(work(&mut ()))
        });
        done.map_err(|error| error.to_string())
    }
}

/// Measures a program; `None` is a program that cannot have the requested size.
pub(super) fn measured<P: Program>(
    params: &Params,
    program: Option<P>,
) -> Result<Vec<Metric>, Error> {
    let program = program
        .ok_or_else(|| Error::Usage(format!("This program cannot have the size {params}.")))?;
    let pause = match params.get("pause_us") {
        Some(_) => u64::try_from(params.count("pause_us")?).unwrap_or(u64::MAX),
        None => 0,
    };
    let pause = Duration::from_micros(pause);
    let figures = match params.text("forking")? {
        "never" => never_forking(program, pause),
        "yes" => {
            let weald = Weald {
                runtime: build(params, 1)?,
                workers: super::definition::workers(params)?,
            };
            forking(&weald, program, pause)
        }
        other => {
            let sentence = format!("forking={other} is neither never nor yes.");
            return Err(Error::Usage(sentence));
        }
    };
    metrics(figures)
}

/// Figures as metrics.
pub(super) fn metrics(figures: Result<Vec<(&str, f64)>, String>) -> Result<Vec<Metric>, Error> {
    let figures = figures.map_err(Error::workload)?;
    let metric = |(name, value)| Metric::new(name, value);
    Ok(figures.into_iter().map(metric).collect())
}
