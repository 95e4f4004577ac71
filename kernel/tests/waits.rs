//! `Runtime::waits`: what each job waits for, who holds the lock, and cycles of such waits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    io::Read,
    os::unix::net::UnixStream,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{runtime, until, watch};
use weald_kernel::{
    Done, Interest, IoSource, JobName, JoinHandle, JoinSet, Runtime, Scope, Wait, Waits, scope,
    sleep, timeout,
};
use weald_sync::{Barrier, Event, Mutex, RwLock, channel, holders, reason::Kind};

/// Asks the runtime until exactly `jobs` jobs wait.
fn waits_of(runtime: &Runtime, jobs: usize) -> Waits {
    loop {
        let waits = runtime.waits();
        if waits.jobs.len() == jobs {
            return waits;
        }
        std::thread::yield_now();
    }
}

/// The cycles, each as the sorted lines of its jobs' spawn sites.
fn lines(waits: &Waits) -> Vec<Vec<u32>> {
    let line = |place: &usize| waits.jobs[*place].job.site.line();
    let mut cycles: Vec<Vec<u32>> = waits
        .cycles
        .iter()
        .map(|cycle| cycle.iter().map(line).collect())
        .collect();
    cycles.iter_mut().for_each(|cycle| cycle.sort_unstable());
    cycles
}

#[test]
fn a_job_that_waits_for_a_lock_is_listed_with_the_holder() {
    let _watch = watch();
    let runtime = runtime(2);
    let mutex = Arc::new(Mutex::named("accounts", 0));
    let (sender, receiver) = channel::bounded::<()>(1);
    name_channel(&sender);

    let held = Arc::clone(&mutex);
    let holder = runtime.spawn(async move {
        let _guard = held.lock().await;
        receiver.receive().await
    });
    let holder_site = line!() - 4;
    waits_of(&runtime, 1);
    let waiting = runtime.spawn(async move { *mutex.lock().await });
    let lock_line = line!() - 1;

    let waits = waits_of(&runtime, 2);
    let find = |kind| {
        waits
            .jobs
            .iter()
            .find(|job| job.reason.unwrap().kind == kind)
    };
    let for_lock = find(Kind::Mutex).unwrap();
    assert_eq!(for_lock.reason.unwrap().name.text(), Some("accounts"));
    assert_eq!(for_lock.holder.as_ref().unwrap().site.line(), holder_site);
    let for_value = find(Kind::Receive).unwrap();
    assert_eq!(for_value.reason.unwrap().name.text(), Some("orders"));
    assert_eq!(for_value.holder, None);
    assert!(waits.cycles.is_empty());
    let text = format!("waits for a mutex (`accounts`) at kernel/tests/waits.rs:{lock_line}:");
    assert!(waits.to_string().contains(&text), "{waits}");

    sender.send(()).wait().unwrap();
    assert_eq!(holder.wait().unwrap(), Ok(()));
    assert_eq!(waiting.wait().unwrap(), 0);
    waits_of(&runtime, 0);
}

fn name_channel<T>(sender: &channel::Sender<T>) {
    sender.set_name("orders");
}

#[test]
fn two_jobs_that_hold_what_the_other_wants_are_a_cycle() {
    let _watch = watch();
    let runtime = runtime(2);
    let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let both = channel::unbounded::<()>();
    let go = channel::unbounded::<()>();
    let mut jobs = Vec::new();
    for (first, second) in [(a.clone(), b.clone()), (b, a)] {
        let (both, go) = (both.0.clone(), go.1.clone());
        jobs.push(runtime.spawn(async move {
            let _first = first.lock().await;
            both.send(()).await.unwrap();
            go.receive().await.unwrap();
            drop(second.lock().await);
        }));
    }
    let site = line!() - 7;
    for _ in 0..2 {
        both.1.receive().wait().unwrap();
    }
    for _ in 0..2 {
        go.0.send(()).wait().unwrap();
    }
    loop {
        let waits = runtime.waits();
        if waits.cycles.is_empty() {
            std::thread::yield_now();
            continue;
        }
        assert_eq!(lines(&waits), [[site, site]]);
        assert!(waits.to_string().contains("2 jobs wait for each other: "));
        for job in &waits.jobs {
            assert_eq!(job.reason.unwrap().site.unwrap().line(), site + 4);
        }
        break;
    }
    // Cancelling one job breaks the cycle, and the other job finishes.
    jobs.remove(0).cancel();
    jobs.remove(0).wait().unwrap();
    waits_of(&runtime, 0);
}

#[test]
fn a_job_that_locks_twice_waits_for_itself() {
    let _watch = watch();
    let runtime = runtime(1);
    let job = runtime.spawn(async {
        let mutex = Mutex::new(());
        let _once = mutex.lock().await;
        drop(mutex.lock().await);
    });
    let waits = waits_of(&runtime, 1);
    assert_eq!(waits.cycles, [[0]]);
    assert!(waits.to_string().contains("a job waits for itself: "));
    job.cancel();
    waits_of(&runtime, 0);
}

#[test]
fn a_waiting_reader_is_listed_with_the_writer() {
    let _watch = watch();
    let runtime = runtime(1);
    let lock = Arc::new(RwLock::named("table", 1));
    let held = Arc::clone(&lock);
    let writer = runtime.spawn(async move {
        let _guard = held.write().await;
        std::future::pending::<()>().await;
    });
    let site = line!() - 4;
    waits_of(&runtime, 1);
    let reading = Arc::clone(&lock);
    let reader = runtime.spawn(async move { *reading.read().await });
    let waits = waits_of(&runtime, 2);
    let find = |job: &&weald_kernel::WaitingJob| job.reason.is_some_and(|r| r.kind == Kind::RwLock);
    let waiting = waits.jobs.iter().find(find).unwrap();
    assert_eq!(waiting.holder.as_ref().unwrap().site.line(), site);
    assert_eq!(waiting.reason.unwrap().name.text(), Some("table"));
    writer.cancel();
    assert_eq!(reader.wait().unwrap(), 1);

    // A writer that wants to write again waits for itself.
    let twice = runtime.spawn(async {
        let lock = RwLock::new(());
        let _once = lock.write().await;
        drop(lock.write().await);
    });
    let waits = waits_of(&runtime, 1);
    assert_eq!(waits.cycles, [[0]]);
    twice.cancel();
}

#[test]
fn a_cycle_is_reported_once_without_being_asked_for() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let job = runtime.spawn(async {
        let mutex = Mutex::named("reported once", ());
        let _once = mutex.lock().await;
        drop(mutex.lock().await);
    });
    let reported = || reports("weald::waits", "reported once");
    while reported().is_empty() {
        std::thread::yield_now();
    }
    // After each of these jobs the monitor goes back to sleep, and it checks again before it does.
    for _ in 0..3 {
        let sleep = runtime.spawn(weald_kernel::sleep(std::time::Duration::from_millis(30)));
        sleep.wait().unwrap();
    }
    flushed();
    assert_eq!(reported().len(), 1);
    assert_eq!(reported()[0].level, tracing::Level::ERROR);
    let known = "no worker has anything to run, no timer is pending, and no descriptor is waited for: \
                 a job waits for itself";
    let text = &reported()[0].text;
    assert!(text.contains(known), "{text}");
    job.cancel();
}

/// Whoever waits for the descriptor may end the wait, as far as the report knows.
#[test]
fn a_cycle_beside_a_wait_for_a_descriptor_is_reported_without_more_than_is_known() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (_ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let source = runtime.block_on(async { IoSource::new(theirs).unwrap() });
    let read = |mut io: &UnixStream| io.read(&mut [0; 8]).map(Done::Maybe);
    let mut cx = Context::from_waker(Waker::noop());
    let polled = source.poll_operate(Interest::Read, &mut cx, read);
    assert!(polled.is_pending());
    let job = runtime.spawn(async {
        let mutex = Mutex::named("beside a descriptor", ());
        let _once = mutex.lock().await;
        drop(mutex.lock().await);
    });
    let reported = || reports("weald::waits", "beside a descriptor");
    until(|| !reported().is_empty());
    let text = &reported()[0].text;
    let known = "no worker has anything to run, and no timer is pending: a job waits for itself";
    assert!(text.contains(known), "{text}");
    job.cancel();
}

type Lock = Arc<Mutex<()>>;

fn two_locks(name: &'static str) -> [Lock; 2] {
    [(); 2].map(|()| Arc::new(Mutex::named(name, ())))
}

/// Two jobs, each of which holds what the other one wants; `name` is that of their locks.
fn start_circle(runtime: &Runtime, name: &'static str) -> [JoinHandle<()>; 2] {
    start_circle_of(runtime, two_locks(name))
}

fn start_circle_of(runtime: &Runtime, [a, b]: [Lock; 2]) -> [JoinHandle<()>; 2] {
    let (left, right) = (Arc::new(Barrier::new(2)), [(a.clone(), b.clone()), (b, a)]);
    right.map(|(first, second)| {
        let both = left.clone();
        runtime.spawn(async move {
            let _first = first.lock().await;
            both.wait().await;
            drop(second.lock().await);
        })
    })
}

#[test]
fn a_circle_is_reported_once_while_others_go_on() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let sleeps = runtime.spawn(sleep(Duration::from_secs(3_600)));
    let reported = |name| reports("weald::waits", name);
    // Once beside a job that sleeps, when the workers sleep too; then beside one that goes on.
    let idle = start_circle(&runtime, "a circle beside a sleep");
    until(|| !reported("a circle beside a sleep").is_empty());
    let ticks = runtime.spawn(async {
        loop {
            sleep(Duration::from_millis(1)).await;
        }
    });
    let busy = start_circle(&runtime, "a circle beside ticks");
    until(|| !reported("a circle beside ticks").is_empty());
    // By the same samples, which have found the first one, too.
    flushed();
    for name in ["a circle beside a sleep", "a circle beside ticks"] {
        let of_circle = reported(name);
        assert_eq!(of_circle.len(), 1, "{of_circle:?}");
        let text = &of_circle[0].text;
        let begins = "while others go on: 2 jobs wait for each other: ";
        assert!(text.contains(begins), "{text}");
        assert!(text.contains(" has locked; "), "{text}");
        assert!(text.trim_end().ends_with("they never go on."), "{text}");
        assert!(text.contains("kernel/tests/waits.rs:"), "{text}");
    }
    for job in idle.iter().chain(&busy) {
        job.cancel();
    }
    ticks.cancel();
    sleeps.cancel();
}

/// The second pair of jobs has the blocks of the first one, and locks of its own.
#[test]
fn a_circle_of_later_jobs_is_reported_too() {
    let _watch = watch();
    collect_reports();
    let runtime = Arc::new(runtime(1));
    let names = ["the first circle", "the second circle"];
    // Both before, so that the second ones are at other addresses.
    for (name, locks) in names.map(|name| (name, two_locks(name))) {
        let spawns = runtime.clone();
        // By a job, so that the worker's free blocks are taken.
        let starts = runtime.spawn(async move { start_circle_of(&spawns, locks) });
        let jobs = starts.wait().unwrap();
        until(|| !reports("weald::waits", name).is_empty());
        for job in jobs {
            job.cancel();
            // Once the first one has ended, the second one may get its lock.
            let _ended = job.wait();
        }
    }
}

#[test]
fn a_released_lock_names_no_holder_until_a_waiter_has_found_out() {
    let _watch = watch();
    let runtime = runtime(1);
    let mutex: Lock = Arc::new(Mutex::new(()));
    let held = mutex.clone();
    let (sender, receiver) = channel::bounded::<usize>(1);
    let holder = runtime.spawn(async move {
        let guard = held.lock().await;
        let object = receiver.receive().await.unwrap();
        let before = holders::holder(object);
        drop(guard);
        (before.is_some(), holders::holder(object))
    });
    waits_of(&runtime, 1);
    let waiters = [(); 2].map(|()| {
        let wanted = mutex.clone();
        runtime.spawn(async move { drop(wanted.lock().await) })
    });
    let waits = waits_of(&runtime, 3);
    let mut reasons = waits.jobs.iter().filter_map(|job| job.reason);
    let reason = reasons.find(|reason| reason.kind == Kind::Mutex).unwrap();
    sender.try_send(reason.object).unwrap();
    assert_eq!(holder.wait().unwrap(), (true, None));
    for waiter in waiters {
        waiter.wait().unwrap();
    }
}

#[test]
fn a_circle_with_a_join_by_an_event_is_reported_while_others_go_on() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let sleeps = runtime.spawn(sleep(Duration::from_secs(3_600)));
    let job = runtime.spawn(async {
        let mutex = Arc::new(Mutex::named("a circle with a join", ()));
        let _guard = mutex.lock().await;
        let wanted = mutex.clone();
        let mut other = weald_kernel::spawn(async move { drop(wanted.lock().await) });
        Event::sync(&mut other).await.unwrap();
    });
    until(|| !reports("weald::waits", "a circle with a join").is_empty());
    job.cancel();
    sleeps.cancel();
}

/// A job that holds a lock, and polls a wait for it, in a poll of this kind.
fn wait_for_own_lock(
    runtime: &Runtime,
    mut poll: impl FnMut(&mut Context<'_>, Pin<&mut dyn Future<Output = ()>>) + Send + 'static,
) -> JoinHandle<()> {
    runtime.spawn(async move {
        let mutex = Mutex::named("a wait that may end", ());
        let _once = mutex.lock().await;
        let mut again = pin!(async { drop(mutex.lock().await) });
        poll_fn(|cx| -> Poll<()> {
            poll(cx, again.as_mut());
            Poll::Pending
        })
        .await;
    })
}

#[test]
fn a_circle_that_may_end_for_another_reason_is_not_reported_while_others_go_on() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(2);
    let hour = Duration::from_secs(3_600);
    let mut limit = Box::pin(sleep(hour));
    let jobs = [
        // Another wait of the same job has a limit.
        wait_for_own_lock(&runtime, move |cx, lock| {
            assert!(limit.as_mut().poll(cx).is_pending());
            assert!(lock.poll(cx).is_pending());
        }),
        // A set of futures polls this one, and not the others.
        wait_for_own_lock(&runtime, |_, lock| {
            let polled = lock.poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }),
        runtime.spawn(async move {
            let mutex = Mutex::named("a wait that may end", ());
            let _once = mutex.lock().await;
            drop(timeout(hour, mutex.lock()).await);
        }),
    ];
    until(|| runtime.waits().jobs.len() == jobs.len());
    let circle = start_circle(&runtime, "a circle that does not end");
    until(|| !reports("weald::waits", "a circle that does not end").is_empty());
    flushed();
    let of_others = reports("weald::waits", "a wait that may end");
    assert!(of_others.is_empty(), "{of_others:?}");
    jobs.iter().chain(&circle).for_each(JoinHandle::cancel);
}

/// The line at which the one job that waits for `kind` does so.
fn line_of_wait(runtime: &Runtime, kind: Kind) -> u32 {
    loop {
        let waits = runtime.waits();
        let mut reasons = waits.jobs.iter().filter_map(|job| job.reason);
        if let Some(reason) = reasons.find(|reason| reason.kind == kind) {
            let site = reason.site.unwrap();
            assert_eq!(site.file(), file!());
            return site.line();
        }
        std::thread::yield_now();
    }
}

#[test]
fn waits_are_listed_with_their_lines() {
    let _watch = watch();
    let runtime = runtime(1);
    let lock = Arc::new(RwLock::new(()));
    let _held = lock.try_write().unwrap();
    let wanted = Arc::clone(&lock);
    let reader = runtime.spawn(async move { drop(wanted.read().await) });
    assert_eq!(line_of_wait(&runtime, Kind::RwLock), line!() - 1);
    reader.cancel();

    let (sender, receiver) = channel::bounded::<()>(1);
    let receives = runtime.spawn(async move { receiver.receive().wait() });
    assert_eq!(line_of_wait(&runtime, Kind::Receive), line!() - 1);

    // What notes no line of its own gets that of the wait.
    let joins = runtime.spawn(async move { drop(receives.wait()) });
    assert_eq!(line_of_wait(&runtime, Kind::End), line!() - 1);
    sender.try_send(()).unwrap();
    joins.wait().unwrap();

    let never = runtime.spawn(std::future::pending::<()>());
    let awaits = runtime.spawn(async move { drop(never.await) });
    assert_eq!(line_of_wait(&runtime, Kind::End), line!() - 1);
    awaits.cancel();
    until(|| awaits.is_finished());

    let joins_next = runtime.spawn(async {
        let mut set = JoinSet::new();
        set.spawn(std::future::pending::<()>());
        set.join_next().await
    });
    assert_eq!(line_of_wait(&runtime, Kind::End), line!() - 2);
    joins_next.cancel();

    let in_scope = runtime.spawn(async {
        let never = async |scope: &Scope| scope.spawn(std::future::pending::<()>()).detach();
        scope(never).await;
    });
    assert_eq!(line_of_wait(&runtime, Kind::Children), line!() - 2);
    in_scope.cancel();
}

#[test]
fn what_a_job_waited_for_before_is_forgotten() {
    let _watch = watch();
    let runtime = runtime(1);
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.try_lock().unwrap();
    let taken = Arc::clone(&mutex);
    let job = runtime.spawn(async move {
        let _guard = taken.lock().await;
        std::future::pending::<()>().await;
    });
    let reason = |waits: &Waits| waits.jobs[0].reason.map(|reason| reason.kind);
    assert_eq!(reason(&waits_of(&runtime, 1)), Some(Kind::Mutex));
    drop(guard);
    // The job holds the lock now and waits for something unnamed: no cycle.
    loop {
        let waits = waits_of(&runtime, 1);
        assert!(waits.cycles.is_empty());
        if reason(&waits).is_none() {
            break;
        }
    }
    job.cancel();
    waits_of(&runtime, 0);
}

#[test]
fn the_test_runtime_names_the_cycle() {
    let panic = std::panic::catch_unwind(|| {
        Runtime::test(1).block_on(async {
            let mutex = Mutex::named("twice", ());
            weald_kernel::spawn(async move {
                let _once = mutex.lock().await;
                drop(mutex.lock().await);
            })
            .await
        })
    });
    let message = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("a job waits for itself: "), "{message}");
    assert!(message.contains("`twice`"), "{message}");
}

/// Everything that a report shows is also available as values.
#[test]
fn a_waiting_job_is_listed_with_its_name_and_site() {
    let _watch = watch();
    let runtime = runtime(1);
    let job = runtime.spawn(std::future::pending::<()>());
    let waits = waits_of(&runtime, 1);
    let JobName { name, site, .. } = &waits.jobs[0].job;
    assert_eq!((name.as_deref(), site.file()), (None, file!()));
    job.cancel();
}
