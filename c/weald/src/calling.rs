//! The process whose function calls: what is done with its inbox, and with its links.
//!
//! A link ends processes in the kernel, where a return is a normal end. So a process that returns a code other than
//! zero ends with a reason of this library ([`Returned`]). It does so without links, too: one may come until its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use weald::{
    process::{self, ExitReason, Inbox},
    sync::channel,
};

use weald_kernel::Unit;

use crate::{
    codes::{Failure, WEALD_BUSY, WEALD_NO_PROCESS, failure},
    current::{Current, Incoming},
    guard::cancelled,
    message::Message,
    saved,
    waits::wait,
};

/// The process whose function calls.
pub(crate) fn here() -> Result<Arc<Current>, Failure> {
    let sentence = "the caller is not the function of a process: it is an OS thread of the program, a thread, a callback, or forked";
    saved::current().ok_or_else(|| failure(WEALD_NO_PROCESS, sentence))
}

/// An inbox, which one call uses at a time.
pub(crate) fn use_inbox(
    inbox: &Mutex<Inbox<Message>>,
) -> Result<MutexGuard<'_, Inbox<Message>>, Failure> {
    match inbox.try_lock() {
        Ok(inbox) => Ok(inbox),
        Err(TryLockError::Poisoned(inbox)) => Ok(PoisonError::into_inner(inbox)),
        Err(TryLockError::WouldBlock) => Err(failure(WEALD_BUSY, "the process receives already")),
    }
}

/// The reason with which a process ends whose function has returned this code, which is not zero. Those that its links
/// end have the same reason, and have not returned.
#[derive(Debug, PartialEq, Eq)]
struct Returned {
    /// The number of the process that has returned.
    process: u64,
    code: i32,
}

/// The code, not zero, that the process of this number has returned, if that is why it ended.
pub(crate) fn returned(process: u64, reason: &ExitReason) -> Option<i32> {
    let ExitReason::Custom(custom) = reason else {
        return None;
    };
    let returned = custom.downcast_ref::<Returned>()?;
    (returned.process == process).then_some(returned.code)
}

/// Ends the calling process, which has returned `code`, so that its links hear of it.
pub(crate) fn tell_links(code: i32) {
    if code == 0 {
        return;
    }
    if let Some(process) = Unit::current().map(|unit| unit.number()) {
        process::exit(ExitReason::custom(Returned { process, code }));
    }
}

/// Runs code in the calling process, also if its function runs on an OS thread of its own.
pub(crate) fn on_inbox<R: Send + 'static>(
    current: &Current,
    act: impl FnOnce(&mut Inbox<Message>) -> R + Send + 'static,
) -> Result<R, Failure> {
    match &current.incoming {
        Incoming::Inbox(inbox) => Ok(act(&mut *use_inbox(inbox)?)),
        Incoming::Thread { commands, .. } => {
            let (tells, done) = channel::bounded(1);
            let command = Box::new(move |inbox: &mut Inbox<Message>| {
                let _left = tells.try_send(act(inbox));
            });
            // The process has ended.
            commands.try_send(command).map_err(|_| cancelled())?;
            wait(done.receive()).map_err(|_| cancelled())
        }
    }
}
