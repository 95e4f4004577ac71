//! A set of processes that are joined in the order in which they end.
//!
//! Invariant: `pids` has an entry for each process that is in the kernel's set, under its number there.

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use weald_kernel::{JoinError, JoinSet, SpawnError};
use weald_sync::{
    Branch, Event as _, Source, Waiting, of_source,
    reason::{Kind, Reason},
};

use crate::{
    exit::ExitReason,
    inbox::Inbox,
    pid::Pid,
    signal::signals::Signals,
    spawn::{Process, spawn},
};

/// Processes that are joined in the order in which they end. Dropping the set [kills](Pid::kill) those that are not
/// joined yet.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{Inbox, ProcessSet};
///
/// let mut set = ProcessSet::new();
/// for number in 0..10 {
///     set.spawn(async move |_: Inbox<()>| {
///         assert_ne!(number, 3);
///         number
///     })?;
/// }
/// let (mut sum, mut crashes) = (0, 0);
/// while let Some((_pid, end)) = set.join_next().await {
///     match end {
///         Ok(number) => sum += number,
///         Err(_reason) => crashes += 1,
///     }
/// }
/// assert_eq!((sum, crashes), (42, 1));
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
///
/// After tokio's `JoinSet`.
#[must_use = "a set that is dropped kills its processes"]
pub struct ProcessSet<M, T> {
    set: JoinSet<T>,
    pids: BTreeMap<u64, Pid<M>>,
}

/// A process that was joined: its pid, and its value or the reason why there is none.
type Joined<M, T> = (Pid<M>, Result<T, ExitReason>);

impl<M: Send + 'static, T: Send + 'static> ProcessSet<M, T> {
    /// An empty set.
    pub fn new() -> ProcessSet<M, T> {
        ProcessSet {
            set: JoinSet::new(),
            pids: BTreeMap::new(),
        }
    }

    /// Spawns a process into the set; see [`spawn`](crate::spawn()).
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()). The set is as before.
    #[track_caller]
    pub fn spawn<F, Fut>(&mut self, body: F) -> Result<&Pid<M>, SpawnError>
    where
        F: FnOnce(Inbox<M>) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        Ok(self.insert(spawn(body)?))
    }

    /// Adds a process that was spawned before, even one that has ended. Returns its pid.
    pub fn insert(&mut self, process: Process<M, T>) -> &Pid<M> {
        let Process { handle, pid } = process;
        let number = self.set.insert(handle);
        self.pids.entry(number).or_insert(pid)
    }

    /// Waits for the first process to end among those not joined yet. None if there are none. O(log n).
    ///
    /// An event. Cancel-safe: if the wait is dropped, or another event is chosen, no result is lost.
    #[track_caller]
    pub fn join_next(
        &mut self,
    ) -> Waiting<impl Branch<Output = Option<Joined<M, T>>> + use<'_, M, T>> {
        Waiting::here(of_source(NextEnd(self)).open())
    }

    /// As [`ProcessSet::join_next`], for `poll_…` functions: only the waker of the last call is woken.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Joined<M, T>>> {
        let joined = self.set.poll_join_next_numbered(cx);
        joined.map(|joined| joined.map(|(number, result)| self.joined(number, result)))
    }

    /// Joins the first process that has ended, if one has by now. A process can be joined a moment after its monitors
    /// are told of its end.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{Inbox, ProcessSet};
    ///
    /// let mut set = ProcessSet::new();
    /// let pid = set.spawn(async |mut inbox: Inbox<u32>| inbox.receive().await)?.clone();
    /// assert_eq!(set.try_join_next(), None);
    /// pid.send(7);
    /// weald::sleep(std::time::Duration::from_millis(1)).await;
    /// assert_eq!(set.try_join_next(), Some((pid, Ok(7))));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub fn try_join_next(&mut self) -> Option<Joined<M, T>> {
        let (number, result) = self.set.try_join_next_numbered()?;
        Some(self.joined(number, result))
    }

    fn joined(&mut self, number: u64, result: Result<T, JoinError>) -> Joined<M, T> {
        let pid = self.pids.remove(&number).expect("each process has a pid");
        let reason = || Signals::reason_of(&pid.0.unit());
        let end = result.map_err(|error| ExitReason::of(error, reason));
        (pid, end)
    }

    /// How many processes are not joined yet.
    pub fn len(&self) -> usize {
        self.pids.len()
    }

    /// Whether all processes are joined.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    /// The pids of the processes that are not joined yet, in the order in which they came into the set.
    pub fn pids(&self) -> impl Iterator<Item = &Pid<M>> {
        self.pids.values()
    }

    /// Sends an exit signal to all processes that are not joined yet; see [`Pid::exit`]. They stay in the set.
    pub fn exit_all(&self, reason: &ExitReason) {
        self.pids().for_each(|pid| pid.exit(reason));
    }

    /// Kills all processes that are not joined yet; see [`Pid::kill`]. They stay in the set, to be joined.
    pub fn kill_all(&self) {
        self.pids().for_each(Pid::kill);
    }

    /// Kills all processes, and waits until each of them has ended. What they return is dropped.
    ///
    /// Cancel-safe: the processes are killed at the first poll, and those that have not ended stay in the set.
    pub async fn shutdown(&mut self) {
        self.kill_all();
        // Not `join_next`, whose line reports would name.
        while Waiting::new(of_source(NextEnd(self)).open())
            .await
            .is_some()
        {}
    }

    /// Takes all processes out of the set; they continue.
    pub fn detach_all(&mut self) {
        self.set.detach_all();
        self.pids.clear();
    }
}

/// The end of the next process of a set.
struct NextEnd<'a, M, T>(&'a mut ProcessSet<M, T>);

impl<M: Send + 'static, T: Send + 'static> Source for NextEnd<'_, M, T> {
    type Output = Option<Joined<M, T>>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().0.set.poll_ended(cx)
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        self.get_mut().0.try_join_next()
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::End)
    }
}

impl<M: Send + 'static, T: Send + 'static> Default for ProcessSet<M, T> {
    fn default() -> ProcessSet<M, T> {
        ProcessSet::new()
    }
}

impl<M, T> Drop for ProcessSet<M, T> {
    fn drop(&mut self) {
        self.pids.values().for_each(Pid::kill);
    }
}

impl<M, T> fmt::Debug for ProcessSet<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.pids.values()).finish()
    }
}
