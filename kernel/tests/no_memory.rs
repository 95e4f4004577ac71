//! A job whose memory cannot be had is refused when it is spawned: what it would have run is dropped, nothing else is
//! lost, and where a spawn has no error, its caller panics. Jobs that were there before go on.
//!
//! A program of its own, because it limits its address space, and its allocator refuses what is large. What is left
//! suffices for everything but jobs: the kernel takes memory for these in regions, and one more does not fit.

#![allow(
    unsafe_code,
    reason = "an allocator can be defined in no other way; it passes each call on, or refuses it"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    future::poll_fn,
    hint::black_box,
    panic::{self, AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tools::{Drops, Token, until_yielding, watch};
use weald_kernel::{
    Address, DEFAULT_STACK, JoinHandle, Mailbox, Runtime, Spawn, SpawnError, sleep, spawn,
    spawn_local,
};

/// What the program may still take when the limit is set; less than a region of the kernel's memory, and more than all
/// threads need for other things.
const LEFT: u64 = 48 << 20;
/// The size of the bodies: more than the kernel's own jobs have, so that none of these finds a block of theirs.
const BODY: usize = 1_800;
/// The size of a body that has no class. The allocator refuses it.
const LARGE: usize = 4 << 20;
/// How often an older job goes on while there is no memory.
const STEPS: usize = 20;

/// Whether the allocator refuses what is large.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);
/// How often it did.
static REFUSALS: AtomicUsize = AtomicUsize::new(0);

struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

// SAFETY: the system's allocator keeps the contract, and an allocator may refuse.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE && IS_LIMITED.load(Ordering::Relaxed) {
            REFUSALS.fetch_add(1, Ordering::Relaxed);
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; every block is the system's.
        unsafe { System.dealloc(block, layout) };
    }
}

type Waiting = (JoinHandle<()>, Address<[u8; BODY]>);

/// Waits for a message for ever.
async fn wait(mut mailbox: Mailbox<[u8; BODY]>, token: Token) {
    let body = black_box([1_u8; BODY]);
    poll_fn(|cx| mailbox.poll_receive(cx)).await;
    black_box(body);
    drop(token);
}

fn spawn_waiting(drops: &Drops) -> Result<Waiting, SpawnError> {
    let token = drops.token();
    Spawn::new().spawn_with_mailbox(move |mailbox| wait(mailbox, token))
}

/// Spawns jobs until one is refused.
fn fill(drops: &Drops) -> Vec<Waiting> {
    let mut waiting = Vec::new();
    let refused = loop {
        match spawn_waiting(drops) {
            Ok(job) => waiting.push(job),
            Err(refused) => break refused,
        }
        assert!(waiting.len() < 100_000, "the system refuses none");
    };
    assert_no_memory(&refused, BODY);
    waiting
}

fn assert_no_memory(refused: &SpawnError, least: usize) {
    let SpawnError::NoMemory { bytes } = *refused else {
        panic!("{refused}");
    };
    assert!((least..2 * least).contains(&bytes), "{bytes}");
    assert!(refused.to_string().contains("refused memory"), "{refused}");
}

/// Ends `jobs`, and waits until their memory is free.
async fn end(jobs: impl Iterator<Item = Waiting>) {
    for (job, _) in jobs {
        job.cancel();
        assert!(job.await.is_err());
    }
}

/// The program may take no more address space than it has now, and [`LEFT`].
fn limit_address_space() {
    let sizes = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = sizes.split(' ').next().unwrap().parse().unwrap();
    let current = Some(pages * 4_096 + LEFT);
    let maximum = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current, maximum }).unwrap();
    IS_LIMITED.store(true, Ordering::Relaxed);
}

/// A job that sleeps after each message, and then counts it.
struct OlderJob {
    job: JoinHandle<()>,
    address: Address<()>,
    counts: mpsc::Receiver<()>,
}

impl OlderJob {
    fn start() -> OlderJob {
        let (count, counts) = mpsc::channel();
        let spawned = Spawn::new().spawn_with_mailbox(|mut mailbox: Mailbox<()>| async move {
            loop {
                poll_fn(|cx| mailbox.poll_receive(cx)).await;
                sleep(Duration::from_millis(1)).await;
                count.send(()).unwrap();
            }
        });
        let (job, address) = spawned.unwrap();
        OlderJob {
            job,
            address,
            counts,
        }
    }

    async fn steps(&self) {
        for _ in 0..STEPS {
            self.address.post(()).unwrap();
            until_yielding(|| self.counts.try_recv().is_ok()).await;
        }
    }

    async fn end(self) {
        self.job.cancel();
        assert!(self.job.await.is_err());
    }
}

/// Every other way to spawn, while there is no memory.
fn nothing_else_can_be_spawned(drops: &Drops) {
    let body = || ([1_u8; BODY], drops.token());
    let hold = |body| async move { drop(black_box(body)) };
    let refused = spawn_local(hold(body())).unwrap_err();
    assert_no_memory(&refused, BODY);
    let token = drops.token();
    let refused = Spawn::new().spawn_local_with_mailbox(move |mailbox| wait(mailbox, token));
    assert_no_memory(&refused.unwrap_err(), BODY);
    let held = body();
    let refused = Spawn::new().spawn_fiber(DEFAULT_STACK, move || drop(black_box(held)));
    assert_no_memory(&refused.unwrap_err(), BODY);

    panics(|| spawn(hold(body())).detach());
    panics(|| Spawn::new().name("named").spawn(hold(body())).detach());
}

fn panics(spawn: impl FnOnce()) {
    // A backtrace would take more memory than is left.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let spawned = catch_unwind(AssertUnwindSafe(spawn));
    panic::set_hook(hook);
    let message = *spawned.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("refused memory"), "{message}");
}

/// A job that is too large for the kernel's own memory, while the program's allocator has nothing of that size.
fn a_large_job_is_refused(drops: &Drops) {
    let spawn_large = || {
        let token = drops.token();
        Spawn::new().spawn_with_mailbox(move |mut mailbox: Mailbox<()>| async move {
            let body = black_box([1_u8; LARGE]);
            poll_fn(|cx| mailbox.poll_receive(cx)).await;
            black_box(body);
            drop(token);
        })
    };
    let refusals = REFUSALS.load(Ordering::Relaxed);
    assert_no_memory(&spawn_large().unwrap_err(), LARGE);
    assert!(REFUSALS.load(Ordering::Relaxed) > refusals);
}

fn without_memory_nothing_is_lost() {
    let drops = Drops::default();
    // No further OS thread: the C library ends a program whose new thread finds no memory.
    let builder = Runtime::builder().workers(1).stuck_after(Duration::MAX);
    let runtime = builder.build().unwrap();
    let older = runtime.block_on(async { OlderJob::start() });
    runtime.block_on(async {
        // Address space for stacks, which the test does not limit.
        let fiber = Spawn::new().spawn_fiber(DEFAULT_STACK, || ()).unwrap();
        fiber.await.unwrap();
        // Blocks for messages and timers.
        older.steps().await;
    });
    limit_address_space();
    runtime.block_on(async {
        a_large_job_is_refused(&drops);
        let mut waiting = fill(&drops);
        let count = waiting.len();
        assert!(count > 1, "{count}");
        nothing_else_can_be_spawned(&drops);
        assert_eq!(
            drops.made() - drops.count(),
            count,
            "what was refused is dropped"
        );
        assert_eq!(
            runtime.metrics().processes,
            count + 1,
            "what was refused has no place under the limit"
        );

        older.steps().await;

        // Half of the jobs end, and as many can be spawned.
        end(waiting.split_off(count / 2).into_iter()).await;
        waiting.extend(fill(&drops));
        // Blocks that other threads have cached are out of reach.
        let again = waiting.len();
        assert!(again > count - count / 8, "{again} of {count}");
        end(waiting.into_iter()).await;
        older.steps().await;
        older.end().await;
    });
    assert_eq!(drops.made(), drops.count());
    assert_eq!(runtime.metrics().processes, 0);
}

#[test]
#[cfg_attr(
    weald_plain_alloc,
    ignore = "a sanitizer needs address space of its own"
)]
fn without_memory_a_spawn_is_refused_and_nothing_is_lost() {
    let _watch = watch();
    // The frames of functions that could have moved a large job are large.
    let large = thread::Builder::new().stack_size(16 * LARGE);
    large
        .spawn(without_memory_nothing_is_lost)
        .unwrap()
        .join()
        .unwrap();
}
