//! Processes: an async function with a mailbox and a pid, which crashes alone.
//!
#![doc = include_str!("page.md")]

// To follow the end of a unit, read `tell_of_end` in `kernel/src/scheduler/workers/run.rs` (after the future was
// dropped it runs the exit hooks, tells the attachment, and wakes the joiner), `kernel/src/job/attachment.rs` (`tell`),
// `signal/signals/ending` (the reason), `signal/telling` (exit signals along the links, then notices of the monitors),
// and `signal/trap` or `signal/monitor` (a message) or `kernel/src/scheduler/workers/cancel.rs` (`kill`). A signal
// takes effect during its call, and a kill closes the mailbox in the same step.
//
// To follow a call, read `call` (`Pid::call`; the request carries a `Reply`), the mailbox of the callee, `Reply::send`,
// and `kernel/src/api/answer.rs` (`send`, which wakes the caller). The head of `call` says what happens without an
// answer. Those of `names`, `groups`, `supervisor`, `server` and `machine` say how a name, a broadcast, a restart, a
// request and a change of state go.

// How often a unit has survived.
mod survived;

// A process's address and its end; a cell for one value; which senders may put a message into a bounded mailbox.
mod admission;
mod cell;
mod exit;
mod guarded;
mod pid;

// Receiving.
mod inbox;

// Links, monitors and exit signals.
mod signal {
    pub(crate) mod few;
    pub(crate) mod link;
    pub(crate) mod monitor;
    pub(crate) mod signals;
    pub(crate) mod telling;
    pub(crate) mod trap;
}

// Starting a process, or many that are joined as they end.
mod spawn;

mod set;

// Requests with answers, their deadlines, and the registry.
mod call;
mod names;

// Mailboxes of other kinds.
mod kinds {
    pub(crate) mod any_inbox;
    pub(crate) mod bounded;
    mod bounded_address;
    pub(crate) mod bounded_call;
    pub(crate) mod bounded_message;
    pub(crate) mod bounded_priority;
    pub(crate) mod mailbox_kind;
    mod named;
    pub(crate) mod prioritized;
    pub(crate) mod priority;
    pub(crate) mod sorted;
}

// Messages to many.
mod groups;

// Processes that start others again.
mod supervisor;

// Closures that run later, and messages that are sent later.
pub mod callback;
mod timer;

// Processes that answer typed requests, and state machines.
mod machine;
mod server;

// Children of supervisors that are servers or state machines, or have a name.
mod children;

// Threads made of callbacks, behind one process.
pub mod receptor;

pub use admission::{Overflow, Overflowed};
pub use call::{Call, CallError, Reply};
pub use exit::{Crash, Custom, ExitReason};
pub use groups::{Broadcast, Group, GroupChange, GroupError, GroupWatch, Sent, Slow};
pub use inbox::{Inbox, Receive, ReceiveIf, ReceiveSince, TimedOut};
pub use kinds::{
    bounded::{BoundedInbox, BoundedPid, BoundedReceive},
    bounded_call::BoundedCall,
    bounded_message::Bounded,
    bounded_priority::{BoundedPriorityInbox, BoundedPriorityReceive},
    mailbox_kind::MailboxKind,
    prioritized::{Prioritized, PriorityPid},
    priority::{PriorityInbox, PriorityReceive},
    sorted::PriorityMark,
};
pub use machine::{
    Machine, MachineMessage, MachineScope, Transition,
    address::MachineRef,
    bounded::{BoundedMachineMessage, BoundedMachineRef},
};
pub use names::{Name, NameError, RegisterError, Registered, registered};
pub use pid::{Pid, SendError};
pub use server::{
    Accept, Answer, Server, ServerMessage, ServerScope, Step,
    address::ServerRef,
    bounded::{BoundedServerMessage, BoundedServerRef},
};
pub use set::ProcessSet;
pub use signal::{
    link::{exit, link, links, unlink},
    monitor::{Down, Monitor, MonitorRef, monitor},
    signals::ProcessId,
    trap::Exit,
};
pub use spawn::{Body, Builder, Process, spawn, spawn_link, spawn_local, spawn_monitor};
pub use supervisor::{
    Supervisor,
    address::SupervisorPid,
    error::{ChildFault, Failure, GaveUp, StartError},
    handover::{Claimed, Estate, Handover},
    spec::{
        Backoff, ChildCounts, ChildSpec, ChildState, NoUnit, Ready, Restart, Shutdown,
        StartFailure, Starting, Strategy, SupervisorMessage,
    },
};
pub use timer::Timer;
pub use weald_kernel::{AsUnit, Mark, Unit};

pub mod from_erlang {
    //! What the parts of an Erlang or Elixir program are called here, and how they differ.
    //!
    #![doc = include_str!("../docs/from-erlang.md")]
}
