//! The panic hook: says which unit panicked, and notes for the monitor that a hook runs.
//!
//! The standard library's hook names the OS thread, which runs any number of units. The first runtime wraps the hook
//! that it finds: the wrapper calls it, and then writes the unit's name below. It does so only if it has found the
//! standard library's hook. A user's own hook decides what is printed, and may ask for [`current_name`].
//!
//! The standard library's hook writes, and may take a backtrace, on the thread that panics and under a lock. So for
//! each line of code at most ten panic messages of units a second are printed, and a report counts the others. Panics
//! in closures that a unit has blocking threads run are the unit's.

use std::{
    io::{self, Write},
    panic, ptr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use crate::{
    job::{Header, JobRef},
    report::{self, JobName, hook_frames, panic_site},
    scheduler::{
        threads::{blocking_call, panic_hook_end},
        workers::context,
    },
};

/// The name and the site of the running unit: a job, a process, a thread, a callback, or a part of a fork. In a closure
/// of [`blocking`](crate::blocking()) or [`offload`](crate::offload()), that of its caller. None outside of units.
///
/// Never panics. In a panic hook, while the thread unwinds, and in such a closure it blocks only for an allocation: a
/// unit with a description ([`Spawn::described_by`](crate::Spawn::described_by)) then has the name that it was given at
/// spawn, because the code that panicked may hold a lock that the description wants. Elsewhere the description is
/// asked.
///
/// A panic in a unit is printed by the hook of the program, which knows only the OS thread. The standard library's hook
/// is wrapped when the first runtime starts, so that a line with this name follows. A hook of your own is left as it
/// is, and can print the name itself:
///
/// ```
/// std::panic::set_hook(Box::new(|info| match weald::current_name() {
///     Some(name) => eprintln!("{name}: {info}"),
///     None => eprintln!("{info}"),
/// }));
///
/// assert!(weald::current_name().is_none());
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let reader = weald::Spawn::new().name("reader");
/// let name = reader.spawn(async { weald::current_name() }).await;
/// assert_eq!(name?.unwrap().name.as_deref(), Some("reader"));
/// # Ok::<(), weald::JoinError>(())
/// # }).unwrap();
/// ```
pub fn current_name() -> Option<JobName> {
    let job = context::again().job_ref();
    let running = job.map(|job| match thread::panicking() {
        // A second panic, in the hook, would end the program.
        true => JobName::try_known(job.header()),
        false => JobName::try_of(job.header()),
    });
    running.or_else(blocking_call::name_of_running)
}

/// Wraps the program's panic hook, once.
pub(crate) fn install() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    // A thread that panics may not change the hook.
    if thread::panicking() || INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    let hook = panic::take_hook();
    let is_standard = is_standard(&*hook);
    panic::set_hook(Box::new(move |info| {
        if hook_frames::note_if_learning() {
            return;
        }
        let in_hook = context::again().job_ref().map(InHook::enter);
        if in_hook.is_some() {
            panic_site::note(info);
        }
        let is_in_unit = in_hook.is_some() || blocking_call::running_here().is_some();
        let is_printed = !is_standard || !is_in_unit || is_admitted(info);
        if is_printed {
            hook(info);
        }
        if is_standard
            && is_printed
            && let Some(name) = current_name()
        {
            let name = name.to_string();
            // A name may end with a clause in commas.
            let line = format!("weald: the panic was in {}\n", name.trim_end_matches(','));
            // Not `eprint`, which panics if the line cannot be written.
            let _written = io::stderr().write_all(line.as_bytes());
        }
        drop(in_hook);
    }));
    hook_frames::learn();
}

/// Whether the message of a panic of a unit is within the limit.
fn is_admitted(info: &panic::PanicHookInfo<'_>) -> bool {
    info.location().is_none_or(report::admits_panic_at)
}

type Hook = dyn Fn(&panic::PanicHookInfo<'_>) + Sync + Send + 'static;

/// Whether `hook`, which was just taken, is that of the standard library: another take returns that one.
fn is_standard(hook: &Hook) -> bool {
    let standard = panic::take_hook();
    // Neither has a state, so that their addresses are the same, and their tables if they are the same function.
    ptr::eq(hook, &*standard)
}

/// While it lives, the job's panic hook runs.
struct InHook(JobRef, Instant);

impl InHook {
    fn enter(job: JobRef) -> InHook {
        Header::begin_panic_hook(job.header());
        InHook(job, Instant::now())
    }
}

impl Drop for InHook {
    fn drop(&mut self) {
        panic_hook_end::end(&self.0, self.1.elapsed());
    }
}
