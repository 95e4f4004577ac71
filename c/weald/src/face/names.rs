//! Names of processes.

#![allow(unsafe_code)]

use std::{ffi::c_char, mem::MaybeUninit};

use weald::process::{Name, Pid};

use super::processes::ProcessHandle;
use crate::{
    arguments::text,
    codes::{Code, Failure, WEALD_CLOSED, WEALD_MISSING, WEALD_TAKEN, failed, failure},
    current::{self, ProcessObject},
    guard::{guard, needed},
    handles,
    message::Message,
};

fn name_of(name: *const c_char) -> Result<Name<Message>, Failure> {
    Ok(Name::of(text(name)?))
}

/// Gives a process a name in the runtime of the caller (the default one outside of units). A process may have several.
/// It loses them when it ends. WEALD_TAKEN if another process has the name.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_register(process: ProcessHandle, name: *const c_char) -> Code {
    guard(|| {
        let name = name_of(name)?;
        let process = handles::get::<ProcessObject>(process)?;
        current::note_named(&process);
        let registered = name.register(&process.pid);
        registered.map_err(|error| match process.pid.is_alive() {
            true => failed(WEALD_TAKEN, &error),
            false => failed(WEALD_CLOSED, &error),
        })
    })
}

/// Takes a name back. WEALD_MISSING if no process has it.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_unregister(name: *const c_char) -> Code {
    guard(|| match name_of(name)?.unregister() {
        true => Ok(()),
        false => Err(failure(WEALD_MISSING, "no process has this name")),
    })
}

/// A handle of the process that has a name, to be released as any other. WEALD_MISSING if there is none, or if it is a
/// process that takes other messages than those of this library.
#[unsafe(no_mangle)]
pub extern "C" fn weald_process_find(
    name: *const c_char,
    process: Option<&mut MaybeUninit<ProcessHandle>>,
) -> Code {
    guard(|| {
        let name = name_of(name)?;
        let process = needed(process)?;
        let pid: Pid<Message> = name
            .whereis()
            .map_err(|error| failed(WEALD_MISSING, &error))?;
        process.write(handles::add_shared(current::of_pid(pid))?);
        Ok(())
    })
}
