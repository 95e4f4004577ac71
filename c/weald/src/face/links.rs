//! Links and monitors of processes: ends that end others, or that others receive as messages.

#![allow(unsafe_code)]

use std::{ffi::c_void, mem::MaybeUninit, sync::OnceLock};

use weald::process::{self, ExitReason, Inbox, MonitorRef};

use super::processes::{Exit, ProcessHandle, exit_of};
use crate::{
    calling::{here, on_inbox},
    codes::{Code, WEALD_ARGUMENT, failure},
    current::ProcessObject,
    guard::{guard, needed},
    handles::{self, Object},
    message::{Message, bytes_of_c},
};

/// A monitor of a process, for weald_process_demonitor. It belongs to the process that began it.
pub type MonitorHandle = u64;

/// What is behind the program's own bytes in a message that tells how a process ended. Copy it out of the message,
/// where it need not be aligned.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Notice {
    /// The number of the process, as weald_process_number tells it; 0 if it is not known.
    pub process: u64,
    /// How it ended. WEALD_EXIT_UNKNOWN if it had ended before.
    pub exit: Exit,
}

/// A message of the program's own bytes and a notice.
fn notice(own: &[u8], process: u64, exit: Exit) -> Message {
    let mut bytes = own.to_vec();
    bytes.extend(process.to_ne_bytes());
    bytes.extend(exit.kind.to_ne_bytes());
    bytes.extend(exit.code.to_ne_bytes());
    Message::of(&bytes).expect("there is memory for a notice")
}

struct MonitorObject {
    owner: u64,
    reference: MonitorRef,
}

impl Object for MonitorObject {
    fn name() -> &'static str {
        "monitor"
    }
}

/// The number of a process, which no other one has, as notices name it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_number(
    process: ProcessHandle,
    number: Option<&mut MaybeUninit<u64>>,
) -> Code {
    guard(|| {
        let number = needed(number)?;
        let process = handles::get::<ProcessObject>(process)?;
        number.write(process.pid.id().number());
        Ok(())
    })
}

/// Links the calling process with another one: when one of them is cancelled, or returns a code other than 0, the other
/// is cancelled, unless it traps exits. There is one link between two processes, however often they are linked. If the
/// other one has ended already, the caller is cancelled: spawn with WEALD_LINKED what may end soon. WEALD_NO_PROCESS
/// outside of processes.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_link(process: ProcessHandle) -> Code {
    guard(|| {
        let process = handles::get::<ProcessObject>(process)?;
        on_inbox(&*here()?, move |_inbox| process::link(&process.pid))
    })
}

/// Removes the link between the calling process and another one, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_unlink(process: ProcessHandle) -> Code {
    guard(|| {
        let process = handles::get::<ProcessObject>(process)?;
        on_inbox(&*here()?, move |_inbox| process::unlink(&process.pid))
    })
}

/// From now on a link does not cancel the calling process when another one ends, whatever code that returned: the
/// process receives a message, a copy of `length` bytes at `data` and behind them a weald_notice.
/// weald_process_cancel still cancels it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_trap_exits(data: *const c_void, length: usize) -> Code {
    guard(|| {
        let own = bytes_of_c(data, length)?.to_vec();
        on_inbox(&*here()?, move |inbox| {
            inbox.trap_exits(move |signal| {
                let number = signal.from.map_or(0, |from| from.number());
                let exit = match &signal.reason {
                    // It has linked with a process that had ended, and that has cancelled it.
                    ExitReason::NoProcess if signal.by_link => Exit::cancelled(),
                    reason => exit_of(&OnceLock::new(), number, reason),
                };
                notice(&own, number, exit)
            });
        })
    })
}

/// From now on links cancel the calling process again. Notices that have come stay.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_untrap_exits() -> Code {
    guard(|| on_inbox(&*here()?, Inbox::untrap_exits))
}

/// Lets the calling process receive a message when another one ends: a copy of `length` bytes at `data`, and behind
/// them a weald_notice. It comes at once if that one has ended. `monitor`, which may be null, gets a handle, to be
/// released or given to weald_process_demonitor. WEALD_NO_PROCESS outside of processes.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_monitor(
    process: ProcessHandle,
    data: *const c_void,
    length: usize,
    monitor: Option<&mut MaybeUninit<MonitorHandle>>,
) -> Code {
    guard(|| {
        let own = bytes_of_c(data, length)?.to_vec();
        let target = handles::get::<ProcessObject>(process)?;
        let current = here()?;
        let watch = move |inbox: &mut Inbox<Message>| {
            let (pid, ending) = (target.pid.clone(), target);
            let number = pid.id().number();
            inbox.monitor(&pid, move |down| {
                let exit = exit_of(&ending.ending, number, &down.reason);
                notice(&own, number, exit)
            })
        };
        let reference = on_inbox(&current, watch)?;
        if let Some(monitor) = monitor {
            let owner = current.object.pid.id().number();
            monitor.write(handles::add(MonitorObject { owner, reference })?);
        }
        Ok(())
    })
}

/// Ends a monitor of the calling process, and releases its handle. No message comes from it any longer; one that came
/// before is still received. WEALD_ARGUMENT if another process began the monitor.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_demonitor(monitor: MonitorHandle) -> Code {
    guard(|| {
        let current = here()?;
        let object = handles::get::<MonitorObject>(monitor)?;
        if object.owner != current.object.pid.id().number() {
            let sentence = "another process began the monitor";
            return Err(failure(WEALD_ARGUMENT, sentence));
        }
        let reference = object.reference;
        on_inbox(&current, move |inbox| inbox.demonitor(reference))?;
        handles::release(monitor)
    })
}
