//! Monitors: one unit is told of the end of another.
//!
//! A monitor is a value to wait for, or leaves a message in a mailbox. Every monitor is independent of the others, and
//! tells once.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use weald_kernel::{Address, AsUnit, Unit, UnitPlace, catch_panic};
use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{Kind, Reason},
};

use crate::{
    cell::Cell,
    exit::ExitReason,
    inbox::Inbox,
    signal::signals::{MonitorNumber, ProcessId, Signals, Watcher},
    survived::Survived,
};

/// The notice that a unit has ended. By then its names are free, everything that it held is dropped, and it is not
/// alive.
///
/// ```
/// use weald::process::{self, ExitReason, Inbox};
///
/// weald::block_on(async {
///     let process = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await)?;
///     let monitor = process::monitor(process.pid());
///     process.pid().send(());
///     let down = monitor.await;
///     assert_eq!(down.process, Some(process.pid().id()));
///     assert_eq!(down.reason, ExitReason::Normal);
///     Ok::<(), weald::SpawnError>(())
/// })?;
/// # Ok::<(), weald::SpawnError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Down {
    /// The monitor that tells.
    pub monitor: MonitorRef,
    /// The unit that ended. None if it was never started.
    pub process: Option<ProcessId>,
    /// Why it ended; [`NoProcess`](ExitReason::NoProcess) if it had ended before it was monitored.
    pub reason: ExitReason,
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process} is down: {}", self.reason),
            None => write!(f, "down: {}", self.reason),
        }
    }
}

/// A monitor, by its number; see [`Inbox::monitor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorRef(MonitorNumber);

impl MonitorRef {
    fn next() -> MonitorRef {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: it is a count, and guards no other memory.
        MonitorRef(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What every watcher knows of its target.
struct Subject {
    monitor: MonitorRef,
    process: Option<ProcessId>,
}

impl Subject {
    fn new(monitor: MonitorRef, unit: Option<&Unit>, target: Option<&Arc<Signals>>) -> Subject {
        // A unit with signals knows its number: asking the unit itself takes a lock.
        let known = target.map(|target| target.id());
        Subject {
            monitor,
            process: known.or_else(|| unit.map(ProcessId::of)),
        }
    }

    fn down(&self, reason: ExitReason) -> Down {
        Down {
            monitor: self.monitor,
            process: self.process,
            reason,
        }
    }
}

/// Watches for a [`Monitor`].
struct Answers {
    subject: Subject,
    cell: Arc<Cell<Down>>,
}

impl Watcher for Answers {
    fn tell(self: Box<Self>, reason: ExitReason) {
        // An error: the monitor is being dropped.
        let _unheard = self.cell.fill(self.subject.down(reason));
    }

    fn calls_code_of(&self) -> Option<Unit> {
        None
    }
}

/// Watches for a mailbox.
struct Posts<M, F> {
    subject: Subject,
    own: Arc<Signals>,
    address: Address<M>,
    convert: F,
}

impl<M: Send, F: FnOnce(Down) -> M + Send> Watcher for Posts<M, F> {
    fn tell(self: Box<Self>, reason: ExitReason) {
        let (convert, down) = (self.convert, self.subject.down(reason));
        let Some(message) = catch_panic(|| convert(down)) else {
            let listed = self.own.lock().remove_monitoring(self.subject.monitor.0);
            return drop(listed);
        };
        let mut state = self.own.lock();
        let counts = state.remove_monitoring(self.subject.monitor.0);
        let posted = match counts {
            Some(_) => self.address.post_without_waking(message),
            None => Err(message),
        };
        // Destructors run outside the lock, and so does everything that the wake leads to.
        drop(state);
        drop(posted);
    }

    fn calls_code_of(&self) -> Option<Unit> {
        Some(self.address.unit())
    }
}

/// Adds a watcher to `target`, or tells it at once that the target is gone.
fn watch(target: Option<&Arc<Signals>>, number: MonitorNumber, watcher: Box<dyn Watcher>) {
    if let Some(target) = target {
        let mut state = target.lock();
        if !state.has_ended() {
            return state.add_monitor(number, watcher);
        }
    }
    watcher.tell(ExitReason::NoProcess);
}

/// Watches the end of one unit: a future of its [`Down`]. Dropping it ends the watch. May be awaited anywhere, by any
/// number of monitors of the same unit.
///
/// Cancel-safe: dropping a future that awaits `&mut monitor` loses nothing. `&mut monitor` is also an event:
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use std::time::Duration;
/// use weald::process::{self, Inbox, monitor};
/// use weald::sync::{after, select};
///
/// let process = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await)?;
/// let mut down = monitor(process.pid());
/// loop {
///     select! {
///         _down = &mut down => break,
///         () = after(Duration::from_secs(1)) => process.pid().send(()),
///     }
/// }
/// assert!(!process.pid().is_alive());
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
#[must_use = "a monitor that is dropped watches no longer"]
pub struct Monitor {
    number: MonitorNumber,
    /// None if there was nobody to watch.
    target: Option<Arc<Signals>>,
    cell: Arc<Cell<Down>>,
    /// The unit's own place in memory, which no other unit has before the notice is there.
    place: Option<UnitPlace>,
}

/// Watches `unit`: a process, a thread, a job. O(1) on average, whatever the number of its monitors; two allocations.
///
/// A unit may make a monitor of itself for others, but cannot await it: that panics, because the notice would never
/// come.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{self as process, ExitReason, Inbox, monitor};
///
/// let process = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await)?;
/// let monitor = monitor(process.pid());
/// process.kill();
/// assert_eq!(monitor.await.reason, ExitReason::Killed);
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
pub fn monitor(unit: &impl AsUnit) -> Monitor {
    monitor_unit(unit.as_unit().as_ref())
}

pub(crate) fn monitor_unit(unit: Option<&Unit>) -> Monitor {
    let cell = Arc::new(Cell::new());
    let target = unit.and_then(Signals::of);
    let monitor = MonitorRef::next();
    let subject = Subject::new(monitor, unit, target.as_ref());
    let watcher = Box::new(Answers {
        subject,
        cell: cell.clone(),
    });
    watch(target.as_ref(), monitor.0, watcher);
    Monitor {
        number: monitor.0,
        target,
        cell,
        place: unit.map(Unit::place),
    }
}

/// Watches a unit that dropped a request while it panicked, until it ends or survives that panic.
pub(crate) fn monitor_panicking(unit: &Unit, survived: Survived) -> Monitor {
    let monitor = MonitorRef::next();
    let cell = Arc::new(Cell::new());
    let subject = Subject {
        monitor,
        process: Some(ProcessId::of(unit)),
    };
    let watcher: Box<dyn Watcher> = Box::new(Answers {
        subject,
        cell: cell.clone(),
    });
    let target = Signals::of(unit);
    let told = match &target {
        Some(target) => {
            let mut state = target.lock();
            match state.has_ended() {
                true => Some(watcher),
                false => state.add_caller(monitor.0, survived, watcher),
            }
        }
        None => Some(watcher),
    };
    if let Some(watcher) = told {
        watcher.tell(ExitReason::NoProcess);
    }
    Monitor {
        number: monitor.0,
        target,
        cell,
        // A unit learns of the end of its own panic when that is over.
        place: None,
    }
}

impl Monitor {
    /// The monitor's number, which is in its [`Down`].
    pub fn reference(&self) -> MonitorRef {
        MonitorRef(self.number)
    }

    /// The notice, if the unit has ended.
    pub fn try_down(&mut self) -> Option<Down> {
        self.cell.take()
    }
}

/// The notice, as an event. A monitor that is not chosen keeps it.
impl<'a> Event for &'a mut Monitor {
    type Output = Down;
    type Branch = <Polled<&'a mut Monitor> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self).open()
    }

    fn conclude(down: Down) -> Down {
        down
    }
}

impl Source for Monitor {
    type Output = Down;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let is_full = self.cell.poll_full(cx, self.reason());
        assert!(
            is_full.is_ready() || !self.place.is_some_and(UnitPlace::is_of_current),
            "a unit waits for its own end, which it cannot live to see: spawn a job that waits for it"
        );
        is_full
    }

    fn take(self: Pin<&mut Self>) -> Down {
        let down = self.cell.take();
        down.expect("a monitor tells once, and its notice was taken")
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::End)
    }
}

impl Future for Monitor {
    type Output = Down;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Down> {
        self.poll_take(cx)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(target) = self.target.take() {
            let watcher = target.lock().remove_monitor(self.number);
            drop(watcher);
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monitor").field(&self.number).finish()
    }
}

impl<M: Send + 'static> Inbox<M> {
    /// Watches `unit`; when it ends, this process receives the message that `convert` makes of the [`Down`]. Each call
    /// is a monitor of its own, and leaves one message. If the unit has ended already, the message comes at once, with
    /// the reason [`NoProcess`](ExitReason::NoProcess). O(1) on average.
    ///
    /// `convert` runs in the unit that ends, and should not wait: a unit that joins it waits, too. The unit's other
    /// peers are then told elsewhere. If the unit ends on a thread that serves no worker (it is local, in quarantine,
    /// or held its thread before), `convert` runs in a job of its own, and the message may come after the unit was
    /// joined. If it panics, that is reported, and no message comes.
    ///
    /// # Panics
    /// If the process has ended, and the inbox was moved out of it.
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        self.monitor_unit(unit.as_unit().as_ref(), convert)
    }

    pub(crate) fn monitor_unit(
        &mut self,
        unit: Option<&Unit>,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        let address = self.0.address();
        let own = Signals::of(&address.unit()).expect("the process of this inbox has ended");
        let monitor = MonitorRef::next();
        let target = unit.and_then(Signals::of);
        // Its own signals stand for a target that is gone: the entry is removed when the message is posted.
        let listed = target.clone().unwrap_or_else(|| own.clone());
        own.lock().add_monitoring(monitor.0, listed);
        let subject = Subject::new(monitor, unit, target.as_ref());
        let watcher = Box::new(Posts {
            subject,
            own,
            address,
            convert,
        });
        watch(target.as_ref(), monitor.0, watcher);
        monitor
    }

    /// Ends a monitor. When this returns, no message comes from it any longer; one that came before may be in the
    /// mailbox, where [`take_if`](Inbox::take_if) finds it. Returns whether the monitor had not told yet.
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        let Some(own) = self.0.address().unit().attachment::<Signals>() else {
            return false;
        };
        let target = own.lock().remove_monitoring(monitor.0);
        let watcher = target
            .as_ref()
            .and_then(|target| target.lock().remove_monitor(monitor.0));
        drop(watcher);
        target.is_some()
    }
}
