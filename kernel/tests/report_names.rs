//! What reports call a unit: by what the user wrote, never by a place inside the kernel.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use futures_channel::mpsc::unbounded;
use futures_util::StreamExt;
use reports::{Report, collect_reports, flushed, reports};
use tools::{Latch, runtime, until, watch};
use weald_kernel::{
    JoinHandle, Runtime, Spawn, Wait,
    callback::{self, CallbackPanic, Owner, When},
    fork, spawn,
};

/// Waits for the monitor's report that names `site`, a line of this file; it names none of the kernel's.
fn reported(site: u32) -> String {
    let site = format!("spawned at kernel/tests/report_names.rs:{site}:");
    until(|| !reports("weald::monitor", &site).is_empty());
    let Report { level, text, .. } = reports("weald::monitor", &site).remove(0);
    assert_eq!(level, tracing::Level::WARN);
    assert!(!text.contains("kernel/src"), "{text}");
    text
}

/// Starts a callback, and returns the line that does.
fn start(owner: Owner, run: impl FnOnce() + Send + 'static) -> u32 {
    callback::once(owner, When::Ready, run).detach();
    line!() - 1
}

#[test]
fn a_callback_is_named_by_its_closure_and_the_line_that_started_it() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, blocked) = mpsc::channel::<()>();
    let run = move || {
        let _released = blocked.recv();
    };
    let site = runtime.block_on(async { start(Owner::runtime(), run) });
    let text = reported(site);
    let name = "`callback report_names::a_callback_is_named";
    assert!(text.contains(name), "{text}");
    drop(release);
}

#[test]
fn a_panic_of_a_callback_tells_the_line_that_started_it() {
    let _watch = watch();
    let runtime = runtime(1);
    let (sender, panics) = mpsc::channel::<CallbackPanic>();
    let job = runtime.spawn(async move {
        Owner::current().on_panic(move |panic| sender.send(panic).unwrap());
        callback::once(Owner::current(), When::Ready, || panic!("it fails")).detach();
        std::future::pending::<()>().await;
    });
    let panic = panics.recv().unwrap();
    assert_eq!(panic.site.file(), "kernel/tests/report_names.rs");
    let text = format!("spawned at {} panicked: it fails", panic.site);
    assert!(panic.to_string().ends_with(&text), "{panic}");
    drop(job);
}

/// Forks, and blocks in the part that another thread takes; tells the line of the fork first.
fn join_blocks(site: &Sender<u32>, blocked: &Mutex<Receiver<()>>) {
    let stolen = Barrier::new(2);
    let first = || {
        stolen.wait();
    };
    let second = || {
        stolen.wait();
        let _released = blocked.lock().unwrap().recv();
    };
    site.send(line!() + 1).unwrap();
    fork::join(first, second);
}

/// As [`join_blocks`], over items.
fn for_each_blocks(site: &Sender<u32>, blocked: &Mutex<Receiver<()>>) {
    let stolen = Barrier::new(2);
    let item = |n| {
        stolen.wait();
        if n == 1 {
            let _released = blocked.lock().unwrap().recv();
        }
    };
    site.send(line!() + 1).unwrap();
    fork::for_each(0..2, item);
}

/// As [`join_blocks`], in a scope.
fn scope_blocks(site: &Sender<u32>, blocked: &Mutex<Receiver<()>>) {
    let stolen = Barrier::new(2);
    site.send(line!() + 1).unwrap();
    fork::scope(|scope| {
        scope.spawn(|| {
            stolen.wait();
            let _released = blocked.lock().unwrap().recv();
        });
        stolen.wait();
    });
}

/// As [`join_blocks`], in a comparison of a sort.
fn sort_blocks(site: &Sender<u32>, blocked: &Mutex<Receiver<()>>) {
    let forker = thread::current().id();
    let is_stolen = AtomicBool::new(false);
    let compare = |a: &u32, b: &u32| {
        if thread::current().id() == forker {
            until(|| is_stolen.load(Ordering::SeqCst));
        } else if !is_stolen.swap(true, Ordering::SeqCst) {
            let _released = blocked.lock().unwrap().recv();
        }
        a.cmp(b)
    };
    let mut items: Vec<u32> = (0..20_000).rev().collect();
    site.send(line!() + 1).unwrap();
    fork::sort_by(&mut items, compare);
    assert!(items.is_sorted());
}

/// Runs `forks` in a job, or on the thread of a `block_on`; the part that blocks is named by the line of the fork.
fn a_part_is_named(forks: fn(&Sender<u32>, &Mutex<Receiver<()>>), in_a_job: bool) {
    let runtime = runtime(2);
    let (sender, site) = mpsc::channel();
    let (release, blocked) = mpsc::channel();
    let blocked = Mutex::new(blocked);
    let run = move || forks(&sender, &blocked);
    thread::scope(|threads| {
        threads.spawn(|| {
            runtime.block_on(async {
                match in_a_job {
                    true => spawn(async move { run() }).await.unwrap(),
                    false => run(),
                }
            });
        });
        let text = reported(site.recv().unwrap());
        assert!(text.contains("`part of a fork` spawned at"), "{text}");
        drop(release);
    });
}

#[test]
fn a_stolen_part_that_blocks_is_named_by_the_line_of_its_fork() {
    let _watch = watch();
    collect_reports();
    for forks in [join_blocks, for_each_blocks, scope_blocks, sort_blocks] {
        a_part_is_named(forks, true);
    }
}

#[test]
fn so_is_one_that_was_forked_on_a_foreign_thread() {
    let _watch = watch();
    collect_reports();
    a_part_is_named(join_blocks, false);
}

#[test]
fn a_job_that_blocks_in_its_own_half_of_a_fork_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, blocked) = mpsc::channel::<()>();
    let first = move || {
        let _released = blocked.recv();
    };
    let (forker,) = runtime.block_on(async {
        let forker = Spawn::new().name("blocks in a fork");
        (forker.spawn(async { fork::join(first, || ()).1 }),)
    });
    until(|| !reports("weald::monitor", "`blocks in a fork`").is_empty());
    drop(release);
    runtime.block_on(forker).unwrap();
}

/// Its worker is retaken while it computes, which is no offence in a fork.
#[test]
fn a_job_that_computes_and_then_blocks_in_a_fork_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, blocked) = mpsc::channel::<()>();
    let metrics = std::sync::Arc::new(runtime);
    let own = metrics.clone();
    let first = move || {
        until(|| own.metrics().detached > 0);
        let _released = blocked.recv();
    };
    let (forker,) = metrics.block_on(async {
        let forker = Spawn::new().name("computes and blocks in a fork");
        (forker.spawn(async { fork::join(first, || ()).1 }),)
    });
    let name = "`computes and blocks in a fork`";
    until(|| !reports("weald::monitor", name).is_empty());
    drop(release);
    metrics.block_on(forker).unwrap();
}

#[test]
fn a_job_that_was_woken_by_the_one_before_it_is_named() {
    const JOBS: usize = 40;
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (release, blocked) = mpsc::channel::<()>();
    // A circle of jobs, each of which wakes the next one, so that nearly all come from the next slot. In the end one
    // of them blocks.
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..JOBS).map(|_| unbounded::<u32>()).unzip();
    senders[0].unbounded_send(0).unwrap();
    let mut blocked = Some(blocked);
    for (index, mut receiver) in receivers.into_iter().enumerate() {
        let next = senders[(index + 1) % JOBS].clone();
        let blocked = blocked.take_if(|_| index == JOBS - 1);
        let blocks = blocked.is_some();
        let run = async move {
            while let Some(round) = receiver.next().await {
                if let (Some(blocked), 100) = (&blocked, round) {
                    let _released = blocked.recv();
                    return;
                }
                let again = u32::from(index == JOBS - 1);
                let _ended = next.unbounded_send(round + again);
            }
        };
        let _job = runtime.block_on(async {
            // A place of its own, so that reports of the others do not use up its share. The system may stop them.
            let job = match blocks {
                true => Spawn::new().name("the end of the circle").spawn(run),
                false => Spawn::new().name("in the circle").spawn(run),
            };
            (job,)
        });
    }
    until(|| !reports("weald::monitor", "`the end of the circle`").is_empty());
    drop(release);
}

#[test]
fn a_job_that_outlasts_a_shutdown_is_named_by_that_only() {
    let _watch = watch();
    collect_reports();
    let builder = Runtime::builder().workers(1);
    // Long enough for the monitor to see that the job does not end.
    let deadline = Duration::from_millis(500);
    let runtime = builder.shutdown_deadline(deadline).build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let blocks = async move {
        let _gone = may_go.recv();
    };
    let named = Spawn::new().name("outlasts the shutdown");
    runtime.block_on(async { named.spawn(blocks).detach() });
    let name = "`outlasts the shutdown`";
    until(|| !reports("weald::monitor", name).is_empty());
    drop(runtime);
    until(|| !reports("weald::shutdown", name).is_empty());
    let of_monitor = reports("weald::monitor", name);
    assert_eq!(of_monitor.len(), 1, "{of_monitor:?}");
    assert!(of_monitor[0].text.contains("has blocked or computed"));
    drop(go);
}

/// The shutdown has asked nobody to end yet, and may wait for long.
#[test]
fn a_kill_of_a_job_that_holds_up_a_drain_is_reported() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let (go, may_go) = mpsc::channel::<()>();
    let blocks = async move {
        let _gone = may_go.recv();
    };
    let named = Spawn::new().name("holds up the drain");
    let (job,) = runtime.block_on(async { (named.spawn(blocks),) });
    let name = "`holds up the drain`";
    until(|| !reports("weald::monitor", name).is_empty());
    let (closes, has_closed) = mpsc::channel();
    let looks = async move {
        while spawn(async {}).await.is_ok() {}
        closes.send(()).unwrap();
    };
    runtime.spawn(looks).detach();
    let shutdown = thread::spawn(move || runtime.shutdown(Duration::from_secs(3600)));
    has_closed.recv().unwrap();
    job.cancel();
    let is_of_kill = |report: &Report| report.text.contains("a kill has been pending");
    until(|| reports("weald::monitor", name).iter().any(is_of_kill));
    drop(go);
    let report = shutdown.join().unwrap();
    assert!(report.not_stopped.is_empty(), "{report:?}");
}

/// Waits in its destructor until its latch opens.
struct WaitsAtDrop(Latch);

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        self.0.clone().wait();
    }
}

/// Such a wait holds an OS thread, because the stack must not be suspended.
#[test]
fn a_job_that_waits_in_a_destructor_while_it_unwinds_is_named() {
    let _watch = watch();
    collect_reports();
    let (runtime, latch) = (runtime(1), Latch::default());
    let waits = WaitsAtDrop(latch.clone());
    let unwinds = async move {
        let _waits = waits;
        std::panic::resume_unwind(Box::new("on purpose"))
    };
    let spawn = Spawn::new().name("waits while it unwinds");
    let job: JoinHandle<()> = runtime.block_on(async { spawn.spawn(unwinds) });
    let named = || reports("weald::monitor", "`waits while it unwinds`");
    until(|| !named().is_empty());
    let Report { level, text, .. } = named().remove(0);
    assert_eq!(level, tracing::Level::WARN);
    assert!(text.contains("in a destructor, while it unwinds"), "{text}");
    let waits = runtime.waits();
    let mut waiting = waits.jobs.iter().map(|waiting| &waiting.job.name);
    assert!(waiting.any(|name| name.as_deref() == Some("waits while it unwinds")));
    latch.open();
    assert!(runtime.block_on(job).unwrap_err().is_panic());
    flushed();
    assert_eq!(named().len(), 1, "once for each wait");
}
