//! Processes: spawned by function, with messages of bytes, names, and a code at the end.

#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_void},
    mem::MaybeUninit,
    ptr,
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread as os_thread,
};

use weald::{
    process::{self, ExitReason, Inbox, callback, monitor},
    sync::channel,
};
use weald_kernel::{AsUnit, Unit};

use super::{
    general::{ProcessFunction, TaskFunction},
    runtime::{RuntimeHandle, spawn_in},
};
use crate::{
    arguments::{Options, optional_text, options},
    call::{Task, kind, run, task},
    calling::{here, on_inbox, returned, tell_links, use_inbox},
    codes::{
        Code, Failure, WEALD_ARGUMENT, WEALD_CLOSED, WEALD_DEADLOCK, WEALD_NO_ROOM, failed,
        failure, not_spawned,
    },
    current::{Command, Current, Ending, Ends, Incoming, ProcessObject},
    guard::{cancelled, check_cancel, give, guard, needed},
    handles,
    message::{Bytes, Message},
    passes_on::PassesOn,
    saved,
    waits::{wait, wait_at_most},
};

/// A process: a unit with a mailbox. Any thread and any unit may send to it, wait for its end and cancel it. Only the
/// process itself receives.
pub type ProcessHandle = u64;

/// How a unit is spawned. Set `size` to the size of this struct, and everything else to zero or to what is wanted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SpawnOptions {
    /// The size of this struct.
    pub size: usize,
    /// Where; 0: the runtime of the caller, or the default one.
    pub runtime: RuntimeHandle,
    /// The size of the stack in bytes, for a thread, and for a process with an OS thread of its own; 0: the default,
    /// which for a thread is 128 KiB.
    pub stack_size: usize,
    /// WEALD_OWN_THREAD, WEALD_LINKED, or both, for processes; or 0.
    pub flags: u32,
    /// The name of the unit in reports, which is copied; or null.
    pub name: *const c_char,
}

/// The function of the process runs on an OS thread of its own: for languages that keep state with the OS thread, such
/// as an interpreter with a lock, where two units on one OS thread must not interleave. A wait in it blocks that OS
/// thread and nothing else. When the process is cancelled, it ends at once, its function finds no more messages
/// (WEALD_CANCELLED), weald_check_cancel tells it, and other waits of the function go on. What it spawns goes to the
/// default runtime, unless it is linked. The function must return: it must not end its OS thread, as pthread_exit does.
pub const WEALD_OWN_THREAD: u32 = 1;

/// The process is linked with its caller, a process, from the beginning: see weald_process_link. It runs in the runtime
/// of its caller. May be combined with WEALD_OWN_THREAD.
pub const WEALD_LINKED: u32 = 2;

// SAFETY: the size comes first, and the others are numbers and a pointer.
unsafe impl Options for SpawnOptions {
    const DEFAULT: SpawnOptions = SpawnOptions {
        size: size_of::<SpawnOptions>(),
        runtime: 0,
        stack_size: 0,
        flags: 0,
        name: ptr::null(),
    };
}

/// How a process ended: it returned, and `code` is what its function returned.
pub const WEALD_EXIT_RETURNED: i32 = 0;
/// It was cancelled, or its runtime shut down.
pub const WEALD_EXIT_CANCELLED: i32 = 1;
/// It crashed, by a mistake in this library.
pub const WEALD_EXIT_CRASHED: i32 = 2;
/// It had ended before, and it is not known how: it was found by a name, and lost the name meanwhile; or the caller has
/// linked with a process that had ended.
pub const WEALD_EXIT_UNKNOWN: i32 = 3;

/// How a process ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Exit {
    /// One of WEALD_EXIT_RETURNED, WEALD_EXIT_CANCELLED, WEALD_EXIT_CRASHED, WEALD_EXIT_UNKNOWN.
    pub kind: i32,
    /// What its function returned; 0 if it did not return.
    pub code: i32,
}

/// Spawns a process, which calls `function` with `context`. It ends when the function returns, with the code that it
/// returns. `options` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_spawn(
    options: *const SpawnOptions,
    function: ProcessFunction,
    context: *mut c_void,
    process: Option<&mut MaybeUninit<ProcessHandle>>,
) -> Code {
    guard(|| {
        let options = self::options(options)?;
        let task = task(function, context)?;
        let process = needed(process)?;
        let name = optional_text(options.name)?;
        let mut builder = process::Builder::new().kind(kind(task));
        if let Some(name) = name {
            builder = builder.name(name.to_owned());
        }
        if options.flags & !(WEALD_OWN_THREAD | WEALD_LINKED) != 0 {
            let sentence = "there is no such flag for a process";
            return Err(failure(WEALD_ARGUMENT, sentence));
        }
        let is_linked = options.flags & WEALD_LINKED != 0;
        if is_linked {
            builder = builder.link();
        }
        let thread = match options.flags & WEALD_OWN_THREAD {
            0 => None,
            _ => Some(own_thread(name, options.stack_size)),
        };
        let spawn = move || match thread {
            None => in_process(builder, task),
            Some(thread) => on_own_thread(builder, thread, task),
        };
        let object = match (is_linked, options.runtime) {
            (false, runtime) => spawn_in(runtime, spawn)?,
            (true, 0) => on_inbox(&*here()?, move |_inbox| spawn())?,
            (true, _) => {
                let sentence = "a linked process runs in the runtime of its caller";
                return Err(failure(WEALD_ARGUMENT, sentence));
            }
        };
        process.write(handles::add_shared(object?)?);
        Ok(())
    })
}

fn own_thread(name: Option<&str>, stack_size: usize) -> os_thread::Builder {
    let thread = os_thread::Builder::new().name(name.unwrap_or("weald-own").to_owned());
    match stack_size {
        0 => thread,
        bytes => thread.stack_size(bytes),
    }
}

/// Spawns a process whose function runs in the process itself.
fn in_process(builder: process::Builder, task: Task<i32>) -> Result<Arc<ProcessObject>, Failure> {
    let ending = Arc::<OnceLock<Ending>>::default();
    let ends = Ends(Arc::clone(&ending));
    let spawned = builder.spawn(move |inbox: Inbox<Message>| async move {
        let object = Arc::new(ProcessObject {
            pid: inbox.pid(),
            ending: Arc::clone(&ends.0),
        });
        let current = Current {
            object,
            incoming: Incoming::Inbox(Mutex::new(inbox)),
        };
        let code = run(task, Some(Arc::new(current)));
        weald_kernel::cancel_point();
        ends.returned(code);
        tell_links(code);
    });
    let pid = spawned.map_err(not_spawned)?.into_pid();
    Ok(Arc::new(ProcessObject { pid, ending }))
}

/// Spawns a process whose function runs on an OS thread, to which the process passes its messages on.
fn on_own_thread(
    builder: process::Builder,
    thread: os_thread::Builder,
    task: Task<i32>,
) -> Result<Arc<ProcessObject>, Failure> {
    let ending = Arc::<OnceLock<Ending>>::default();
    let (to_thread, incoming) = channel::unbounded();
    let (tells, ended) = channel::bounded::<i32>(1);
    let (to_process, commands) = channel::unbounded::<Command>();
    let passes = PassesOn {
        ends: Ends(Arc::clone(&ending)),
        to_thread,
        commands,
    };
    let open = to_process.clone();
    // The OS thread comes first: if there is none, no process ends that links would tell of.
    let (begins, begun) = mpsc::sync_channel::<Arc<Current>>(1);
    let started = thread.spawn(move || {
        // Else the process was not spawned.
        if let Ok(current) = begun.recv() {
            let code = run(task, Some(current));
            // A process that was cancelled does not listen.
            let _cancelled = tells.try_send(code);
        }
    });
    started.map_err(|error| failed(WEALD_NO_ROOM, &error))?;
    let spawned = builder.spawn(async move |inbox| passes.run(inbox, ended, open).await);
    let pid = spawned.map_err(not_spawned)?.into_pid();
    let object = Arc::new(ProcessObject { pid, ending });
    let current = Arc::new(Current {
        object: Arc::clone(&object),
        incoming: Incoming::Thread {
            messages: incoming,
            commands: to_process,
        },
    });
    let sent = begins.send(current);
    debug_assert!(sent.is_ok(), "the thread waits for it");
    Ok(object)
}

/// A handle of the calling process, to be released as any other. WEALD_NO_PROCESS outside of processes, in callbacks
/// and in forked functions.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_self(process: Option<&mut MaybeUninit<ProcessHandle>>) -> Code {
    guard(|| {
        let process = needed(process)?;
        process.write(handles::add_shared(Arc::clone(&here()?.object))?);
        Ok(())
    })
}

/// Sends a copy of `length` bytes at `data` to a process. Never waits. WEALD_CLOSED if the process has ended.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_send(
    process: ProcessHandle,
    data: *const c_void,
    length: usize,
) -> Code {
    guard(|| {
        let process = handles::get::<ProcessObject>(process)?;
        let sent = process.pid.try_send(Message::of_c(data, length)?);
        sent.map_err(|_| failure(WEALD_CLOSED, "the process has ended"))
    })
}

/// Receives the oldest message of the calling process. The bytes belong to the caller. WEALD_TIMED_OUT if none came
/// in time; WEALD_NO_PROCESS outside of processes, in callbacks and in forked functions.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_receive(
    limit_ns: i64,
    message: Option<&mut MaybeUninit<Bytes>>,
) -> Code {
    guard(|| {
        let message = needed(message)?;
        let current = here()?;
        let received = match &current.incoming {
            Incoming::Inbox(inbox) => wait_at_most(use_inbox(inbox)?.receive(), limit_ns)?,
            // A channel that is closed would still yield what it holds.
            Incoming::Thread { .. } if current.is_left_behind() => return Err(cancelled()),
            Incoming::Thread { messages, .. } => {
                wait_at_most(messages.receive(), limit_ns)?.map_err(|_closed| cancelled())?
            }
        };
        received.give(message);
        Ok(())
    })
}

/// Sets `alive` to 1 if the process has not ended, else to 0.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_is_alive(
    process: ProcessHandle,
    alive: Option<&mut MaybeUninit<i32>>,
) -> Code {
    guard(|| {
        let alive = needed(alive)?;
        let process = handles::get::<ProcessObject>(process)?;
        alive.write(i32::from(process.pid.is_alive()));
        Ok(())
    })
}

/// Cancels a process: the wait in which it is, or its next one, ends with WEALD_CANCELLED, and so does each further
/// one; its function should return then. The process ends with WEALD_EXIT_CANCELLED. Does nothing if it has ended.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_cancel(process: ProcessHandle) -> Code {
    guard(|| {
        handles::get::<ProcessObject>(process)?.pid.kill();
        Ok(())
    })
}

/// Waits until a process has ended. `exit`, which may be null, gets how. Any number of callers may wait. The handle is
/// not released. WEALD_DEADLOCK if the caller is the function of this process.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_wait(
    process: ProcessHandle,
    limit_ns: i64,
    exit: Option<&mut MaybeUninit<Exit>>,
) -> Code {
    guard(|| {
        let process = handles::get::<ProcessObject>(process)?;
        if saved::current().is_some_and(|current| current.object.pid == process.pid) {
            return Err(waits_for_itself());
        }
        let down = wait_at_most(monitor(&process.pid), limit_ns)?;
        let number = process.pid.id().number();
        give(exit, exit_of(&process.ending, number, &down.reason));
        Ok(())
    })
}

pub(super) fn waits_for_itself() -> Failure {
    failure(WEALD_DEADLOCK, "the caller would wait for its own end")
}

impl Exit {
    pub(super) fn returned(code: i32) -> Exit {
        let kind = WEALD_EXIT_RETURNED;
        Exit { kind, code }
    }

    pub(super) fn cancelled() -> Exit {
        let kind = WEALD_EXIT_CANCELLED;
        Exit { kind, code: 0 }
    }
}

/// How the process of this number ended: by what it has noted, or by what the kernel tells.
pub(super) fn exit_of(ending: &OnceLock<Ending>, process: u64, reason: &ExitReason) -> Exit {
    let kind = match (ending.get(), reason) {
        (Some(Ending::Returned(code)), _) => return Exit::returned(*code),
        (Some(Ending::Crashed), _) | (None, ExitReason::Crash(_)) => WEALD_EXIT_CRASHED,
        (Some(Ending::Cancelled), _) => WEALD_EXIT_CANCELLED,
        // Any other code is a reason: see `tell_links`.
        (None, ExitReason::Normal) => return Exit::returned(0),
        (None, ExitReason::NoProcess) => WEALD_EXIT_UNKNOWN,
        (None, reason) => match returned(process, reason) {
            Some(code) => return Exit::returned(code),
            // Killed, shut down, or ended by a link.
            None => WEALD_EXIT_CANCELLED,
        },
    };
    Exit { kind, code: 0 }
}

/// Calls `function` with `context`, as a callback, once the process has ended; soon, if it has ended already.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_on_end(
    process: ProcessHandle,
    function: TaskFunction,
    context: *mut c_void,
) -> Code {
    guard(|| {
        let task = task(function, context)?;
        let process = handles::get::<ProcessObject>(process)?;
        on_end(process.pid.as_unit(), task);
        Ok(())
    })
}

/// Calls `task` once the unit has ended.
pub(super) fn on_end(unit: Option<Unit>, task: Task<()>) {
    let ended = unit.as_ref().map(monitor);
    let waits = weald::spawn(async move {
        if let Some(ended) = ended {
            ended.await;
        }
        let owner = callback::Owner::runtime();
        callback::once(owner, callback::When::Ready, move || run(task, None)).detach();
    });
    waits.detach();
}

/// Lets the other units that can run have their turn. Outside of units it lets another OS thread run.
#[unsafe(no_mangle)]
pub extern "C" fn weald_yield() -> Code {
    guard(|| {
        match weald_kernel::is_in_job() {
            true => {
                check_cancel();
                saved::across(weald_kernel::yield_with_stack);
            }
            false => os_thread::yield_now(),
        }
        Ok(())
    })
}

/// Waits for a duration, which is not negative.
#[unsafe(no_mangle)]
pub extern "C" fn weald_sleep(duration_ns: i64) -> Code {
    guard(|| {
        wait(weald::sleep(positive(duration_ns)?));
        Ok(())
    })
}

/// A duration that is not negative.
pub(super) fn positive(duration_ns: i64) -> Result<std::time::Duration, Failure> {
    let duration = crate::waits::duration(duration_ns);
    duration.ok_or_else(|| failure(WEALD_ARGUMENT, "the duration is negative"))
}
