//! A global allocator that sends messages, or spawns jobs: it enters the memory of messages and jobs again, on the same
//! thread, whenever Weald allocates or frees.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    sync::Arc,
};

use weald_kernel::{Address, Mailbox, Runtime, Spawn};

/// As many as empty a thread's cache, so that the allocator goes on to what all threads share.
const RECORDS: u64 = 500;
/// The most calls of the allocator that are recorded in a round.
const MOST: u64 = 100;
/// Jobs in large blocks that a call of the allocator spawns.
const LARGE: u64 = 10;
/// Enough to let the lists of chunks and of free blocks grow several times.
const MESSAGES: u64 = 20_000;

/// Records what the calling thread allocates and frees.
struct Records;

thread_local! {
    /// How many more calls of the allocator are recorded.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// To whom.
    static TO: RefCell<Option<Address<Message>>> = const { RefCell::new(None) };
    /// In place of a message, where a job is spawned.
    static SPAWNS: RefCell<Option<Arc<Runtime>>> = const { RefCell::new(None) };
}

/// Long, so that there are few to a chunk.
struct Message(Option<u64>, [u64; 20]);

impl Message {
    fn new(number: Option<u64>) -> Message {
        Message(number, [7; 20])
    }

    fn number(&self) -> Option<u64> {
        assert_eq!(self.1, [7; 20], "another message shares its block");
        self.0
    }
}

#[global_allocator]
static ALLOCATOR: Records = Records;

// SAFETY: the memory is the system allocator's.
unsafe impl GlobalAlloc for Records {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
        record();
    }
}

fn record() {
    // What the records themselves allocate is not recorded.
    let left = LEFT.replace(0);
    if left == 0 {
        return;
    }
    SPAWNS.with_borrow(|runtime| {
        if let Some(runtime) = runtime {
            (0..RECORDS).for_each(|_| runtime.spawn(job(true)).detach());
            (0..LARGE).for_each(|_| runtime.spawn(large_job(true)).detach());
        }
    });
    TO.with_borrow(|to| {
        let Some(to) = to.as_ref() else { return };
        (0..RECORDS).for_each(|_| to.post(Message::new(None)).ok().unwrap());
    });
    LEFT.set(left - 1);
}

/// A job that ends at once, or never. All are of one size.
async fn job(ends: bool) {
    if !ends {
        std::future::pending::<()>().await;
    }
}

/// As [`job`], in a block that is too large for the kernel's own memory.
async fn large_job(ends: bool) {
    let bytes = [7_u8; 5_000];
    job(ends).await;
    std::hint::black_box(bytes);
}

/// Calls `act`, with records, and returns the number of these.
fn recorded(act: impl FnOnce()) -> u64 {
    LEFT.set(MOST);
    act();
    (MOST - LEFT.replace(0)) * RECORDS
}

/// Sends itself messages and receives them, three times. It never waits, so nothing is scheduled meanwhile.
async fn talks_to_itself(mut mailbox: Mailbox<Message>, runtime: Arc<Runtime>) {
    let address = mailbox.address();
    TO.set(Some(address.clone()));
    for _ in 0..3 {
        let mut records = recorded(|| {
            for number in 0..MESSAGES {
                address.post(Message::new(Some(number))).ok().unwrap();
            }
        });
        let mut wanted = 0..MESSAGES;
        let mut seen = 0;
        records += recorded(|| {
            while !wanted.is_empty() {
                match mailbox.try_receive().unwrap().number() {
                    None => seen += 1,
                    number => assert_eq!(wanted.next(), number),
                }
            }
        });
        records += recorded(|| {
            runtime.trim();
        });
        while let Some(message) = mailbox.try_receive() {
            assert_eq!(message.number(), None);
            seen += 1;
        }
        assert!(records > 0, "nothing was allocated");
        assert_eq!(seen, records);
    }
    TO.set(None);
}

#[test]
fn an_allocator_that_sends_messages_neither_hangs_nor_loses_one() {
    let runtime = Arc::new(Runtime::builder().workers(1).build().unwrap());
    let inner = runtime.clone();
    let job = runtime.block_on(async {
        let job = |mailbox| talks_to_itself(mailbox, inner);
        Spawn::new()
            .spawn_with_mailbox(job)
            .map(|(job, _)| job)
            .ok()
    });
    runtime.block_on(job.unwrap()).unwrap();
}

/// The walk over all jobs notes those that it finds, and must not want memory for that under a lock that a spawn takes.
#[test]
fn an_allocator_that_spawns_does_not_hang_in_a_walk_over_all_jobs() {
    let runtime = Arc::new(Runtime::builder().workers(1).build().unwrap());
    let waiting: Vec<_> = (0..1_000).map(|_| runtime.spawn(job(false))).collect();
    SPAWNS.set(Some(runtime.clone()));
    LEFT.set(MOST);
    let waits = runtime.waits();
    let left = LEFT.replace(0);
    SPAWNS.set(None);
    assert!(left < MOST, "nothing was allocated");
    drop((waits, waiting));
}

/// The set of the jobs in large blocks must not want memory under a lock that a spawn, or the end of a job, takes.
#[test]
fn an_allocator_that_spawns_does_not_hang_in_the_set_of_large_jobs() {
    let runtime = Arc::new(Runtime::builder().workers(1).build().unwrap());
    SPAWNS.set(Some(runtime.clone()));
    LEFT.set(MOST);
    let waiting: Vec<_> = (0..2 * MOST)
        .map(|_| runtime.spawn(large_job(false)))
        .collect();
    let left = LEFT.replace(0);
    SPAWNS.set(None);
    assert_eq!(left, 0, "less was allocated than there are jobs");
    drop(waiting);
}
