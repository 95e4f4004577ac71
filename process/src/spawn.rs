//! Spawning and joining a process.

use std::{
    borrow::Cow,
    fmt,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use weald_kernel::{AsUnit, JoinError, JoinHandle, Mailbox, Spawn, SpawnError, Unit, WorkKind};
use weald_sync::{Event, Polled, Source, of_source, reason::Reason};

use crate::{
    exit::ExitReason,
    inbox::Inbox,
    pid::Pid,
    signal::{
        link::link_new,
        monitor::{Monitor, monitor_unit},
        signals::{ProcessId, Signals},
    },
};

/// What the body of a process makes when it is called: a future. Every future is one; this trait has a name of its own
/// so that the compiler can say what to write.
#[diagnostic::on_unimplemented(
    message = "the body of this process is not `async`",
    label = "it returns `{Self}`, which is no future",
    note = "write `async |inbox| {{ .. }}`; code that waits with its stack is a thread: `weald::thread::spawn`"
)]
pub trait Body: Future<Output = Self::Value> {
    /// What the process ends with.
    type Value;
}

#[diagnostic::do_not_recommend]
impl<F: Future> Body for F {
    type Value = F::Output;
}

/// Spawns a process: runs `body` with an inbox of its own, concurrently with the caller. The process ends when
/// `body` does: with its value, by its panic, or killed at one of its waits.
///
/// If `body` is a closure that makes the future, for example one that ends with an `async move` block, the code before
/// that block runs in the caller, at once. A panic there is the caller's, and then there is no process.
///
/// # Errors
/// [`SpawnError::TooManyProcesses`] at the runtime's limit, and [`SpawnError::NoMemory`] if the system refuses memory;
/// everything else remains usable.
#[track_caller]
#[inline]
pub fn spawn<M, F, Fut>(body: F) -> Result<Process<M, Fut::Value>, SpawnError>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut,
    Fut: Body + Send + 'static,
    Fut::Value: Send + 'static,
{
    Builder::new().spawn(body)
}

/// Spawns a process that is pinned to the calling thread, so its future need not be `Send`. On a
/// worker's thread the process lives as long as it wants; inside `block_on`, until `block_on` returns.
///
/// # Errors
/// As [`spawn`], and [`SpawnError::NoLocalThread`] on a thread that runs no jobs.
#[track_caller]
pub fn spawn_local<M, F, Fut>(body: F) -> Result<Process<M, Fut::Value>, SpawnError>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut,
    Fut: Body + 'static,
    Fut::Value: Send + 'static,
{
    Builder::new().spawn_local(body)
}

/// As [`spawn`], and [links](crate::link) the process with the running one. Both are one step: the process cannot end
/// before it is linked.
///
/// # Errors
/// As [`spawn`].
///
/// # Panics
/// Outside of units.
#[track_caller]
pub fn spawn_link<M, F, Fut>(body: F) -> Result<Process<M, Fut::Value>, SpawnError>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut,
    Fut: Body + Send + 'static,
    Fut::Value: Send + 'static,
{
    Builder::new().link().spawn(body)
}

/// As [`spawn`], and [monitors](crate::monitor()) the process. Both are one step: the monitor tells how the process
/// ended, however soon that was.
///
/// # Errors
/// As [`spawn`].
#[track_caller]
pub fn spawn_monitor<M, F, Fut>(body: F) -> Result<(Process<M, Fut::Value>, Monitor), SpawnError>
where
    M: Send + 'static,
    F: FnOnce(Inbox<M>) -> Fut,
    Fut: Body + Send + 'static,
    Fut::Value: Send + 'static,
{
    Builder::new().spawn_monitor(body)
}

/// Settings for a process.
#[derive(Clone, Debug, Default)]
#[must_use = "settings do nothing until a process is spawned with them"]
pub struct Builder {
    settings: Spawn,
    is_linked: bool,
}

impl Builder {
    /// No settings: an unnamed process.
    #[inline]
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The name of the process in reports.
    pub fn name(self, name: impl Into<Cow<'static, str>>) -> Builder {
        Builder {
            settings: self.settings.name(name),
            ..self
        }
    }

    /// What the process does, for the monitor: processes from one place that do different things are of different
    /// kinds, and do not share the fate of one that blocks. A library that spawns what others pass to it sets it.
    ///
    /// ```
    /// # weald::Runtime::builder().workers(1).build().unwrap().block_on(async {
    /// use weald::{WorkKind, process::{Builder, Inbox}};
    ///
    /// let kind = WorkKind::new();
    /// kind.set(7);
    /// let process = Builder::new().kind(kind).spawn(async |_: Inbox<()>| 1)?;
    /// assert_eq!(process.await, Ok(1));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub fn kind(self, kind: WorkKind) -> Builder {
        Builder {
            settings: self.settings.kind(kind),
            ..self
        }
    }

    /// The line that reports give as the place of the spawn.
    pub(crate) fn site(self, site: &'static Location<'static>) -> Builder {
        Builder {
            settings: self.settings.site(site),
            ..self
        }
    }

    /// [Links](crate::link) the process with the running one before it runs. Spawning then panics outside of units.
    pub fn link(self) -> Builder {
        Builder {
            is_linked: true,
            ..self
        }
    }

    /// Spawns the process; see [`spawn`].
    ///
    /// # Errors
    /// As [`spawn`].
    #[track_caller]
    #[inline]
    pub fn spawn<M, F, Fut>(self, body: F) -> Result<Process<M, Fut::Value>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Inbox<M>) -> Fut,
        Fut: Body + Send + 'static,
        Fut::Value: Send + 'static,
    {
        let links = self.links();
        let spawned = self
            .settings
            .spawn_with_mailbox(|mailbox| begin(mailbox, links.as_ref(), body))?;
        Ok(Process {
            handle: spawned.0,
            pid: Pid(spawned.1),
        })
    }

    /// Spawns and monitors the process; see [`spawn_monitor`].
    ///
    /// # Errors
    /// As [`spawn`].
    #[track_caller]
    pub fn spawn_monitor<M, F, Fut>(
        self,
        body: F,
    ) -> Result<(Process<M, Fut::Value>, Monitor), SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Inbox<M>) -> Fut,
        Fut: Body + Send + 'static,
        Fut::Value: Send + 'static,
    {
        let mut monitor = None;
        let process = self.spawn(|inbox| {
            monitor = Some(monitor_unit(Some(&inbox.0.address().unit())));
            body(inbox)
        })?;
        Ok((process, monitor.expect("the body was called")))
    }

    /// Spawns the process on the calling thread; see [`spawn_local`].
    ///
    /// # Errors
    /// As [`spawn_local`].
    #[track_caller]
    pub fn spawn_local<M, F, Fut>(self, body: F) -> Result<Process<M, Fut::Value>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Inbox<M>) -> Fut,
        Fut: Body + 'static,
        Fut::Value: Send + 'static,
    {
        let links = self.links();
        let spawned = self
            .settings
            .spawn_local_with_mailbox(|mailbox| begin(mailbox, links.as_ref(), body))?;
        Ok(Process {
            handle: spawned.0,
            pid: Pid(spawned.1),
        })
    }

    #[inline]
    #[track_caller]
    fn links(&self) -> Option<Arc<Signals>> {
        match self.is_linked {
            true => Some(Signals::current("spawn_link, or Builder::link,")),
            false => None,
        }
    }

    /// Panics outside of units if the process is to be linked with the running one, and names the line of the start.
    pub(crate) fn check_link(&self, site: &'static Location<'static>) {
        if self.is_linked {
            Signals::current(&format!("Builder::link, in the start at {site},"));
        }
    }

    /// The running unit, if the process is to be linked with it.
    pub(crate) fn parent(&self) -> Option<ProcessId> {
        let parent = Unit::current().filter(|_| self.is_linked);
        parent.as_ref().map(ProcessId::of)
    }
}

/// What happens to a process before it can run. The links come last: if `body` panics, there is no process.
#[inline]
fn begin<M, Fut>(
    mailbox: Mailbox<M>,
    links: Option<&Arc<Signals>>,
    body: impl FnOnce(Inbox<M>) -> Fut,
) -> Fut {
    let linked = links.map(|own| (own, mailbox.address().unit()));
    let future = body(Inbox(mailbox));
    if let Some((own, unit)) = linked {
        link_new(&unit, own);
    }
    future
}

/// A spawned process: its pid, and an owned permission to join it. Awaiting it gives the value of the process, or
/// the reason why there is none. Dropping it detaches the process. `&mut process` is also an event; if another one is
/// chosen, the value can still be had.
#[must_use = "a process that is dropped is detached; call into_pid() to say so"]
pub struct Process<M, T> {
    pub(crate) handle: JoinHandle<T>,
    pub(crate) pid: Pid<M>,
}

impl<M, T> Process<M, T> {
    /// The address of the process.
    pub fn pid(&self) -> &Pid<M> {
        &self.pid
    }

    /// Detaches the process and returns its pid. A crash is then reported through `tracing`.
    pub fn into_pid(self) -> Pid<M> {
        self.pid
    }

    /// Sends an exit signal; see [`Pid::exit`].
    pub fn exit(&self, reason: &ExitReason) {
        self.pid.exit(reason);
    }

    /// Asks the process to end; see [`Pid::kill`].
    pub fn kill(&self) {
        self.pid.kill();
    }

    /// Whether the process has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    fn end(&self, joined: Result<T, JoinError>) -> Result<T, ExitReason> {
        joined.map_err(|error| ExitReason::of(error, || Signals::reason_of(&self.pid.0.unit())))
    }
}

impl<M, T> Future for Process<M, T> {
    type Output = Result<T, ExitReason>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = Pin::new(&mut self.handle).poll(cx);
        ended.map(|end| self.end(end))
    }
}

/// The end of the process, as an event. A process that is not chosen keeps its value.
impl<'a, M, T> Event for &'a mut Process<M, T> {
    type Output = Result<T, ExitReason>;
    type Branch = <Polled<&'a mut Process<M, T>> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self).open()
    }

    fn conclude(outcome: Self::Output) -> Self::Output {
        outcome
    }
}

impl<M, T> Source for Process<M, T> {
    type Output = Result<T, ExitReason>;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.handle).poll_ready(cx)
    }

    fn take(mut self: Pin<&mut Self>) -> Self::Output {
        let end = Pin::new(&mut self.handle).take();
        self.end(end)
    }

    fn reason(&self) -> Reason {
        self.handle.reason()
    }
}

impl<M, T> AsUnit for Process<M, T> {
    fn as_unit(&self) -> Option<Unit> {
        self.pid.as_unit()
    }
}

impl<M, T> fmt::Debug for Process<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
