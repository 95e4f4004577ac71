//! A thread seen from outside: its identity, its name, and how to unpark it.

use std::{fmt, ptr, sync::Arc, thread, time::Instant};

use weald_kernel::Unparker;
use weald_sync::hooks::Parker;

/// A thread of this crate or of the operating system, or any other job: a job can park, too.
#[derive(Clone)]
pub struct Thread(ThreadKind);

#[derive(Clone)]
enum ThreadKind {
    Job(Unparker),
    Os(Arc<OsThread>),
}

/// A thread of the operating system. The parker belongs to [`park`](crate::park()) alone; `block_on` has one of its
/// own.
struct OsThread {
    thread: thread::Thread,
    parker: Arc<Parker>,
}

thread_local! {
    static HERE: Arc<OsThread> = Arc::new(OsThread {
        thread: thread::current(),
        parker: Parker::new(),
    });
}

/// Parks the calling OS thread until it is unparked, or until the deadline. Returns whether it was unparked.
pub(crate) fn park_os(deadline: Option<Instant>) -> bool {
    HERE.with(|here| {
        while !here.parker.take() {
            let Some(deadline) = deadline else {
                here.parker.park();
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            here.parker.park_timeout(left);
        }
        true
    })
}

/// The identity of a thread. No other thread of this program ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(Id);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Id {
    Job(u64),
    Os(thread::ThreadId),
}

/// The calling thread. In a process or another job this is the job, which can be parked and unparked like a
/// thread; outside of jobs, it is the thread of the operating system.
pub fn current() -> Thread {
    Thread(match Unparker::current() {
        Some(job) => ThreadKind::Job(job),
        None => ThreadKind::Os(HERE.with(Arc::clone)),
    })
}

impl Thread {
    pub(crate) fn of_job(job: Unparker) -> Thread {
        Thread(ThreadKind::Job(job))
    }

    /// Ends the thread's [`park`](crate::park()), or its next one. Several unparks count as one.
    pub fn unpark(&self) {
        match &self.0 {
            ThreadKind::Job(job) => job.unpark(),
            ThreadKind::Os(os) => os.parker.waker().wake(),
        }
    }

    /// The thread's identity.
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            ThreadKind::Job(job) => Id::Job(job.number()),
            ThreadKind::Os(os) => Id::Os(os.thread.id()),
        })
    }

    /// The thread's name, if it has one.
    pub fn name(&self) -> Option<String> {
        match &self.0 {
            ThreadKind::Job(job) => job.name().name,
            ThreadKind::Os(os) => os.thread.name().map(str::to_owned),
        }
    }
}

impl PartialEq for Thread {
    /// Whether both are the same thread.
    fn eq(&self, other: &Thread) -> bool {
        match (&self.0, &other.0) {
            (ThreadKind::Job(job), ThreadKind::Job(other)) => job == other,
            (ThreadKind::Os(os), ThreadKind::Os(other)) => {
                ptr::eq(&raw const **os, &raw const **other)
            }
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
