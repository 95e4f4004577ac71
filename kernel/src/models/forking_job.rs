//! A model of the job that runs a root fork: it is not freed while another thread reads it.

#![allow(unsafe_code)]

use std::{ptr::NonNull, sync::Arc};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::fork::forking_job::ForkingJob;

/// Whether a made-up job is alive. A read that is not ordered with the write of the end is a data race.
type IsAlive = Cell<bool>;

/// A root fork ends, and its job is freed, while another thread reads the job. Then another job begins a root fork at
/// the same place.
#[test]
fn the_end_of_a_root_fork_against_a_reader() {
    loom::model(|| {
        let forking = Arc::new(ForkingJob::<IsAlive>::new());
        let jobs = Arc::new([Cell::new(true), Cell::new(true)]);
        let reader = {
            let (forking, _jobs) = (forking.clone(), jobs.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    // SAFETY: `_jobs` keeps the cells, which say whether the jobs are alive.
                    let is_alive = forking.with(|job| unsafe { job.as_ref() }.get());
                    assert_ne!(is_alive, Some(false), "the job has been freed");
                }
            })
        };
        for job in jobs.iter() {
            forking.begin(Some(NonNull::from(job)));
            forking.end();
            job.set(false);
        }
        reader.join().unwrap();
    });
}
