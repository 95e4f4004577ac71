//! Tracks every program that this one has started, and all their descendants, and stops all of them.
//!
//! Invariant: once all have been stopped, none is started again, and no caller learns how one ended. So
//! nothing is printed about a run that was cut off.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Held while a child is started, and for good once all have been stopped.
static STARTS: Mutex<()> = Mutex::new(());

/// Ctrl-C ends a child at the same moment as this program receives it. The end of an interrupted child is
/// held back for this long, in case all are about to be stopped.
const SAME_MOMENT: Duration = Duration::from_millis(200);

/// Starts a child. Does not return once all have been stopped.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let _held = starts();
    command.spawn()
}

/// Reports the end of a child. Does not return once all have been stopped.
pub(crate) fn ended(status: ExitStatus) {
    let interrupts = [Signal::INT, Signal::TERM].map(Signal::as_raw);
    if status.signal().is_some_and(|by| interrupts.contains(&by)) {
        #[expect(
            clippy::disallowed_methods,
            reason = "no event says that another interrupt will not come"
        )]
        std::thread::sleep(SAME_MOMENT);
    }
    drop(starts());
}

/// Stops every child and all their descendants. The caller must end the program next. Safe from any
/// thread.
pub fn stop_all() {
    std::mem::forget(starts());
    kill(Vec::new(), getpid());
}

/// Kills `child` and all its descendants. Launchers such as `sh` or `erl` leave the real program behind
/// when only they are killed. A process group of its own would hide the child from Ctrl-C.
pub(crate) fn kill_with(child: Pid) {
    signal(child.as_raw_nonzero().get(), Signal::STOP);
    kill(vec![child.as_raw_nonzero().get()], child);
}

fn starts() -> MutexGuard<'static, ()> {
    STARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills `doomed` and all descendants of `root`. They are halted first, so that none of them starts
/// another one unseen.
fn kill(doomed: Vec<i32>, root: Pid) {
    let mut doomed = doomed;
    loop {
        let mut found = descendants_of(root.as_raw_nonzero().get());
        found.retain(|pid| !doomed.contains(pid));
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|pid| signal(*pid, Signal::STOP));
        doomed.extend(found);
    }
    doomed.iter().for_each(|pid| signal(*pid, Signal::KILL));
}

fn signal(pid: i32, signal: Signal) {
    let Some(pid) = Pid::from_raw(pid) else {
        return;
    };
    // A process that has ended meanwhile counts as killed.
    let _gone = kill_process(pid, signal);
}

fn descendants_of(root: i32) -> Vec<i32> {
    let parents = parents_of_all();
    let mut family = vec![root];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next];
        let children = parents.iter().filter(|(_, of)| *of == parent);
        family.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    family.split_off(1)
}

/// Every process with its parent, as `/proc` lists them now.
fn parents_of_all() -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let mut text = String::new();
            File::open(format!("/proc/{pid}/stat"))
                .ok()?
                .read_to_string(&mut text)
                .ok()?;
            // The name in brackets may contain anything; state and parent follow the last bracket.
            let parent = text
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            Some((pid, parent))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_parent() {
        let myself = i32::try_from(std::process::id()).unwrap();
        assert!(
            parents_of_all()
                .iter()
                .any(|(pid, parent)| *pid == myself && *parent > 0)
        );
    }
}
