//! Jobs that do one thing after the other, and describe which: their names, their kinds, and their panics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    io::{BufRead, BufReader},
    panic::{self, Location},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    task::Poll,
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{Drops, Latch, Token, runtime, until, until_yielding, watch};
use weald_kernel::{
    DEFAULT_STACK, Describe, JoinHandle, Runtime, Spawn, Wait, WorkKind, catch_panic, poll_place,
    yield_now,
};

/// Says which order a job works on.
#[derive(Debug, Default)]
struct Order(AtomicU64);

/// The orders below 100 are of one kind, the others of another.
fn kind_of(order: u64) -> WorkKind {
    let kind = WorkKind::new();
    kind.set(1 + order / 100);
    kind
}

impl Describe for Order {
    fn name(&self) -> String {
        format!("order {}", self.0.load(Ordering::SeqCst))
    }
}

/// Counts how often its job stood still.
#[derive(Debug, Default)]
struct Still(AtomicUsize);

impl Describe for Still {
    fn name(&self) -> String {
        "still".to_owned()
    }

    fn takes_long(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Still {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Panics with this message.
#[derive(Debug)]
struct PanicsWhenTold(&'static str);

impl Describe for PanicsWhenTold {
    fn name(&self) -> String {
        "panics".to_owned()
    }

    fn takes_long(&self) {
        panic!("{}", self.0);
    }
}

#[test]
fn a_panic_of_what_is_told_is_reported_and_the_job_goes_on() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let described = Spawn::new().described_by(Arc::new(PanicsWhenTold("it takes long")));
    let job = runtime.block_on(async { described.spawn(async { yield_now().wait() }) });
    runtime.block_on(job).unwrap();
    let told = "user code that the runtime called panicked, and ends there: it takes long";
    until(|| !reports("weald::panic", told).is_empty());
}

/// The monitor leaves the call to the releasing thread.
#[test]
fn so_is_one_of_what_the_monitor_tells() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, released) = mpsc::channel::<()>();
    let described = Spawn::new().described_by(Arc::new(PanicsWhenTold("it blocks")));
    let job = runtime.block_on(async { described.spawn(async move { released.recv().is_err() }) });
    until(|| !reports("weald::panic", "ends there: it blocks").is_empty());
    drop(release);
    assert!(runtime.block_on(job).unwrap());
}

/// Breaks its promise: it waits without end when it is told. Counts how often it was.
#[derive(Debug, Default)]
struct WaitsWhenTold(AtomicUsize);

impl Describe for WaitsWhenTold {
    fn name(&self) -> String {
        "waits when told".to_owned()
    }

    fn takes_long(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<()>().wait();
    }
}

fn is_cancelled_while_it_is_told(start: impl Fn(Spawn) -> JoinHandle<()>) {
    let _watch = watch();
    let builder = Runtime::builder().workers(2);
    let builder = builder.stuck_after(Duration::from_secs(3_600));
    let runtime = builder.build().unwrap();
    let told = Arc::new(WaitsWhenTold::default());
    let job = runtime.block_on(async { start(Spawn::new().described_by(told.clone())) });
    until(|| told.0.load(Ordering::SeqCst) == 1 && !runtime.waits().jobs.is_empty());
    job.cancel();
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    assert_eq!(told.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_job_is_cancelled_while_what_it_tells_waits() {
    let waits = async || std::future::pending::<()>().wait();
    is_cancelled_while_it_is_told(|spawn| spawn.spawn(waits()));
}

#[test]
fn a_thread_is_cancelled_while_what_it_tells_waits() {
    let waits = || std::future::pending::<()>().wait();
    is_cancelled_while_it_is_told(|spawn| spawn.spawn_fiber(DEFAULT_STACK, waits).unwrap());
}

/// Once for each wait with its stack that does not end at once, and not for a wait of its future.
#[test]
fn a_job_that_waits_with_its_stack_is_told() {
    let _watch = watch();
    // On a busy machine a job may look stuck.
    let builder = Runtime::builder().workers(1);
    let builder = builder.stuck_after(Duration::from_secs(3_600));
    let runtime = builder.build().unwrap();
    let still = Arc::new(Still::default());
    let described = Spawn::new().described_by(still.clone());
    let job = runtime.block_on(async move {
        described.spawn(async move {
            yield_now().await;
            std::future::ready(()).wait();
            let before = still.count();
            yield_now().wait();
            (before, still.count())
        })
    });
    assert_eq!(runtime.block_on(job).unwrap(), (0, 1));
}

#[test]
fn a_job_that_blocks_is_told() {
    let _watch = watch();
    let runtime = runtime(1);
    let still = Arc::new(Still::default());
    let (release, released) = mpsc::channel::<()>();
    let described = Spawn::new().described_by(still.clone());
    let job = runtime.block_on(async move { described.spawn(async move { released.recv() }) });
    until(|| still.count() > 0);
    release.send(()).unwrap();
    runtime.block_on(job).unwrap().unwrap();
}

/// When it is dropped, it says so, and blocks its thread until it is told to go on.
#[derive(Debug)]
struct BlocksWhenDropped(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>);

impl Describe for BlocksWhenDropped {
    fn name(&self) -> String {
        "a job with a description that blocks when it is dropped".to_owned()
    }
}

impl Drop for BlocksWhenDropped {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
        let _ = self.1.lock().unwrap().recv();
    }
}

/// The job ends when nothing else refers to it: otherwise another unit, or nobody, would run the destructor. So a job
/// of the only worker wakes it, and lets go of the waker before it runs. Should another thread get the worker in
/// between, the destructor runs in that job, which has such a name, too. The next job comes when the destructor has
/// begun, and it is released when it was reported: it may take no time otherwise.
#[test]
fn the_destructor_of_a_description_is_named_by_its_job_and_holds_up_no_other() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let ((begun, begins), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let description = Arc::new(BlocksWhenDropped(begun, Mutex::new(released)));
    let ends = Latch::default();
    let ended = ends.clone();
    let job = runtime.block_on(async move {
        let described = Spawn::new().name("blocks at its end");
        described.described_by(description).spawn(ended)
    });
    job.detach();
    // A report that is on its way refers to the description, too.
    until(|| !runtime.waits().jobs.is_empty());
    flushed();
    runtime.block_on(async move {
        let opens = Spawn::new().name("wakes what blocks at its end");
        opens.spawn(async move { ends.open() }).detach();
    });
    begins.recv().unwrap();
    let next = runtime.block_on(async {
        let named = Spawn::new().name("the next job");
        named.spawn(async {})
    });
    runtime.block_on(next).unwrap();
    until(|| !reports("weald::monitor", "blocks at its end").is_empty());
    release.send(()).unwrap();
    flushed();
    assert!(reports("weald::monitor", "the next job").is_empty());
}

const ORDERER: &Location<'static> = Location::caller();

#[test]
fn a_job_that_is_stuck_is_named_by_what_it_does_and_by_the_site_it_was_given() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, released) = mpsc::channel::<()>();
    let order = Arc::new(Order::default());
    let described = Spawn::new().described_by(order.clone()).site(ORDERER);
    let job = runtime.block_on(async move {
        described.spawn(async move {
            order.0.store(4711, Ordering::SeqCst);
            let _released = released.recv();
        })
    });
    let name = format!("`order 4711` spawned at {ORDERER}");
    until(|| !reports("weald::monitor", &name).is_empty());
    drop(release);
    runtime.block_on(job).unwrap();
}

/// Holds the thread of a job that works on the order, until it is dropped.
fn offend(runtime: &Runtime, order: u64, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let stop = stop.clone();
    work(runtime, order, move || {
        until(|| stop.load(Ordering::SeqCst))
    })
}

/// A job of one spawn site and type; tells how often it had to give up its worker before it worked.
fn work(runtime: &Runtime, order: u64, act: impl FnOnce() + Send + 'static) -> JoinHandle<usize> {
    let description = Arc::new(Order(AtomicU64::new(order)));
    let act: Box<dyn FnOnce() + Send> = Box::new(act);
    runtime.block_on(async move {
        let described = Spawn::new().described_by(description).kind(kind_of(order));
        described.spawn(async move {
            let mut moves = 0;
            poll_fn(|cx| {
                let place = poll_place(cx);
                moves += usize::from(place.is_pending());
                place
            })
            .await;
            act();
            moves
        })
    })
}

#[test]
fn after_an_offence_only_work_of_its_kind_leaves_the_workers() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let stop = Arc::new(AtomicBool::new(false));
    let offender = offend(&runtime, 23, &stop);
    until(|| !reports("weald::monitor", "`order 23`").is_empty());
    // The kind stays suspect for a while. A job of it that is spawned now starts in quarantine, where it need not move.
    let others = (0..100).map(|n| 500 + n).chain([24]);
    let moves = others.map(|order| runtime.block_on(work(&runtime, order, || ())).unwrap());
    assert_eq!(moves.sum::<usize>(), 0);
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(offender).unwrap();
}

/// A job that learns what it is to do only while it runs.
#[test]
fn a_job_that_becomes_suspect_moves_once() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let stop = Arc::new(AtomicBool::new(false));
    let spawn = |description: Arc<Order>, act: Box<dyn FnOnce() + Send>| {
        runtime.block_on(async move {
            let (order, kind) = (description.clone(), WorkKind::new());
            let described = Spawn::new().described_by(description).kind(kind.clone());
            described.spawn(async move {
                order.0.fetch_add(1_000, Ordering::SeqCst);
                kind.set(1);
                let mut moves = 0;
                poll_fn(|cx| {
                    let place = poll_place(cx);
                    moves += usize::from(place.is_pending());
                    place
                })
                .await;
                act();
                moves
            })
        })
    };
    let until_stopped = stop.clone();
    let blocks = Box::new(move || until(|| until_stopped.load(Ordering::SeqCst)));
    let offender = spawn(Arc::new(Order(AtomicU64::new(7))), blocks);
    until(|| !reports("weald::monitor", "`order 1007`").is_empty());
    let moves = runtime.block_on(spawn(Arc::new(Order(AtomicU64::new(8))), Box::new(|| ())));
    stop.store(true, Ordering::SeqCst);
    assert_eq!(
        runtime.block_on(offender).unwrap(),
        0,
        "nothing was suspect"
    );
    assert_eq!(moves.unwrap(), 1);
}

#[test]
fn a_caught_panic_is_reported_and_the_job_goes_on() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let order = Arc::new(Order::default());
    let described = Spawn::new().described_by(order.clone());
    let job = runtime.block_on(async move {
        described.spawn(async move {
            order.0.store(88, Ordering::SeqCst);
            let caught: Option<()> = catch_panic(|| panic!("the work fails"));
            order.0.store(0, Ordering::SeqCst);
            yield_now().await;
            caught.is_none()
        })
    });
    assert!(runtime.block_on(job).unwrap());
    flushed();
    let told = reports("weald::panic", "`order 88`");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].text.contains("the work fails"), "{told:?}");
}

#[test]
fn a_cancel_is_not_caught() {
    let _watch = watch();
    let runtime = runtime(1);
    let (waits, waiting) = mpsc::channel();
    let drops = Drops::default();
    let token = drops.token();
    let job = runtime.spawn(async move {
        let _token = token;
        let caught = catch_panic(|| {
            waits.send(()).unwrap();
            std::future::pending::<()>().wait();
        });
        unreachable!("the cancel was caught: {caught:?}");
    });
    waiting.recv().unwrap();
    job.cancel();
    assert!(runtime.block_on(job).unwrap_err().is_cancelled());
    until(|| drops.count() == 1);
}

#[derive(Debug)]
struct Holds(#[allow(dead_code, reason = "only its drop counts")] Counted);

struct Counted(#[allow(dead_code, reason = "only its drop counts")] Token);

impl std::fmt::Debug for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counted")
    }
}

impl Describe for Holds {
    fn name(&self) -> String {
        "holds".to_owned()
    }
}

#[test]
fn a_description_is_dropped_with_its_job() {
    let _watch = watch();
    let runtime = runtime(1);
    let drops = Drops::default();
    let token = Counted(drops.token());
    runtime.block_on(async move {
        let described = Spawn::new().described_by(Arc::new(Holds(token)));
        described.spawn(async {}).await.unwrap();
    });
    runtime.block_on(until_yielding(move || drops.count() == 1));
}

/// Breaks its promise.
#[derive(Debug)]
struct Panics;

impl Describe for Panics {
    fn name(&self) -> String {
        panic!("a description without a name")
    }
}

#[test]
fn a_description_that_panics_ends_neither_the_monitor_nor_a_worker() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (go, may_go) = mpsc::channel::<()>();
    let blocks = runtime.block_on(async move {
        let blocks = Spawn::new()
            .name("described badly")
            .described_by(Arc::new(Panics));
        blocks.spawn(async move { may_go.recv().is_err() })
    });
    until(|| !reports("weald::monitor", "`described badly`").is_empty());
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    drop(go);
    assert!(runtime.block_on(blocks).unwrap());
}

/// A user's own hook asks for the name of the unit that panics.
fn ask_for_names_in_the_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _name = weald_kernel::current_name();
            before(info);
        }));
    });
}

#[test]
fn a_job_whose_description_panics_may_panic() {
    let _watch = watch();
    ask_for_names_in_the_hook();
    let runtime = runtime(1);
    let panics = runtime.block_on(async {
        let described = Spawn::new().described_by(Arc::new(Panics));
        described.spawn(async { panic!("on purpose") })
    });
    let failed: Result<(), _> = runtime.block_on(panics);
    assert!(failed.unwrap_err().is_panic());
}

/// Its name is in a mutex that the job locks.
#[derive(Debug, Default)]
struct Locked(Mutex<String>);

impl Describe for Locked {
    fn name(&self) -> String {
        let name = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        name.clone()
    }
}

#[test]
fn a_job_may_panic_while_it_holds_the_mutex_that_its_description_locks() {
    let _watch = watch();
    ask_for_names_in_the_hook();
    let (runtime, locked) = (runtime(1), Arc::new(Locked::default()));
    let panics = runtime.block_on(async {
        let described = Spawn::new().described_by(locked.clone());
        described.spawn(async move {
            let _name = locked.0.lock().unwrap();
            panic!("on purpose");
        })
    });
    let failed: Result<(), _> = runtime.block_on(panics);
    assert!(failed.unwrap_err().is_panic());
}

/// The job holds the mutex until the shutdown is over.
#[test]
fn a_shutdown_asks_no_description() {
    let _watch = watch();
    let (runtime, locked) = (runtime(1), Arc::new(Locked::default()));
    let ((hold, held), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let described = Spawn::new().name("holds").described_by(locked.clone());
    let holds = runtime.block_on(async {
        described.spawn(async move {
            let _name = locked.0.lock().unwrap();
            hold.send(()).unwrap();
            released.recv().unwrap_err();
        })
    });
    held.recv().unwrap();
    let report = runtime.shutdown(Duration::ZERO);
    let names = report.not_stopped.iter();
    let names: Vec<_> = names.map(|job| job.name.as_deref()).collect();
    assert_eq!(names, [Some("holds")]);
    drop(release);
    holds.wait().unwrap();
}

/// Blocks its thread where it is asked for the name, or dropped; tells on which thread that is.
#[derive(Debug)]
struct Blocks {
    place: Place,
    begun: mpsc::Sender<Option<String>>,
    go: Mutex<mpsc::Receiver<()>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Name,
    Drop,
}

impl Blocks {
    fn block(&self, place: Place) {
        if place == self.place {
            let thread = std::thread::current().name().map(str::to_owned);
            self.begun.send(thread).unwrap();
            let _told = self.go.lock().unwrap().recv();
        }
    }
}

impl Describe for Blocks {
    fn name(&self) -> String {
        self.block(Place::Name);
        "named slowly".to_owned()
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.block(Place::Drop);
    }
}

/// While a description blocks at `place`, a job that blocks holds up nobody. Returns the thread that was in the
/// description.
fn others_run_while_a_description_blocks(place: Place) -> Option<String> {
    collect_reports();
    let runtime = runtime(1);
    let ((begun, begins), (go, goes)) = (mpsc::channel(), mpsc::channel());
    let is_dropped = place == Place::Drop;
    let description = Arc::new(Blocks {
        place,
        begun,
        go: Mutex::new(goes),
    });
    let (release, released) = mpsc::channel::<()>();
    runtime.block_on(async {
        let described = Spawn::new().described_by(description);
        described.spawn(async move { released.recv() }).detach();
    });
    until(|| runtime.metrics().detached == 1);
    if is_dropped {
        // A report holds the description, too.
        until(|| !reports("weald::monitor", "`named slowly`").is_empty());
        drop(release);
    }
    let thread = begins.recv().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let blocks = runtime.spawn(async move { released.recv().is_err() });
    // Another job may drop the description, and is then detached, too.
    until(|| runtime.metrics().detached >= 2);
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    drop(release);
    assert!(runtime.block_on(blocks).unwrap());
    drop(go);
    thread
}

#[test]
fn a_description_that_blocks_is_asked_on_the_reporting_thread_and_stops_nobody() {
    let _watch = watch();
    let thread = others_run_while_a_description_blocks(Place::Name);
    assert_eq!(thread.as_deref(), Some("weald-reports"));
}

#[test]
fn a_description_whose_destructor_blocks_is_dropped_without_a_lock_and_stops_nobody() {
    let _watch = watch();
    others_run_while_a_description_blocks(Place::Drop);
}

const CHILD: &str = "WEALD_TEST_MANY_PANICS";
const PANICS: usize = 500;

/// The test below runs this as a program of its own.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let runtime = runtime(2);
    let again = Arc::new(AtomicUsize::new(0));
    let counted = again.clone();
    runtime.block_on(async move {
        let panics = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("again and again");
        };
        for _ in 0..PANICS {
            assert!(
                weald_kernel::spawn(poll_fn({
                    let panics = panics.clone();
                    move |_| -> Poll<()> { panics() }
                }))
                .await
                .is_err()
            );
        }
        assert!(
            weald_kernel::spawn(async { panic!("elsewhere") })
                .await
                .is_err()
        );
    });
    assert_eq!(again.load(Ordering::SeqCst), PANICS);
}

#[test]
fn the_messages_of_many_panics_at_one_line_are_counted() {
    let _watch = watch();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(child.status.success(), "{stderr}");
    let printed = stderr.matches("again and again").count();
    let named = stderr.matches("weald: the panic was in ").count();
    assert_eq!(stderr.matches("elsewhere").count(), 1, "{stderr}");
    // Ten in each second.
    assert!((10..PANICS / 2).contains(&printed), "{stderr}");
    assert_eq!(named, printed + 1, "{stderr}");
    let counts = stderr.lines().filter_map(|line| {
        let (_, rest) = line.split_once("and ")?;
        let (count, rest) = rest.split_once(" more report")?;
        rest.contains("messages of panics, at kernel/tests/descriptions.rs:")
            .then(|| count.parse::<usize>().unwrap())
    });
    assert_eq!(counts.sum::<usize>(), PANICS - printed, "{stderr}");
}

const ENDLESS: &str = "WEALD_TEST_PANICS_IN_A_PROGRAM_THAT_GOES_ON";

/// The test below runs this as a program of its own, which it ends.
#[test]
#[allow(clippy::disallowed_methods, reason = "a program that goes on")]
fn child_that_goes_on() {
    if std::env::var_os(ENDLESS).is_none() {
        return;
    }
    let runtime = runtime(1);
    // So that the reporting thread waits by then.
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..20 {
        let panics = runtime.spawn(async { panic!("again and again") });
        assert!(runtime.block_on(panics).is_err());
    }
    std::thread::sleep(Duration::from_secs(10));
    // Without the counts that come at the end of a program.
    std::process::abort();
}

#[test]
fn a_count_of_messages_of_panics_waits_neither_for_a_report_nor_for_the_end() {
    let _watch = watch();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_goes_on", "--exact", "--nocapture"])
        .env(ENDLESS, "1")
        // A hook that takes long is a report.
        .env("RUST_BACKTRACE", "0")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut lines = stderr.lines().map(Result::unwrap);
    let is_counted = lines.any(|line| line.contains("messages of panics"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_counted);
}
