//! The codes that functions return, each with a text, and the sentence of the last error of an OS thread.

use std::{
    borrow::Cow,
    cell::RefCell,
    ffi::{CStr, CString},
    fmt::Display,
};

use weald::SpawnError;

/// What a function returns: `WEALD_OK`, or why it has not done what it was asked for. Later versions may have more
/// codes.
pub type Code = i32;

/// It is done.
pub const WEALD_OK: Code = 0;
/// A pointer is null that must not be.
pub const WEALD_NULL: Code = 1;
/// A number, a size, a flag or a text is not one that the function takes.
pub const WEALD_ARGUMENT: Code = 2;
/// No object has this handle: it was released, or is one of another kind, or is no handle.
pub const WEALD_HANDLE: Code = 3;
/// The time limit passed.
pub const WEALD_TIMED_OUT: Code = 4;
/// The channel is closed, or the process has ended.
pub const WEALD_CLOSED: Code = 5;
/// The calling unit, or the thread that it joins, was cancelled. The unit should return soon: each further wait in it
/// ends with this code at once.
pub const WEALD_CANCELLED: Code = 6;
/// Another call uses the object at this moment, and only one may.
pub const WEALD_BUSY: Code = 7;
/// There is no memory, no stack or no OS thread left, or a limit is reached.
pub const WEALD_NO_ROOM: Code = 8;
/// The runtime is shutting down, or has.
pub const WEALD_SHUT_DOWN: Code = 9;
/// The caller is not in a process.
pub const WEALD_NO_PROCESS: Code = 10;
/// The name is taken.
pub const WEALD_TAKEN: Code = 11;
/// There is no tree, node, attribute, version or process of this name or number.
pub const WEALD_MISSING: Code = 12;
/// The mutex, or the lock, is not held by the caller.
pub const WEALD_NOT_OWNER: Code = 13;
/// The caller holds the mutex, or the lock, already, or would wait for its own end.
pub const WEALD_DEADLOCK: Code = 14;
/// A commit that was made meanwhile conflicts with this one. Edit the newest version, and commit again.
pub const WEALD_CONFLICT: Code = 15;
/// The edit is not possible: the node is a root, or would be below itself.
pub const WEALD_REFUSED: Code = 16;
/// The watch was too slow, and missed commits. It goes on; read the newest version.
pub const WEALD_LAGGED: Code = 17;
/// The system or the journal refused. The sentence of the error says what.
pub const WEALD_SYSTEM: Code = 18;
/// A mistake in this library. The sentence of the error says what happened.
pub const WEALD_INTERNAL: Code = 19;

const TEXTS: [&CStr; 20] = [
    c"it is done",
    c"a pointer is null that must not be",
    c"an argument is not one that the function takes",
    c"no object of this kind has this handle",
    c"the time limit passed",
    c"the channel is closed, or the process has ended",
    c"the unit was cancelled",
    c"another call uses the object at this moment",
    c"there is no room: memory, stacks, OS threads or a limit",
    c"the runtime is shutting down, or has",
    c"the caller is not in a process",
    c"the name is taken",
    c"there is nothing of this name or number",
    c"the lock is not held by the caller",
    c"the caller would wait for itself",
    c"another commit conflicts with this one",
    c"the edit is not possible",
    c"the watch was too slow, and missed commits",
    c"the system or the journal refused",
    c"there is a mistake in this library",
];

/// The text of a code.
pub(crate) fn text(code: Code) -> &'static CStr {
    let text = usize::try_from(code).ok().and_then(|code| TEXTS.get(code));
    text.copied().unwrap_or(c"this is no code of this library")
}

/// Why a function has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    sentence: Cow<'static, str>,
}

/// A failure, with its sentence.
pub(crate) fn failure(code: Code, sentence: impl Into<Cow<'static, str>>) -> Failure {
    let sentence = sentence.into();
    Failure { code, sentence }
}

/// A failure, with the sentence of an error.
pub(crate) fn failed(code: Code, error: &dyn Display) -> Failure {
    failure(code, error.to_string())
}

/// A unit that could not be spawned.
pub(crate) fn not_spawned(error: SpawnError) -> Failure {
    match error {
        SpawnError::ShuttingDown => failed(WEALD_SHUT_DOWN, &error),
        _ => failed(WEALD_NO_ROOM, &error),
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

impl Failure {
    /// Notes the sentence as that of the last error, and returns the code.
    pub(crate) fn note(self) -> Code {
        // Texts of the program may have zero bytes, at which the sentence ends.
        let mut bytes = self.sentence.into_owned().into_bytes();
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(bytes.len()));
        let sentence = CString::new(bytes).unwrap_or_default();
        // An OS thread that ends has no last error any longer.
        let _ended = LAST.try_with(|last| *last.borrow_mut() = sentence);
        self.code
    }
}

/// Calls `act` with the sentence of the calling OS thread's last error, which stays where it is until the next error.
pub(crate) fn with_last<R>(act: impl FnOnce(&CStr) -> R) -> Option<R> {
    LAST.try_with(|last| act(&last.borrow())).ok()
}
