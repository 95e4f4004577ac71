//! Exit hooks: closures that run when a job has ended.
//!
//! A hook runs once, after the job has ended in any way (value, panic, cancel). By then the job's future is dropped,
//! and so is an output that no handle will take. Hooks run in the order in which they were added, on the thread that
//! ended the job. Then the attachment is told, and the joiner is woken.

use std::mem;

use crate::job::{JobRef, extensions::ExtensionsWord, state::State};

/// What to do when the job has ended.
pub(crate) type ExitHook = Box<dyn FnOnce() + Send>;

/// The exit hooks of a job, in the order in which they were added. Removing one takes logarithmic time on average: a
/// parent may have any number of children, and each removes its own hook.
#[derive(Default)]
pub(crate) struct ExitHooks {
    /// In ascending order of number. A removed hook leaves a gap until there are too many gaps.
    list: Vec<(u64, Option<ExitHook>)>,
    gaps: usize,
    /// The number of the next hook.
    next: u64,
}

impl ExitHooks {
    fn push(&mut self, hook: ExitHook) -> u64 {
        let number = self.next;
        self.next += 1;
        self.list.push((number, Some(hook)));
        number
    }

    fn take(&mut self, number: u64) -> Option<ExitHook> {
        let place = self.list.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        let hook = self.list[place].1.take()?;
        self.gaps += 1;
        if self.gaps > self.list.len() / 2 {
            self.list.retain(|(_, hook)| hook.is_some());
            self.gaps = 0;
        }
        Some(hook)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Removes all hooks, and returns them in the order in which they were added.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = ExitHook> + use<> {
        self.gaps = 0;
        mem::take(&mut self.list)
            .into_iter()
            .filter_map(|(_, hook)| hook)
    }
}

/// The right to remove an exit hook again.
pub(crate) struct Attached {
    job: JobRef,
    /// None if the hook ran at once.
    number: Option<u64>,
}

/// Attaches `hook` to `job`. If the job is done, the hook runs at once.
pub(crate) fn attach(job: JobRef, hook: ExitHook) -> Attached {
    let number = match push(&job.header().state, &job.header().extensions, hook) {
        Ok(number) => Some(number),
        Err(hook) => {
            hook();
            None
        }
    };
    Attached { job, number }
}

/// Leaves `hook` to the thread that will end the job; gives it back if the job is done.
pub(crate) fn push(
    state: &State,
    extensions: &ExtensionsWord,
    hook: ExitHook,
) -> Result<u64, ExitHook> {
    let mut extensions = extensions.lock();
    match state.register_exit_hook() {
        true => Ok(extensions.exit_hooks.push(hook)),
        false => Err(hook),
    }
}

/// Calls `run` with each hook, including those that are added meanwhile. Called by the thread that ended the job.
pub(crate) fn take_each(extensions: &ExtensionsWord, mut run: impl FnMut(ExitHook)) {
    loop {
        let hooks = match extensions.lock_existing() {
            Some(mut extensions) if !extensions.exit_hooks.is_empty() => {
                extensions.exit_hooks.take_all()
            }
            _ => return,
        };
        hooks.for_each(&mut run);
    }
}

impl Attached {
    /// Removes the hook. False if it has run or is about to.
    pub(crate) fn remove(self) -> bool {
        self.take().is_some()
    }

    fn take(&self) -> Option<ExitHook> {
        let number = self.number?;
        let mut extensions = self.job.header().extensions.lock_existing()?;
        extensions.exit_hooks.take(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` hooks. Each notes its number when it runs.
    fn noting(count: u64, ran: &std::sync::Arc<std::sync::Mutex<Vec<u64>>>) -> ExitHooks {
        let mut exit_hooks = ExitHooks::default();
        for number in 0..count {
            let ran = ran.clone();
            let pushed = exit_hooks.push(Box::new(move || ran.lock().unwrap().push(number)));
            assert_eq!(pushed, number);
        }
        exit_hooks
    }

    #[test]
    fn hooks_that_are_left_run_in_the_order_of_attachment() {
        let ran = std::sync::Arc::default();
        let mut exit_hooks = noting(100, &ran);
        for number in (0..100).filter(|number| number % 7 != 3) {
            assert!(exit_hooks.take(number).is_some());
            assert!(exit_hooks.take(number).is_none());
        }
        exit_hooks.take_all().for_each(|hook| hook());
        let left: Vec<u64> = (0..100).filter(|number| number % 7 == 3).collect();
        assert_eq!(*ran.lock().unwrap(), left);
        // Numbers are not reused, so a hook that has run is never mistaken for another.
        assert_eq!(exit_hooks.push(Box::new(|| ())), 100);
        assert!(exit_hooks.take(3).is_none());
    }

    #[test]
    fn the_list_is_never_longer_than_twice_its_hooks() {
        const COUNT: u64 = 10_000;
        // From the front, from the back, and criss-cross (the factor is a prime).
        for order in [|n| n, |n| COUNT - 1 - n, |n| n * 7_919 % COUNT] {
            let mut exit_hooks = noting(COUNT, &std::sync::Arc::default());
            for (n, left) in (0..COUNT).zip((0..COUNT).rev()) {
                assert!(exit_hooks.take(order(n)).is_some());
                assert!(exit_hooks.list.len() as u64 <= 2 * left);
            }
            assert!(exit_hooks.is_empty());
        }
    }
}
