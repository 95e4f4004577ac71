//! Processes as this library makes them: what their handles stand for, and what the running one receives from.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use weald::{
    process::{Inbox, Pid},
    sync::channel,
};
use weald_kernel::Unit;

use crate::{handles::Object, message::Message};

/// What the handle of a process stands for.
pub(crate) struct ProcessObject {
    pub(crate) pid: Pid<Message>,
    pub(crate) ending: Arc<OnceLock<Ending>>,
}

/// How a process has ended, which the kernel tells only those who wait already.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    /// With this code.
    Returned(i32),
    Cancelled,
    Crashed,
}

/// Held by the process itself. Dropped without a word, it was cancelled.
pub(crate) struct Ends(pub(crate) Arc<OnceLock<Ending>>);

impl Ends {
    pub(crate) fn returned(self, code: i32) {
        let _first = self.0.set(Ending::Returned(code));
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let crashes = std::thread::panicking() && !is_cancelled();
        let ending = if crashes {
            Ending::Crashed
        } else {
            Ending::Cancelled
        };
        let _otherwise = self.0.set(ending);
    }
}

impl Object for ProcessObject {
    fn name() -> &'static str {
        "process"
    }
}

/// Whether the calling unit was cancelled.
pub(crate) fn is_cancelled() -> bool {
    Unit::current().is_some_and(|unit| unit.is_cancelled())
}

/// The process that runs.
pub(crate) struct Current {
    pub(crate) object: Arc<ProcessObject>,
    pub(crate) incoming: Incoming,
}

impl Current {
    /// Whether its function runs on an OS thread of its own, and the process has ended before it: by a cancel or a
    /// shutdown.
    pub(crate) fn is_left_behind(&self) -> bool {
        // Not by its pid: the messages are closed a moment before that is dead.
        matches!(self.incoming, Incoming::Thread { .. }) && self.object.ending.get().is_some()
    }
}

/// Where its messages come from.
pub(crate) enum Incoming {
    /// Its function runs in the process itself. One call receives at a time.
    Inbox(Mutex<Inbox<Message>>),
    /// Its function runs on an OS thread of its own, to which the process passes them on.
    Thread {
        messages: channel::Receiver<Message>,
        /// What the process does for its function, which is no unit.
        commands: channel::Sender<Command>,
    },
}

/// Something for a process to do, with its inbox.
pub(crate) type Command = Box<dyn FnOnce(&mut Inbox<Message>) + Send>;

/// The processes that were given names, for those who find them: the kernel knows the pid of a name only.
static NAMED: Mutex<Vec<Arc<ProcessObject>>> = Mutex::new(Vec::new());

/// Notes a process that is given a name.
pub(crate) fn note_named(object: &Arc<ProcessObject>) {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|other| other.pid.is_alive() && other.pid != object.pid);
    named.push(Arc::clone(object));
}

/// What the handle of a process stands for that was found by its name.
pub(crate) fn of_pid(pid: Pid<Message>) -> Arc<ProcessObject> {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = named.iter().find(|known| known.pid == pid) {
        return Arc::clone(known);
    }
    Arc::new(ProcessObject {
        pid,
        ending: Arc::default(),
    })
}
