//! The kernel of Weald: jobs, what they wait for, and the scheduler that decides which job runs next, and where.
//!
//! This file is the table of contents. Modules are grouped in layers, separated by blank lines; the comment above a
//! layer says what it is. A module imports from its own layer and from earlier ones in this list, never from a later
//! one, except through the tables at the end of this file: there the scheduler and the API call later layers
//! (callbacks, forks, the runtime); the job and the reports call the scheduler, as when a runnable is dropped.
//!
//! To follow a message: `Address::post` → `post_link` (`api::mailbox`) → `State::post_to_listener` (`job::state`;
//! `post_to_busy`, and the way ends, if the receiver waits for no message; else `post_to_any`) → `ready_and_true`
//! (`workers::ready`) → `WorkerLoop::run_from` (`workers::worker`) → `poll` (`workers::run`) → `Mailbox::poll_receive`.
//!
//! Deliberately absent: the kernel knows no pid and no exit reason, and never looks into a message. It knows the
//! descriptor of a socket and whether that is ready, and nothing of a connection. Of files and host names it knows only
//! that calls on them may never return, so these get blocking threads of their own.

// On which platforms the kernel runs is in `build.rs`, which ends the build elsewhere.

// The platform: std or loom, and the asymmetric fence.
mod sys;

// Memory: slab blocks, cache lines, and the stacks that code runs on.
mod memory {
    pub(crate) mod blocks;
    pub(crate) mod cache_padded;

    mod cache;
    mod class;
    mod depot;
    mod owned;
    mod plain;
    mod region;
    mod room;
    mod strips;

    pub(crate) use blocks::{
        JobWalk, alloc, alloc_beside, class_of, collect_job_blocks, flush, free, free_of,
        note_joined, trim, try_alloc, with_job_block,
    };
    pub(crate) use class::{BlockKind, Class};
    pub(crate) use owned::Owned;
}
mod stack {
    mod depot;
    pub(crate) mod pool;
    mod sanitizers;
    pub(crate) mod signal_stack;
    pub(crate) mod slot;
    pub(crate) mod switch;
    pub(crate) mod thread_stack;

    pub(crate) use pool::{Claim, claim, flush, give, take, take_claimed, trim};
    pub(crate) use sanitizers::Onto;
    pub use slot::StackError;
    pub(crate) use slot::{LARGEST, PAGE, SMALLEST, Stack};
    pub(crate) use switch::{SavedSp, switch};
}

// Panics: where they happened, and their payloads. Reports: what they tell, and the thread that writes them.
mod report;

// The lock around a worker's core, and the queues of jobs and of sleeping workers.
mod biased_lock;
mod queue {
    pub(crate) mod injector;
    pub(crate) mod queue_counts;
    pub(crate) mod ring;
    pub(crate) mod sharing;
    pub(crate) mod sleepers;
    pub(crate) mod watched_queue;
}

// The job: its state, body and messages, and the names that reports show. It names no feature.
mod job {
    pub(crate) mod attachment;
    pub(crate) mod body;
    pub(crate) mod chain;
    pub(crate) mod exit_hooks;
    pub(crate) mod extensions;
    pub(crate) mod foreign_call;
    pub(crate) mod foreign_waker;
    pub(crate) mod header;
    pub(crate) mod kept_waker;
    pub(crate) mod marks;
    pub(crate) mod message;
    pub(crate) mod name;
    pub(crate) mod reference;
    pub(crate) mod runnable;
    pub(crate) mod state;
    #[cfg(all(test, not(loom)))]
    pub(crate) mod testing;
    pub(crate) mod transition;
    pub(crate) mod unseen;
    pub(crate) mod upcalls;
    pub(crate) mod walked;
    pub(crate) mod work_kind;

    pub(crate) use header::{
        Header, JobPtr, NoMemory, REPEATS, Room, SeenHook, Spec, body_bit, flag, new, new_with,
    };
    pub(crate) use reference::JobRef;
}

// Timers and descriptors, as data that the scheduler works on. (Timers fire in `scheduler::workers::search`.)
mod timer {
    pub(crate) mod arrivals;
    pub(crate) mod clock;
    pub(crate) mod due;
    pub(crate) mod entry;
    pub(crate) mod entry_queue;
    pub(crate) mod phase;
    pub(crate) mod wheel;
}
mod reactor {
    pub(crate) mod poller;
    pub(crate) mod poller_lock;
    pub(crate) mod registry;
    pub(crate) mod slot;
    pub(crate) mod table;

    pub(crate) use registry::{First, Reactor, ReadyBatch, RuntimeGone};
}

// The scheduler: workers and their loop, the threads that serve them, jobs with stacks. Where to find:
// - which job is next, and which threads may touch a worker's run queue (the *ring*): `workers::worker_core`; when
//   thieves may take from it: `queue::sharing`, and `workers::search::prefer`; how: `queue::ring`;
// - where a woken job is queued: `workers::ready` (its head lists the cases), `stackful::pinned` (`PinnedQueue::push`);
// - where a timer fires: `workers::search` (`fire_due`; the monitor, a trim and the stop call its second half,
//   `fire_and_unlock`); where the wake is made: there (`fire`); where a due callback becomes ready: `timer::due`
//   (`Due::add`), and where it runs: `callback::runner` (`Runner::run`);
// - where a fork is stolen: `fork::thief` (`steal_from`; the step on the queue itself is `Deque::steal` in
//   `fork::deque`). A worker without work calls it through `workers::search` (`steal`) and `fork::fork_deques`
//   (`steal_stack_job` chooses the deque, if `admits` allows it); an owner that waits calls it too (`StolenJob::help`);
// - where a stuck worker is retaken: `threads::monitor` (`retake`), handed off: `threads::serve` (`hand_off`);
// - where a worker decides to sleep: `workers::search::sleep`, called by `workers::worker` (`find`);
// - where spare threads are bounded: `workers::shared` (`most_threads`), counted in `threads::pool` (`count_new`);
// - where a panic of a job is caught: `job::runnable` (`poll`), and of a callback: `callback::runner` (`run`); where it
//   is reported if nobody takes the result: `workers::run` (`finish`); where it gets a name: `observe::panics`;
// - where a thread gives its worker away before it blocks: `stackful::wait::block` (`hand_off_worker`);
// - where a stack is suspended: `stackful::stack_context` (`suspend`), called by `stackful::wait`
//   (`first_poll::suspend`, else `wait_on`; a yield: `yields`, most of them without it); resumed: a loop's there
//   (`resume`), a fiber's in `stackful::fiber` (`Fiber::run`), or by another fiber in `stackful::direct`;
// - where a stack is given back: a fiber's in `stackful::fiber` (`settle_end`), a loop's, which left it for good, in
//   `workers::context::stacks` (`give_abandoned`), both to `stack::pool`; where a job may run: `stackful::placement`.
mod scheduler {
    // What the scheduler needs from layers that come later in this list, as traits; what earlier layers call here.
    pub(crate) mod services;
    pub(crate) mod upcalls;
    pub(crate) mod workers {
        pub(crate) mod cancel;
        pub(crate) mod cancelled_timers;
        pub(crate) mod config;
        pub(crate) mod context;
        pub(crate) mod counters;
        pub(crate) mod current;
        pub(crate) mod driven;
        pub(crate) mod limit;
        pub(crate) mod own_process;
        pub(crate) mod ready;
        pub(crate) mod run;
        pub(crate) mod run_word;
        pub(crate) mod search;
        pub(crate) mod serve_end;
        pub(crate) mod shared;
        pub(crate) mod trim;
        pub(crate) mod trim_requests;
        pub(crate) mod waker;
        pub(crate) mod worker;
        pub(crate) mod worker_core;
    }
    pub(crate) mod threads {
        pub(crate) mod blocking_call;
        pub(crate) mod blocking_pool;
        pub(crate) mod blocking_pools;
        pub(crate) mod blocking_threads;
        mod crowd;
        pub(crate) mod detached;
        mod detached_end;
        pub(crate) mod detached_round;
        pub(crate) mod detached_run;
        pub(crate) mod detached_thread;
        pub(crate) mod evict;
        pub(crate) mod held_up;
        mod job_kind;
        pub(crate) mod leftovers;
        pub(crate) mod monitor;
        pub(crate) mod monitor_sleep;
        pub(crate) mod outbox;
        mod overdue;
        mod overdue_watch;
        pub(crate) mod panic_hook_end;
        pub(crate) mod pool;
        pub(crate) mod priority;
        pub(crate) mod quarantine;
        pub(crate) mod queue_watch;
        mod round_memory;
        pub(crate) mod senders;
        pub(crate) mod serve;
        mod suspect_records;
        pub(crate) mod suspects;
        mod thread_times;
        pub(crate) mod unread_times;
        pub(crate) mod visits;
    }
    pub(crate) mod stackful {
        pub(crate) mod direct;
        pub(crate) mod duties;
        pub(crate) mod fiber;
        pub(crate) mod foreign_runtime;
        pub(crate) mod nested;
        pub(crate) mod pinned;
        pub(crate) mod placement;
        pub(crate) mod segment;
        pub(crate) mod stack_context;
        pub(crate) mod visit_run;
        pub(crate) mod wait;
    }
}

// The API: what users spawn, join and wait for.
mod api {
    pub(crate) mod admission;
    pub(crate) mod answer;
    pub(crate) mod blocking;
    pub(crate) mod catch_panic;
    pub(crate) mod describe;
    pub(crate) mod give_up;
    pub(crate) mod io_operation;
    pub(crate) mod io_source;
    pub(crate) mod jobless;
    pub(crate) mod join;
    pub(crate) mod join_set;
    pub(crate) mod mailbox;
    pub(crate) mod offload;
    pub(crate) mod operation;
    pub(crate) mod park;
    pub(crate) mod place;
    pub(crate) mod scope;
    pub(crate) mod spawn;
    pub(crate) mod spawn_fiber;
    pub(crate) mod sync_hooks;
    pub(crate) mod time;
    pub(crate) mod unit;
    pub(crate) mod wanted;
}

// Observation: metrics, waiting jobs, stack overflows, aborts, panics.
mod observe {
    pub(crate) mod metrics;
    pub(crate) mod panics;
    pub(crate) mod signals;
    pub(crate) mod waits;
}

// What the scheduler calls through `FEATURES`: callbacks and forks.
pub mod callback {
    #![doc = include_str!("callback/page.md")]

    // Read `plain` first (the public calls); then `start` (into a worker's list and out of it), `cell` (the block;
    // `near` makes room in it for the site), `group` (the callbacks of one owner), `runner` (the job that runs them).

    mod cell;
    mod group;
    mod near;
    mod plain;
    mod runner;
    mod start;

    pub use group::{CallbackPanic, Owner};
    pub use plain::{Next, once, rounds, rounds_as};
    pub use start::{Handle, When};

    pub(crate) use runner::Runners;
}
pub mod fork {
    #![doc = include_str!("fork/page.md")]

    // Read `join` first; then `stack_job` (the closure in a join's frame), `deque` (which thread gets the closure),
    // `thief` (what a thief makes of the closure) and `stolen_job` (how the owner waits for it). Then `fork_deque` and
    // `root_fork` (to which fork a deque belongs), `forking_job` (which job runs the fork), `fork_deques` (where
    // thieves look, and which parts begin although very many others block), `in_use` (their list), `root_job` and
    // `cancel` (how a cancel reaches forks), and `depth`.
    // On top of `join`: `parts`, `pieces`, `grain` (items in parallel), `sort`, `merge`; chains of adapters: `items`,
    // whose sources are `collections` and `indexed`, and whose `steps` are iterators; `scope` (any number of parts).
    mod cancel;
    mod collections;
    mod depth;
    pub(crate) mod deque;
    pub(crate) mod fork_deque;
    pub(crate) mod fork_deques;
    mod forked_wait;
    pub(crate) mod forking_job;
    mod grain;
    pub(crate) mod in_use;
    mod indexed;
    mod items;
    mod join;
    mod merge;
    mod parts;
    mod pieces;
    mod root_fork;
    mod root_job;
    mod scope;
    mod sort;
    mod stack_job;
    mod steps;
    mod stolen_job;
    mod thief;

    pub use grain::{Grain, for_each, map, reduce, try_for_each, try_map, try_reduce};
    pub use indexed::{Chunks, ChunksMut, Enumerate, IntoChunks, Zip};
    pub use items::{Items, items};
    pub use join::join;
    pub use parts::{IntoParts, Parts};
    pub use scope::{Scope, scope};
    pub use sort::{
        sort, sort_by, sort_by_key, sort_unstable, sort_unstable_by, sort_unstable_by_key,
    };
    pub use steps::{AsIs, Filter, FlatMap, Map, Steps, StillIndexed};

    pub(crate) use {fork_deques::ForkDeques, thief::PART};
}

// The runtime, which owns everything earlier in this list.
mod runtime {
    pub(crate) mod builder;
    pub(crate) mod handle;
    mod holders;
    mod own_runs;
    pub(crate) mod seeds;
    pub(crate) mod shutdown;
    pub(crate) mod testing;
}

// The models of the kernel's protocols.
#[cfg(test)]
#[cfg(any(loom, miri, weald_thread_sanitizer))]
mod models {
    #![doc = include_str!("models/page.md")]
    #![allow(
        clippy::arc_with_non_send_sync,
        reason = "loom runs all its threads on one"
    )]

    mod answers;
    mod arrivals;
    mod callbacks;
    mod ends;
    mod forking_job;
    mod forks;
    mod in_use;
    mod injector;
    mod lazy_jobs;
    #[cfg(not(loom))]
    mod loom_on_std;
    mod made_up;
    mod messages;
    mod reactor;
    mod retake;
    mod ring;
    mod sleep;
    mod state_word;
    mod timer;
    mod trim;
    mod unread;
}

pub use api::jobless::*;
pub use api::{
    admission::SpawnError,
    answer::{AnswerReceiver, AnswerSender, answer},
    blocking::blocking,
    catch_panic::{catch_panic, catch_panic_message, catch_unwinding},
    describe::describe_job,
    give_up::{report_failure, report_given_up},
    io_operation::{IoWait, Operation, Ready},
    io_source::{Done, IoSource, is_runtime_gone},
    join::{JoinError, JoinHandle, Panic},
    join_set::JoinSet,
    mailbox::{
        Address, LongMailbox, Mailbox, PostedMessage, ReceiveSince, SelectiveReceive, UnreadMailbox,
    },
    offload::{ShutDown, offload},
    operation::{NoFreeThread, offload_operation},
    park::{Park, Unparker, park},
    place::{poll_place, poll_place_after},
    scope::{Scope, scope},
    spawn::{Spawn, spawn, spawn_child, spawn_local},
    sync_hooks::{note_wait, note_wait_of},
    time::{
        Elapsed, Interval, Sleep, interval, now, poll_budget, sleep, sleep_until, timeout,
        yield_now,
    },
    unit::{
        AsUnit, Certainty, Unit, UnitPlace, current_runtime, is_shutting_down, others_work,
        serves_worker, worker_index,
    },
    wanted::{wanted_by, wanted_until},
};
pub use job::{
    attachment::{Attachment, Ending},
    marks::Mark,
    work_kind::WorkKind,
};
pub use observe::{
    metrics::Metrics,
    panics::current_name,
    waits::{HeldBackParts, HeldUpJob, UnendedJob, WaitingJob, Waits},
};
pub use reactor::slot::Interest;
pub use report::{Describe, JobName, OperationName, PanicSite};
pub use runtime::{
    builder::{BuildError, Builder},
    handle::Runtime,
    seeds::{Kills, Seeds},
    shutdown::ShutdownReport,
    testing::TestRuntime,
};
pub use scheduler::workers::search::prefer::*;
pub use scheduler::{
    stackful::{
        fiber::{DEFAULT_STACK, with_fiber_word},
        wait::{
            CancelShield, at_once, block::block_in_place, block_on, cancel_point, holds_up,
            is_in_job, wait_to_the_end, wait_until, yield_to_next_fiber, yield_with_stack,
        },
    },
    workers::{config::available_workers, waker::several::wake_all},
};
pub use stack::StackError;
pub use weald_sync::{Wait, backlog::LongChannel};

pub mod user_code {
    //! Where the runtime runs your wakers, destructors, hooks and subscribers, and what each can hold up.
    //!
    #![doc = include_str!("../docs/user-code.md")]
}

/// What stands behind the traits of [`scheduler::services`]. Only this table knows both sides.
pub(crate) static FEATURES: scheduler::services::Features<scheduler::workers::shared::Shared> =
    scheduler::services::Features {
        forks: || Box::new(fork::ForkDeques::new()),
        callbacks: &callback::Runners,
        driver: &runtime::testing::TestDriver,
        default_runtime: runtime::handle::default_shared,
    };

/// By these two the job and the reports call the scheduler; and the job gets the forks' name for their parts.
pub(crate) static JOB_UPCALLS: job::upcalls::JobUpcalls = scheduler::upcalls::of_job(fork::PART);
pub(crate) static REPORT_UPCALLS: report::upcalls::ReportUpcalls = scheduler::upcalls::OF_REPORTS;
