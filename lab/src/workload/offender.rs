//! The units of `stall` that do not yield: what each kind does, and whether reports named it.
//!
//! Each offender has a name of its own, which no other run of this program uses again. One that is part of a burst
//! offends once, for two seconds; every other one rests and offends, again and again, until the end.

use std::panic;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use weald::process::callback;
use weald::process::receptor::Receptor;
use weald::sync::oneshot;
use weald::{JoinError, JoinHandle, Spawn, Wait};

use super::fifo::{Fifo, read};
pub(crate) use super::holding::compute;
pub(super) use super::holding::{block, compute_while};
use super::senders::send_again;
use crate::error::Error;
use crate::reports::{self, Report, ReportLog};

const REST: Duration = Duration::from_millis(20);
pub(super) const OFFENCE: Duration = Duration::from_millis(300);
const BURST: Duration = Duration::from_secs(2);
/// Nine tenths of the time after which Weald takes a worker from a job by default.
const JUST_BELOW: Duration = Duration::from_millis(9);
/// How long a report may take to arrive after the run.
const REPORTING: Duration = Duration::from_secs(2);

/// What an offender does with its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OffenderKind {
    /// It blocks.
    Blocks,
    /// It computes.
    Computes,
    /// It holds a `std` lock that the other offenders want, and blocks.
    Holds,
    /// It blocks for a little less than what is noticed, and yields.
    JustBelow,
    /// A timer fires a foreign waker of it, which blocks.
    Waker,
    /// It cancels a job whose destructor blocks.
    Destructor,
    /// It blocks, and so does the subscriber that is told about it.
    Subscriber,
    /// It reads a FIFO that nobody writes, until the end.
    File,
    /// A job of it panics, and the program's panic hook blocks.
    Hook,
    /// A job of it unwinds through a destructor that waits.
    Unwinding,
    /// A thread of a receptor of it blocks.
    Receptor,
    /// A callback of it blocks.
    Callback,
    /// It sends for long.
    Sends,
}

/// All names on the command line; `none` is not among them.
const KINDS: [(&str, OffenderKind); 13] = [
    ("blocks", OffenderKind::Blocks),
    ("computes", OffenderKind::Computes),
    ("holds", OffenderKind::Holds),
    ("just-below", OffenderKind::JustBelow),
    ("waker", OffenderKind::Waker),
    ("destructor", OffenderKind::Destructor),
    ("subscriber", OffenderKind::Subscriber),
    ("file", OffenderKind::File),
    ("hook", OffenderKind::Hook),
    ("unwinding", OffenderKind::Unwinding),
    ("receptor", OffenderKind::Receptor),
    ("callback", OffenderKind::Callback),
    ("sends", OffenderKind::Sends),
];

impl OffenderKind {
    /// The kind of this name; none for `none`.
    pub(super) fn parse(name: &str) -> Result<Option<Self>, Error> {
        let found = KINDS.iter().find(|(known, _)| *known == name);
        match found {
            Some((_, kind)) => Ok(Some(*kind)),
            None if name == "none" => Ok(None),
            None => {
                let names: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
                let known = names.join(", ");
                let sentence = format!("offender={name} is none of: none, {known}.");
                Err(Error::Usage(sentence))
            }
        }
    }
}

/// The offenders of one run.
pub(super) struct Offenders {
    shared: Arc<Shared>,
    names: Vec<String>,
    jobs: Vec<JoinHandle<()>>,
    reports: &'static ReportLog,
    reported_before: usize,
    fifo: Option<Fifo>,
    hook: Option<BlockingHook>,
}

/// What all offenders of a run share.
struct Shared {
    stop: AtomicBool,
    lock: Mutex<()>,
    /// Which of them have offended, in a burst: those that wait for a thread until its end never do.
    begun: Vec<AtomicBool>,
}

impl Offenders {
    /// Starts `count` offenders at once. They offend until [`Offenders::end`]; those of a burst of this length once,
    /// and not at all if they start after it.
    pub(super) fn start(
        kind: OffenderKind,
        count: usize,
        burst_of: Option<Duration>,
    ) -> Result<Self, Error> {
        static RUN: AtomicUsize = AtomicUsize::new(0);
        let run = RUN.fetch_add(1, Ordering::Relaxed);
        let reports = reports::listen();
        let fifo = match kind {
            OffenderKind::File => Some(Fifo::new(run)?),
            _ => None,
        };
        if kind == OffenderKind::Subscriber {
            reports.block_for(OFFENCE);
        }
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            lock: Mutex::new(()),
            begun: (0..count)
                .map(|_| AtomicBool::new(burst_of.is_none()))
                .collect(),
        });
        let hook = (kind == OffenderKind::Hook).then(BlockingHook::new);
        let names: Vec<String> = (0..count)
            .map(|index| match kind {
                // Callbacks and a receptor's threads have no names: all are named by the place of their start.
                OffenderKind::Receptor | OffenderKind::Callback => file!().to_owned(),
                _ => format!("offender-{run:04}-{index:04}"),
            })
            .collect();
        let reported_before = reports.count();
        if let Some(length) = burst_of {
            let shared = Arc::clone(&shared);
            // A thread of its own: nothing in the runtime may come in time.
            std::thread::spawn(move || {
                block(length);
                shared.stop.store(true, Ordering::Relaxed);
            });
        }
        let jobs = names
            .iter()
            .enumerate()
            .map(|(index, name)| match burst_of.is_some() {
                true => start(name, burst(kind, Arc::clone(&shared), index)),
                false => match (kind, &fifo) {
                    (OffenderKind::Destructor, _) => {
                        weald::spawn(cancel_again(name.clone(), Arc::clone(&shared)))
                    }
                    (OffenderKind::Hook, _) => {
                        weald::spawn(panic_again(name.clone(), Arc::clone(&shared)))
                    }
                    (OffenderKind::Unwinding, _) => {
                        weald::spawn(unwind_again(name.clone(), Arc::clone(&shared)))
                    }
                    (OffenderKind::Receptor, _) => weald::spawn(spawn_again(Arc::clone(&shared))),
                    (OffenderKind::Sends, _) => {
                        let shared = Arc::clone(&shared);
                        let goes_on = move || !shared.stop.load(Ordering::Relaxed);
                        start(name, send_again(REST, goes_on))
                    }
                    (_, Some(fifo)) => start(name, read(fifo.path())),
                    (_, None) => start(name, again(kind, Arc::clone(&shared))),
                },
            });
        Ok(Self {
            jobs: jobs.collect(),
            shared,
            names,
            reports,
            reported_before,
            fifo,
            hook,
        })
    }

    /// Stops them, waits for them and for the reports, and returns which percentage of those that offended was named,
    /// or counted with its spawn site.
    pub(super) async fn end(mut self) -> Result<f64, JoinError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.reports.block_for(Duration::ZERO);
        // Those that read are reported while they do.
        let named = match &self.fifo {
            Some(_reads) => Some(self.named().await),
            None => None,
        };
        if let Some(fifo) = self.fifo.take() {
            fifo.end();
        }
        for job in std::mem::take(&mut self.jobs) {
            job.await?;
        }
        drop(self.hook.take());
        match named {
            Some(named) => Ok(named),
            None => Ok(self.named().await),
        }
    }

    /// Waits for the reports, and returns the percentage.
    async fn named(&self) -> f64 {
        let deadline = Instant::now() + REPORTING;
        loop {
            let told = self.reports.after(self.reported_before);
            let is_named = |name: &&String| told.iter().any(|report| names(report, name));
            let begun = self.names.iter().zip(&self.shared.begun);
            let begun = begun.filter(|(_, begun)| begun.load(Ordering::Relaxed));
            let offended: Vec<&String> = begun.map(|(name, _)| name).collect();
            let named = offended.iter().copied().filter(is_named).count();
            let counted: usize = told.iter().filter_map(left_out).sum();
            let named = (named + counted).min(offended.len());
            if named == offended.len() || Instant::now() >= deadline {
                return 100.0 * named as f64 / offended.len().max(1) as f64;
            }
            weald::sleep(REST).await;
        }
    }
}

/// Whether a report gives this name and the file in which the unit was spawned.
fn names(report: &Report, name: &str) -> bool {
    report.mentions(name) && report.mentions(file!())
}

/// How many offenders a report only counts, with the file in which they were spawned: reports are limited in rate.
fn left_out(report: &Report) -> Option<usize> {
    let (_, count) = report.fields.iter().find(|(name, _)| *name == "left_out")?;
    let kinds = [
        "stuck jobs",
        "operations that do not return",
        "waits that hold an OS thread",
    ];
    let is_ours = report.mentions(file!()) && kinds.iter().any(|kind| report.mentions(kind));
    is_ours.then(|| count.parse().ok()).flatten()
}

fn start(name: &str, offender: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    Spawn::new().name(name.to_owned()).spawn(offender)
}

async fn burst(kind: OffenderKind, shared: Arc<Shared>, index: usize) {
    let offend = move || {
        if !shared.stop.load(Ordering::Relaxed) {
            shared.begun[index].store(true, Ordering::Relaxed);
            match kind {
                OffenderKind::Computes => compute_until_stopped(BURST, &shared),
                _ => block(BURST),
            }
        }
    };
    match kind {
        OffenderKind::Callback => in_callback(offend).await,
        _ => offend(),
    }
}

/// Calls `offend` in a callback, and waits until that has ended.
async fn in_callback(offend: impl FnOnce() + Send + 'static) {
    let (ends, mut ended) = oneshot::channel::<()>();
    let call = move || {
        let _ends = ends;
        offend();
    };
    callback::spawn(call).detach();
    let _closed = ended.receive().await;
}

async fn again(kind: OffenderKind, shared: Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        if kind == OffenderKind::JustBelow {
            block(JUST_BELOW);
            weald::yield_now().await;
            continue;
        }
        if kind == OffenderKind::Waker {
            wait_with_blocking_waker().await;
            continue;
        }
        weald::sleep(REST).await;
        match kind {
            OffenderKind::Callback => in_callback(|| block(OFFENCE)).await,
            OffenderKind::Computes => compute(OFFENCE),
            OffenderKind::Holds => {
                let held = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
                block(OFFENCE);
                drop(held);
            }
            _ => block(OFFENCE),
        }
    }
}

/// Rests with a waker that is not the job's own and that blocks when the timer fires it.
async fn wait_with_blocking_waker() {
    let (sender, mut woken) = oneshot::channel();
    let waker = Waker::from(Arc::new(BlockingWaker(Mutex::new(Some(sender)))));
    let mut sleep = pin!(weald::sleep(REST));
    if sleep
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
        let _closed = woken.receive().await;
    }
}

struct BlockingWaker(Mutex<Option<oneshot::Sender<()>>>);

impl Wake for BlockingWaker {
    fn wake(self: Arc<Self>) {
        block(OFFENCE);
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _gone = sender.send(());
        }
    }
}

/// Starts and cancels, again and again, a job of this name whose destructor blocks.
async fn cancel_again(name: String, shared: Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let blocks = BlocksAtDrop;
        let job = start(&name, async move {
            let _blocks = blocks;
            std::future::pending::<()>().await;
        });
        weald::sleep(REST).await;
        job.cancel();
        let _cancelled = job.await;
    }
}

struct BlocksAtDrop;

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        block(OFFENCE);
    }
}

/// Starts, again and again, a job of this name that panics, and that nothing joins: so the panic is reported.
async fn panic_again(name: String, shared: Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        weald::sleep(REST).await;
        let (ends, mut ended) = oneshot::channel::<()>();
        let panics = async move {
            let _ends = ends;
            panic!("an offence");
        };
        start(&name, panics).detach();
        let _closed = ended.receive().await;
    }
}

/// A panic hook of the program that blocks, until this is dropped.
struct BlockingHook;

impl BlockingHook {
    fn new() -> BlockingHook {
        panic::set_hook(Box::new(|_| block(OFFENCE)));
        BlockingHook
    }
}

impl Drop for BlockingHook {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(panic::take_hook());
        }
    }
}

/// Starts, again and again, a job of this name that unwinds through a destructor that waits.
async fn unwind_again(name: String, shared: Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        weald::sleep(REST).await;
        let _panicked = start(&name, unwind()).await;
    }
}

async fn unwind() {
    let _waits = WaitsAtDrop;
    // No hook is called, which would write to stderr.
    panic::resume_unwind(Box::new(()))
}

struct WaitsAtDrop;

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        weald::sleep(OFFENCE).wait();
    }
}

/// Starts, again and again, a thread of a receptor that blocks.
async fn spawn_again(shared: Arc<Shared>) {
    let Ok(receptor) = Receptor::<()>::start() else {
        return;
    };
    while !shared.stop.load(Ordering::Relaxed) {
        weald::sleep(REST).await;
        let (ends, mut ended) = oneshot::channel::<()>();
        receptor.spawn(move |_| {
            let _ends = ends;
            block(OFFENCE);
        });
        let _closed = ended.receive().await;
    }
    receptor.end();
}

fn compute_until_stopped(length: Duration, shared: &Shared) {
    compute_while(length, || !shared.stop.load(Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_and_no_other_is_taken() {
        assert_eq!(OffenderKind::parse("none").unwrap(), None);
        assert_eq!(
            OffenderKind::parse("just-below").unwrap(),
            Some(OffenderKind::JustBelow)
        );
        let refused = OffenderKind::parse("sleeps").unwrap_err().to_string();
        assert!(refused.contains("destructor"), "{refused}");
    }
}
