//! The list of things that end with a job.
//!
//! An end is told once, when the job is done in whichever way (value, panic, cancel) and its future is
//! gone, and so is an output that nobody will take. Ends are told in the order in which they were
//! attached, on the thread that ended the job; then whoever joins the job is woken.

use std::mem;

use crate::job::JobRef;

/// Something that is done when the job has ended.
pub(crate) type ExitHook = Box<dyn FnOnce() + Send>;

/// The ends of a job, in the order of attachment. Taking one off costs the logarithm of their number, on
/// average: a parent may have any number of children, and each takes its own end off.
#[derive(Default)]
pub(crate) struct ExitHooks {
    /// By number, which grows. Where one was taken off, a gap stays until there are too many.
    list: Vec<(u64, Option<ExitHook>)>,
    gaps: usize,
    /// The number of the next end.
    next: u64,
}

impl ExitHooks {
    fn push(&mut self, end: ExitHook) -> u64 {
        let number = self.next;
        self.next += 1;
        self.list.push((number, Some(end)));
        number
    }

    fn take(&mut self, number: u64) -> Option<ExitHook> {
        let place = self.list.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        let end = self.list[place].1.take()?;
        self.gaps += 1;
        if self.gaps > self.list.len() / 2 {
            self.list.retain(|(_, end)| end.is_some());
            self.gaps = 0;
        }
        Some(end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes all off, in their order.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = ExitHook> + use<> {
        self.gaps = 0;
        mem::take(&mut self.list)
            .into_iter()
            .filter_map(|(_, end)| end)
    }
}

/// Takes an end off again.
pub(crate) struct Attached {
    job: JobRef,
    number: u64,
}

/// Attaches `end` to `job`. If the job is done, `end` is told at once.
pub(crate) fn attach(job: JobRef, end: ExitHook) -> Attached {
    let number = job.header().extensions.lock().exit_hooks.push(end);
    let attached = Attached { job, number };
    // After the push: a completion that looked at the list before it had set `DONE` before that.
    if attached.job.header().state.is_done()
        && let Some(end) = attached.take()
    {
        end();
    }
    attached
}

impl Attached {
    /// Takes the end off, if it was not told yet.
    pub(crate) fn detach(self) -> bool {
        self.take().is_some()
    }

    fn take(&self) -> Option<ExitHook> {
        let mut extensions = self.job.header().extensions.lock_existing()?;
        extensions.exit_hooks.take(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` ends, of which each notes its number when it is told.
    fn noting(count: u64, told: &std::sync::Arc<std::sync::Mutex<Vec<u64>>>) -> ExitHooks {
        let mut exit_hooks = ExitHooks::default();
        for number in 0..count {
            let told = told.clone();
            let pushed = exit_hooks.push(Box::new(move || told.lock().unwrap().push(number)));
            assert_eq!(pushed, number);
        }
        exit_hooks
    }

    #[test]
    fn what_is_left_is_told_in_the_order_of_attachment() {
        let told = std::sync::Arc::default();
        let mut exit_hooks = noting(100, &told);
        for number in (0..100).filter(|number| number % 7 != 3) {
            assert!(exit_hooks.take(number).is_some());
            assert!(exit_hooks.take(number).is_none());
        }
        exit_hooks.take_all().for_each(|end| end());
        let left: Vec<u64> = (0..100).filter(|number| number % 7 == 3).collect();
        assert_eq!(*told.lock().unwrap(), left);
        // Numbers are not used again, so that an end that was told is never taken for another.
        assert_eq!(exit_hooks.push(Box::new(|| ())), 100);
        assert!(exit_hooks.take(3).is_none());
    }

    #[test]
    fn the_list_is_never_longer_than_twice_what_is_in_it() {
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
