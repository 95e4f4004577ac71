//! A thread from the outside: who it is, and how it is unparked.

use std::{
    fmt, ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use weald_kernel::Unparker;

/// A thread: of this crate, or one of the operating system's; or any other job, which may park too.
#[derive(Clone)]
pub struct Thread(Who);

#[derive(Clone)]
enum Who {
    Job(Unparker),
    Os(Arc<OsThread>),
}

/// A thread of the operating system. Its permit is its own: what wakes it out of `block_on` is another one.
struct OsThread {
    thread: thread::Thread,
    permit: AtomicBool,
}

thread_local! {
    static HERE: Arc<OsThread> = Arc::new(OsThread {
        thread: thread::current(),
        permit: AtomicBool::new(false),
    });
}

/// Parks the calling thread of the operating system until it is unparked, or the deadline. True if it was unparked.
pub(crate) fn park_os(deadline: Option<Instant>) -> bool {
    HERE.with(|here| {
        // Acquire: pairs with the store in `unpark`.
        while !here.permit.swap(false, Ordering::Acquire) {
            let Some(deadline) = deadline else {
                thread::park();
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
        true
    })
}

/// Which thread it is. No other thread of this program ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(Id);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Id {
    Job(u64),
    Os(thread::ThreadId),
}

/// The thread that calls. In a process or another job it is that job, which can be parked and unparked like a
/// thread; outside of jobs, the operating system's thread.
pub fn current() -> Thread {
    Thread(match Unparker::current() {
        Some(job) => Who::Job(job),
        None => Who::Os(HERE.with(Arc::clone)),
    })
}

impl Thread {
    pub(crate) fn of_job(job: Unparker) -> Thread {
        Thread(Who::Job(job))
    }

    /// Ends the thread's [`park`](crate::park()), or its next one; several count as one.
    pub fn unpark(&self) {
        match &self.0 {
            Who::Job(job) => job.unpark(),
            Who::Os(os) => {
                os.permit.store(true, Ordering::Release);
                os.thread.unpark();
            }
        }
    }

    /// The thread's identity.
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Who::Job(job) => Id::Job(job.number()),
            Who::Os(os) => Id::Os(os.thread.id()),
        })
    }

    /// The name that it was given.
    pub fn name(&self) -> Option<String> {
        match &self.0 {
            Who::Job(job) => job.name().name,
            Who::Os(os) => os.thread.name().map(str::to_owned),
        }
    }
}

impl PartialEq for Thread {
    /// Whether both are the same thread.
    fn eq(&self, other: &Thread) -> bool {
        match (&self.0, &other.0) {
            (Who::Job(job), Who::Job(other)) => job == other,
            (Who::Os(os), Who::Os(other)) => ptr::eq(&raw const **os, &raw const **other),
            _ => false,
        }
    }
}

impl Eq for Thread {}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.id())
            .field("name", &self.name())
            .finish()
    }
}
