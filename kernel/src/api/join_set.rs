//! A set of jobs whose results are joined in the order in which the jobs end.
//!
//! An exit hook of each job puts the job's number on a list; the set joins its handles in the order of the list.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker, ready},
};

use weald_sync::{
    Branch, Event as _, Source, Waiting, of_source,
    reason::{Kind, Reason},
};

use crate::{
    api::{
        join::{JoinError, JoinHandle},
        spawn::spawn,
        sync_hooks::note_wait,
    },
    job::{exit_hooks, foreign_call::FiredBy},
    scheduler::workers::{context, waker},
    sys::lock,
};

#[derive(Default)]
struct Ended {
    numbers: VecDeque<u64>,
    waiter: Option<Waker>,
}

/// A set of jobs that are joined in the order in which they end. Dropping the set cancels the jobs not yet joined.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(2).build().unwrap();
/// # runtime.block_on(async {
/// let mut set = weald::JoinSet::new();
/// for n in 0..10 {
///     set.spawn(async move { n * n });
/// }
/// let mut sum = 0;
/// while let Some(square) = set.join_next().await {
///     sum += square.unwrap();
/// }
/// assert_eq!(sum, 285);
/// # });
/// ```
#[derive(Debug)]
pub struct JoinSet<T> {
    /// In the order in which they were added, so that a cancel of all of them repeats.
    handles: BTreeMap<u64, JoinHandle<T>>,
    next: u64,
    ended: Arc<Mutex<Ended>>,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ended")
            .field("numbers", &self.numbers)
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// An empty set.
    pub fn new() -> JoinSet<T> {
        JoinSet {
            handles: BTreeMap::new(),
            next: 0,
            ended: Arc::default(),
        }
    }

    /// Spawns a job on the current runtime, into the set.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.insert(spawn(future));
    }

    /// Adds a spawned job to the set. Returns the job's number in the set; no later job gets the same number.
    pub fn insert(&mut self, handle: JoinHandle<T>) -> u64 {
        let number = self.next;
        self.next += 1;
        match handle.job().cloned() {
            Some(job) => {
                let (runtime, ended) = (job.header().runtime(), self.ended.clone());
                let hook = move || push_ended(&ended, number, runtime);
                let _kept = exit_hooks::attach(job, Box::new(hook));
            }
            // The caller has exclusive access to the set, so nothing waits on it.
            None => lock(&self.ended).numbers.push_back(number),
        }
        self.handles.insert(number, handle);
        number
    }

    /// The number of jobs not yet joined.
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// Whether every job is joined.
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Waits for the first job to end among those not yet joined, and returns its result. None if the set is empty.
    ///
    /// An event. Cancel-safe: if the wait is dropped, or another event is chosen, no result is lost. In an endless loop
    /// of choices an empty set, which is ready at once, is left out: `(!set.is_empty()).then(|| set.join_next())`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weald::sync::{after, select};
    ///
    /// # weald::Runtime::test(1).block_on(async {
    /// let mut set = weald::JoinSet::new();
    /// set.spawn(async { 42 });
    /// set.spawn(std::future::pending());
    /// let mut ended = Vec::new();
    /// loop {
    ///     select! {
    ///         next = set.join_next() => match next {
    ///             Some(result) => ended.push(result.unwrap()),
    ///             None => break,
    ///         },
    ///         () = after(Duration::from_millis(20)) => break set.cancel_all(),
    ///     }
    /// }
    /// assert_eq!(ended, [42]);
    /// # });
    /// ```
    #[track_caller]
    pub fn join_next(
        &mut self,
    ) -> Waiting<impl Branch<Output = Option<Result<T, JoinError>>> + use<'_, T>> {
        Waiting::here(of_source(NextEnd(self)).open())
    }

    /// Ready if [`JoinSet::join_next`] would not wait; so also if the set is empty. For `poll_…` functions: only the
    /// waker of the last call is woken.
    pub fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.handles.is_empty() {
            return Poll::Ready(());
        }
        let Some(first) = self.first_ended(cx) else {
            note_wait(Reason::unspecified(Kind::End));
            return Poll::Pending;
        };
        let handle = self.handles.get_mut(&first);
        Pin::new(handle.expect("an ended job is joined once")).poll_ready(cx)
    }

    /// As [`JoinSet::join_next`], for `poll_…` functions: only the waker of the last call is woken.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let joined = self.poll_join_next_numbered(cx);
        joined.map(|joined| joined.map(|(_, result)| result))
    }

    /// As [`JoinSet::poll_join_next`], with the number that [`JoinSet::insert`] gave the job.
    #[allow(clippy::type_complexity, reason = "a number and a result, if any")]
    pub fn poll_join_next_numbered(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(u64, Result<T, JoinError>)>> {
        ready!(self.poll_ended(cx));
        if !self.is_empty() && !context::with(|here| here.spend(cx.waker())) {
            return Poll::Pending;
        }
        Poll::Ready(self.try_join_next_numbered())
    }

    /// Joins the first job that has ended, if one has by now. A [`poll_join_next`](JoinSet::poll_join_next) that waits
    /// continues to wait.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_join_next_numbered().map(|(_, result)| result)
    }

    /// As [`JoinSet::try_join_next`], with the number that [`JoinSet::insert`] gave the job.
    pub fn try_join_next_numbered(&mut self) -> Option<(u64, Result<T, JoinError>)> {
        let first = lock(&self.ended).numbers.front().copied()?;
        let handle = self.handles.get_mut(&first);
        let result = handle.expect("an ended job is joined once").try_take()?;
        lock(&self.ended).numbers.pop_front();
        self.handles.remove(&first);
        Some((first, result))
    }

    /// The first job that has ended and is not joined. If there is none, the next one wakes the waker.
    fn first_ended(&self, cx: &Context<'_>) -> Option<u64> {
        let first = || lock(&self.ended).numbers.front().copied();
        first().or_else(|| {
            // Cloned before the lock, and the former one dropped after it: a waker is user code.
            let waker = waker::kept(cx.waker());
            let former = lock(&self.ended).waiter.replace(waker);
            drop(former);
            first()
        })
    }

    /// Asks all jobs of the set to end. They stay in the set, to be joined.
    pub fn cancel_all(&self) {
        self.handles.values().for_each(JoinHandle::cancel);
    }

    /// Detaches all jobs of the set, which continue to run.
    pub fn detach_all(&mut self) {
        self.handles.clear();
        // Their exit hooks still run, and push to a list that nothing reads.
        self.ended = Arc::default();
    }
}

impl<T: Send + 'static> Default for JoinSet<T> {
    fn default() -> JoinSet<T> {
        JoinSet::new()
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.handles.values().for_each(JoinHandle::cancel);
    }
}

/// The end of the next job of a set.
struct NextEnd<'a, T>(&'a mut JoinSet<T>);

impl<T: Send + 'static> Source for NextEnd<'_, T> {
    type Output = Option<Result<T, JoinError>>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().0.poll_ended(cx)
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        self.get_mut().0.try_join_next()
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::End)
    }
}

/// The job with this number in the set has ended, in this `runtime`.
fn push_ended(ended: &Mutex<Ended>, number: u64, runtime: u16) {
    let waiter = {
        let mut ended = lock(ended);
        ended.numbers.push_back(number);
        ended.waiter.take()
    };
    if let Some(waiter) = waiter {
        waker::call_at_end(runtime, FiredBy::End, waiter);
    }
}
