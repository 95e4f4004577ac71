//! Reports never hurt: whatever a subscriber does, the runtime goes on; a flood is limited and counted; without a
//! subscriber reports go to stderr.
//!
//! Each case runs in a program of its own, because there is one reporting thread for a whole program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    fmt::Debug,
    io::Read,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use tools::{until, watch};
use tracing::{field::Field, subscriber::with_default};
use weald_kernel::{Describe, JoinHandle, Runtime, Spawn, blocking, fork::join};

const CHILD: &str = "WEALD_TEST_REPORTS";

/// A subscriber that calls a function with the target and text of each event, and with its `left_out`.
struct Calls<F>(F);

impl<F: Fn(&str, u64) + Send + Sync + 'static> tracing::Subscriber for Calls<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String, u64);
        impl tracing::field::Visit for Text {
            fn record_u64(&mut self, field: &Field, value: u64) {
                if field.name() == "left_out" {
                    self.1 = value;
                }
            }

            fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
                self.0 += &format!("{value:?} ");
            }
        }
        let mut text = Text(event.metadata().target().to_owned() + " ", 0);
        event.record(&mut text);
        (self.0)(&text.0, text.1);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// A runtime with one worker whose reports go to `subscriber`.
fn reporting_to(subscriber: impl Fn(&str, u64) + Send + Sync + 'static) -> Runtime {
    with_default(Calls(subscriber), || tools::runtime(1))
}

/// A named job that blocks its thread until the sender sends or is dropped.
fn blocker(runtime: &Runtime, name: &'static str) -> (JoinHandle<()>, mpsc::Sender<()>) {
    let (go, may_go) = mpsc::channel();
    let blocks = async move {
        let _gone = may_go.recv();
    };
    let job = runtime.block_on(async { Spawn::new().name(name).spawn(blocks) });
    (job, go)
}

/// Joined after a job that blocks the only worker: returns only if the worker was retaken.
fn still_serves(runtime: &Runtime) {
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
}

fn panics_unjoined(runtime: &Runtime, times: usize) {
    for _ in 0..times {
        let job: JoinHandle<()> =
            runtime.spawn(async { std::panic::resume_unwind(Box::new("on purpose")) });
        job.detach();
    }
}

fn a_subscriber_panics() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counts = calls.clone();
    let runtime = reporting_to(move |_, _| {
        counts.fetch_add(1, Ordering::SeqCst);
        // The payload panics when it is dropped.
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("a payload");
            }
        }
        std::panic::panic_any(Bomb);
    });
    for round in 0..4 {
        let (job, go) = blocker(&runtime, "a blocker");
        still_serves(&runtime);
        until(|| runtime.metrics().detached > round);
        drop(go);
        runtime.block_on(job).unwrap();
        panics_unjoined(&runtime, 1);
        still_serves(&runtime);
    }
    until(|| calls.load(Ordering::SeqCst) >= 8);
    // A thread that was lost would use up the whole deadline, and be waited for no longer than that.
    let (_job, go) = blocker(&runtime, "left behind");
    still_serves(&runtime);
    drop(go);
    let report = runtime.shutdown(Duration::from_secs(600));
    assert_eq!(report.not_stopped, []);
}

/// A description that is told is no report: it may flush what others wait for.
fn is_told_that_it_takes_long(runtime: &Runtime) {
    #[derive(Debug)]
    struct Tells(Mutex<mpsc::Sender<()>>);
    impl Describe for Tells {
        fn name(&self) -> String {
            "told".to_owned()
        }

        fn takes_long(&self) {
            let _again = self.0.lock().unwrap().send(());
        }
    }
    let (tell, told) = mpsc::channel();
    let described = Spawn::new().described_by(Arc::new(Tells(Mutex::new(tell))));
    let blocks = async move { told.recv().unwrap() };
    let job = runtime.block_on(async { described.spawn(blocks) });
    runtime.block_on(job).unwrap();
}

fn a_subscriber_blocks() {
    let (release, released) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let (began, released) = (Mutex::new(began), Mutex::new(released));
    let runtime = reporting_to(move |text, _| {
        // The test may be over.
        let _unheard = began.lock().unwrap().send(text.to_owned());
        let _gone = released.lock().unwrap().recv();
    });
    let (first, go_first) = blocker(&runtime, "the first");
    assert!(has_begun.recv().unwrap().contains("`the first`"));
    // Reports of both kinds are made while the subscriber blocks; nobody waits for it.
    panics_unjoined(&runtime, 20);
    let (second, go_second) = blocker(&runtime, "the second");
    still_serves(&runtime);
    until(|| runtime.metrics().detached >= 2);
    is_told_that_it_takes_long(&runtime);
    drop((go_first, go_second));
    runtime.block_on(first).unwrap();
    runtime.block_on(second).unwrap();
    // Ends, though the reports cannot be flushed.
    drop(runtime);
    assert!(has_begun.try_recv().is_err());
    drop(release);
    while !has_begun.recv().unwrap().contains("`the second`") {}
}

/// The drop of a runtime waits for the subscriber. The job has announced that, so it is not reported.
fn a_runtime_is_dropped_while_a_subscriber_blocks() {
    let (release, released) = mpsc::channel::<()>();
    let (began, has_begun) = mpsc::channel();
    let (began, released) = (Mutex::new(began), Mutex::new(released));
    let runtime = reporting_to(move |text, _| {
        let _unheard = began.lock().unwrap().send(text.to_owned());
        let _gone = released.lock().unwrap().recv();
    });
    let (first, go_first) = blocker(&runtime, "the first");
    assert!(has_begun.recv().unwrap().contains("`the first`"));
    let other = Runtime::builder().workers(1).build().unwrap();
    let drops = async move { drop(other) };
    let dropper = runtime.block_on(async { Spawn::new().name("the dropper").spawn(drops) });
    runtime.block_on(dropper).unwrap();
    drop(release);
    let (last, go_last) = blocker(&runtime, "the last");
    loop {
        let report = has_begun.recv().unwrap();
        assert!(!report.contains("`the dropper`"), "{report}");
        if report.contains("`the last`") {
            break;
        }
    }
    drop((go_first, go_last));
    runtime.block_on(first).unwrap();
    runtime.block_on(last).unwrap();
}

/// How many reports of panics a subscriber got, and how many were counted as left out.
#[derive(Default)]
struct Tally {
    reports: AtomicUsize,
    left_out: AtomicUsize,
}

impl Tally {
    fn sum(&self) -> usize {
        self.reports.load(Ordering::SeqCst) + self.left_out.load(Ordering::SeqCst)
    }

    fn runtime(self: &Arc<Tally>) -> Runtime {
        let tally = self.clone();
        reporting_to(move |text, left_out| {
            // On a loaded machine a job may be reported to be stuck, too.
            if !text.starts_with("weald::panic ") {
                return;
            }
            match usize::try_from(left_out).unwrap() {
                0 => tally.reports.fetch_add(1, Ordering::SeqCst),
                count => tally.left_out.fetch_add(count, Ordering::SeqCst),
            };
        })
    }
}

fn a_flood() {
    let begun = std::time::Instant::now();
    let tally = Arc::<Tally>::default();
    let runtime = tally.runtime();
    panics_unjoined(&runtime, 1000);
    // The counts come out though nothing more is reported, and before the runtime ends.
    until(|| tally.sum() >= 1000);
    assert_eq!(tally.sum(), 1000);
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    let reports = tally.reports.load(Ordering::SeqCst);
    assert!(
        (10..=10 * (seconds + 1)).contains(&reports),
        "{reports} reports in {seconds} seconds"
    );
}

fn a_flood_at_the_end() {
    let tally = Arc::<Tally>::default();
    let runtime = tally.runtime();
    let begun = Arc::new(AtomicUsize::new(0));
    for _ in 0..1000 {
        let begun = begun.clone();
        let job: JoinHandle<()> = runtime.spawn(async move {
            begun.fetch_add(1, Ordering::SeqCst);
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        job.detach();
    }
    // Not `Metrics::ended`, which counts no job whose thread was detached meanwhile.
    until(|| begun.load(Ordering::SeqCst) == 1000);
    drop(runtime);
    // Whatever the flush of the drop could not wait for on a loaded machine comes later.
    until(|| tally.sum() >= 1000);
    assert_eq!(tally.sum(), 1000);
}

/// Both have jobs of one spawn line that panic.
fn a_flood_beside_another_subscriber() {
    let [many, one] = [(); 2].map(|()| Arc::<Tally>::default());
    let runtimes = [many.runtime(), one.runtime()];
    panics_unjoined(&runtimes[0], 100);
    // Within the second to which the limit applies, before the others are counted.
    until(|| many.sum() >= 10);
    panics_unjoined(&runtimes[1], 1);
    until(|| many.sum() + one.sum() == 101);
    assert_eq!(one.reports.load(Ordering::SeqCst), 1);
    assert_eq!(many.sum(), 100);
}

fn no_subscriber() {
    let runtime = tools::runtime(1);
    let (job, go) = blocker(&runtime, "a silent\nblocker");
    still_serves(&runtime);
    drop(go);
    runtime.block_on(job).unwrap();
}

fn the_default_runtime() {
    let job = Spawn::new().name("the last words");
    let job = weald_kernel::block_on(async {
        job.spawn(async { std::panic::resume_unwind(Box::new("at the end")) })
    });
    until(|| job.is_finished());
    drop::<JoinHandle<()>>(job);
    // Not the end of `main`, which libtest does not reach here; what it does, this does too.
    std::process::exit(0);
}

fn not_stopped() {
    let builder = Runtime::builder().workers(1);
    let runtime = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
    let (_job, go) = blocker(&runtime, "a stubborn one");
    still_serves(&runtime);
    drop(runtime);
    std::mem::forget(go);
}

fn the_global_subscriber() {
    let tally = Arc::<Tally>::default();
    let runtime = tools::runtime(1);
    // Set after the runtime was started.
    let counts = tally.clone();
    let subscriber = Calls(move |_: &str, _| {
        counts.reports.fetch_add(1, Ordering::SeqCst);
    });
    tracing::subscriber::set_global_default(subscriber).unwrap();
    panics_unjoined(&runtime, 1);
    until(|| tally.sum() >= 1);
}

/// A fork cannot yield, so its report gives other advice; which, if it is followed, ends the reports.
fn forks_that_block() {
    let (tell, told) = mpsc::channel();
    let runtime = reporting_to(move |text, _| _ = tell.send(text.to_owned()));
    let fork = |name: &'static str, is_wrapped: bool| {
        let (go, may_go) = mpsc::channel::<()>();
        let fork = move || _ = join(move || may_go.recv(), || ());
        let forks = async move {
            match is_wrapped {
                true => blocking(fork),
                false => fork(),
            }
        };
        let job = runtime.block_on(async { Spawn::new().name(name).spawn(forks) });
        (job, go)
    };
    let (job, go) = fork("forks on a worker", false);
    let report = told.recv().unwrap();
    assert!(report.contains("`forks on a worker`"), "{report}");
    assert!(
        report.contains("wrap the whole fork in weald::blocking; if its parts block"),
        "{report}"
    );
    drop(go);
    runtime.block_on(job).unwrap();
    let (job, go) = fork("forks apart", true);
    // One that blocks later is reported, so there was time for a report that must not come.
    let (later, end) = blocker(&runtime, "a blocker");
    let report = told.recv().unwrap();
    assert!(report.contains("`a blocker`"), "{report}");
    drop((go, end));
    runtime.block_on(job).unwrap();
    runtime.block_on(later).unwrap();
}

/// The tests below run this as a program of its own; an environment variable names the case.
#[test]
fn child() {
    let Ok(case) = std::env::var(CHILD) else {
        return;
    };
    let _watch = watch();
    match case.as_str() {
        "panics" => a_subscriber_panics(),
        "blocks" => a_subscriber_blocks(),
        "drops" => a_runtime_is_dropped_while_a_subscriber_blocks(),
        "flood" => a_flood(),
        "flood at the end" => a_flood_at_the_end(),
        "two floods" => a_flood_beside_another_subscriber(),
        "none" => no_subscriber(),
        "default" => the_default_runtime(),
        "not stopped" => not_stopped(),
        "global" => the_global_subscriber(),
        "forks" => forks_that_block(),
        _ => panic!("no case `{case}`"),
    }
}

/// What the case prints to stderr.
#[track_caller]
fn run(case: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, case)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(child.status.success(), "{}: {stderr}", child.status);
    stderr
}

/// The lines of Weald's own.
fn lines(stderr: &str) -> Vec<&str> {
    let ours = |line: &&str| line.starts_with("weald: ");
    stderr.lines().filter(ours).collect()
}

/// The runtime has stopped, so none of its threads runs the destructor.
#[test]
fn a_destructor_that_panics_in_a_shutdown_is_reported_to_the_runtimes_subscriber() {
    let _watch = watch();
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let subscriber = Calls(move |text: &str, _| {
        let _unheard = tell.lock().unwrap().send(text.to_owned());
    });
    let builder = Runtime::builder().workers(1).spare_threads(0);
    let runtime = with_default(subscriber, || builder.build().unwrap());
    let (begun, begins) = mpsc::channel();
    let waits = async move {
        let _panics = PanicsAtDrop;
        begun.send(()).unwrap();
        std::future::pending::<()>().await;
    };
    runtime.spawn(waits).detach();
    begins.recv().unwrap();
    // Holds the only worker.
    let (holder, go) = blocker(&runtime, "the holder");
    until(|| runtime.metrics().runnable == 0);
    holder.detach();
    runtime.shutdown(Duration::from_millis(20));
    while !told.recv().unwrap().contains("in a leftover") {}
    drop(go);
}

struct PanicsAtDrop;

impl Drop for PanicsAtDrop {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("in a leftover"));
    }
}

#[test]
fn a_subscriber_that_panics_loses_its_reports_and_nothing_else() {
    let stderr = run("panics");
    let [line] = lines(&stderr)[..] else {
        panic!("it is said once: {stderr}");
    };
    assert!(line.contains("subscriber panicked"), "{line}");
}

#[test]
fn a_subscriber_that_blocks_delays_reports_and_nothing_else() {
    assert!(lines(&run("blocks")).is_empty());
}

#[test]
fn a_job_that_drops_a_runtime_while_a_subscriber_blocks_is_not_reported() {
    run("drops");
}

#[test]
fn the_report_of_a_fork_says_to_wrap_the_fork() {
    run("forks");
}

#[test]
fn a_flood_of_reports_is_limited_and_counted() {
    assert!(lines(&run("flood")).is_empty());
}

#[test]
fn a_flood_in_a_runtime_takes_no_report_from_the_subscriber_of_another() {
    assert!(lines(&run("two floods")).is_empty());
}

#[test]
fn what_a_flood_left_out_is_counted_when_the_runtime_ends() {
    run("flood at the end");
}

#[test]
fn without_a_subscriber_reports_go_to_stderr() {
    let stderr = run("none");
    let [line] = lines(&stderr)[..] else {
        panic!("one line: {stderr}");
    };
    assert!(line.contains("`a silent\\nblocker` spawned at kernel/tests/reports.rs"));
    assert!(line.contains("has blocked or computed for"), "{line}");
}

/// The child writes to the side of the terminal's window, where what is written is echoed, an escape as `^[`.
#[test]
fn on_a_terminal_reports_are_in_colour_unless_the_user_wants_none() {
    for (no_color, prefix) in [("", "^[[1;33mweald:^[[0m"), ("1", "weald:")] {
        let _watch = watch();
        let mut options = std::fs::OpenOptions::new();
        let mut window = options.read(true).write(true).open("/dev/ptmx").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, "none")
            .env("NO_COLOR", no_color)
            .stdout(Stdio::null())
            .stderr(window.try_clone().unwrap())
            .spawn()
            .unwrap();
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while !text.contains("has blocked or computed for") {
            let len = window.read(&mut bytes).unwrap();
            text += &String::from_utf8_lossy(&bytes[..len]);
        }
        assert!(child.wait().unwrap().success(), "{text}");
        let begin = format!("{prefix} `a silent\\nblocker` spawned at kernel/tests/reports.rs");
        assert!(text.contains(&begin), "{text}");
        assert_eq!(text.contains("^["), no_color.is_empty(), "{text}");
    }
}

#[test]
fn a_program_that_ends_at_once_shows_its_reports() {
    let stderr = run("default");
    let expected = "`the last words` spawned at kernel/tests/reports.rs";
    assert!(
        lines(&stderr).iter().any(|line| line.contains(expected)),
        "{stderr}"
    );
}

#[test]
fn jobs_that_did_not_stop_are_shown() {
    let stderr = run("not stopped");
    let shown = |line: &&str| line.contains("`a stubborn one`") && line.contains("did not stop");
    assert!(lines(&stderr).iter().any(shown), "{stderr}");
}

#[test]
fn a_global_subscriber_that_is_set_later_gets_the_reports() {
    assert!(lines(&run("global")).is_empty());
}
