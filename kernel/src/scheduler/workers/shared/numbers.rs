//! The numbers of runtimes: which runtime has which, and which one a new runtime gets.
//!
//! A number is used again once its runtime is gone. But jobs may outlive their runtime: a shutdown leaves behind what
//! holds a thread at its deadline, and such a job may wait once more, with its own stack, when that thread has ended.
//! If its number went to another runtime meanwhile, that one would take the job for its own: its shutdown would wait
//! for the job, perhaps for ever, and list it. So the number of a runtime that has left jobs is used again only when a
//! walk over all jobs finds none of them. The walk is made when a runtime starts, and only if there is such a number.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
};

use crate::job::{REPEATS, walked};

/// All numbers that were used for runtimes, which are of type `R`; in order. Number 0 is never used.
pub(super) struct RuntimeNumbers<R>(RwLock<Vec<Number<R>>>);

/// A number that was used.
struct Number<R> {
    /// The last runtime that had it.
    runtime: Weak<R>,
    /// The number of that runtime with its bit [`REPEATS`], if it has left jobs that may not have ended.
    left_jobs: Option<u16>,
}

impl<R> Number<R> {
    fn of(runtime: Weak<R>) -> Number<R> {
        Number {
            runtime,
            left_jobs: None,
        }
    }

    fn is_gone(&self) -> bool {
        self.runtime.strong_count() == 0
    }
}

/// The highest number, without the bit [`REPEATS`].
const MAX_ID: usize = (1 << 15) - 1;

/// Every number of a runtime is in use.
#[derive(Debug)]
pub(crate) struct TooManyRuntimes;

/// The place of a runtime's number among all.
fn index(id: u16) -> usize {
    usize::from(id & !REPEATS)
}

impl<R> RuntimeNumbers<R> {
    pub(super) const fn new() -> RuntimeNumbers<R> {
        RuntimeNumbers(RwLock::new(Vec::new()))
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Number<R>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Number<R>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime with this number, if it still exists.
    pub(super) fn find(&self, id: u16) -> Option<Arc<R>> {
        self.read().get(index(id))?.runtime.upgrade()
    }

    /// Gives a free number to the runtime that `make` creates.
    pub(super) fn assign(
        &self,
        make: impl FnOnce(u16) -> Arc<R>,
    ) -> Result<Arc<R>, TooManyRuntimes> {
        self.check_left_jobs();
        let mut numbers = self.write();
        if numbers.is_empty() {
            numbers.push(Number::of(Weak::new()));
        }
        let mut used = (1..numbers.len()).map(|id| (id, &numbers[id]));
        let free = used.find(|(_, number)| number.is_gone() && number.left_jobs.is_none());
        let id = free.map_or(numbers.len(), |(id, _)| id);
        if id > MAX_ID {
            return Err(TooManyRuntimes);
        }
        let shared = make(u16::try_from(id).expect("the number is below its maximum"));
        let number = Number::of(Arc::downgrade(&shared));
        match numbers.get_mut(id) {
            Some(place) => *place = number,
            None => numbers.push(number),
        }
        Ok(shared)
    }

    /// The runtime with this number leaves jobs. Called by its shutdown, which holds the runtime.
    pub(super) fn note_left_jobs(&self, id: u16) {
        if let Some(number) = self.write().get_mut(index(id)) {
            number.left_jobs = Some(id);
        }
    }

    /// Frees the numbers of those runtimes that are gone, and whose last job has ended by now.
    fn check_left_jobs(&self) {
        let left_by_gone = |number: &Number<R>| {
            let id = number.left_jobs.filter(|_| number.is_gone())?;
            Some((id, number.runtime.clone()))
        };
        let left: Vec<_> = self.read().iter().filter_map(left_by_gone).collect();
        if left.is_empty() {
            return;
        }
        let ids: Vec<u16> = left.iter().map(|(id, _)| *id).collect();
        // The walk keeps no job, so none whose last reference would be dropped here, with user code.
        let live = RefCell::new(BTreeSet::new());
        let _none = walked::jobs_of(&ids, |job| {
            live.borrow_mut().insert(job.header().runtime());
            false
        });
        let live = live.into_inner();
        let mut ended = left;
        ended.retain(|(id, _)| !live.contains(id));
        let mut numbers = self.write();
        for (id, runtime) in ended {
            // Another thread may have freed it before, and the next runtime may have left jobs, too.
            let number = numbers.get_mut(index(id));
            if let Some(number) = number.filter(|number| Weak::ptr_eq(&number.runtime, &runtime)) {
                number.left_jobs = None;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        sync::mpsc,
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{
        CancelShield, DEFAULT_STACK, Runtime, ShutdownReport, Spawn, Wait,
        scheduler::workers::shared::NUMBERS,
    };

    const MINUTE: Duration = Duration::from_secs(60);

    /// Fails after a minute, longer than anything that a test waits for may take.
    fn until(is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < MINUTE, "it has not happened in a minute");
            thread::yield_now();
        }
    }

    #[test]
    fn a_number_is_used_again_only_when_the_jobs_that_a_shutdown_left_have_ended() {
        let new_runtime = || Runtime::builder().workers(1).build().unwrap();
        let runtime = new_runtime();
        let id = runtime.shared.id();
        let shared = Arc::downgrade(&runtime.shared);
        let ((begin, begun), (go, goes)) = (mpsc::channel(), mpsc::channel::<()>());
        let (end, ended) = futures_channel::oneshot::channel::<()>();
        // First it holds its thread, and then it waits with its stack, which no thread keeps.
        let code = move || {
            let _shield = CancelShield::begin();
            begin.send(()).unwrap();
            goes.recv().unwrap();
            ended.wait().unwrap();
        };
        let job = runtime.block_on(async {
            // SAFETY: the code keeps nothing across a wait that depends on the thread.
            unsafe { Spawn::new().spawn_migrating_fiber(DEFAULT_STACK, code) }
        });
        job.unwrap().detach();
        begun.recv().unwrap();
        assert_eq!(runtime.shutdown(Duration::ZERO).not_stopped.len(), 1);
        go.send(()).unwrap();
        until(|| shared.strong_count() == 0);

        let next = new_runtime();
        assert_ne!(next.shared.id(), id);
        let one_second = Duration::from_secs(1);
        assert_eq!(next.shutdown(one_second), ShutdownReport::default());

        let has_left_jobs = || NUMBERS.read()[index(id)].left_jobs.is_some();
        assert!(has_left_jobs());
        end.send(()).unwrap();
        until(|| {
            NUMBERS.check_left_jobs();
            !has_left_jobs()
        });
    }
}
