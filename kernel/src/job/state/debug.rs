//! How a state word is shown.

use std::fmt;

use crate::{
    job::state::{
        BLOCKED, CANCEL, CLOSED, DONE, EXIT_HOOKS, HANDLE, JOINER, LISTENING, LONG, PARKED,
        RECEIVER, SEEN, State, WOKEN, Word,
    },
    sys::Ordering,
};

/// The flags' names, for debugging.
#[rustfmt::skip]
const NAMES: [(usize, &str); 13] = [
    (PARKED, "parked"), (WOKEN, "woken"), (DONE, "done"), (LISTENING, "listening"), (CLOSED, "closed"),
    (CANCEL, "cancel"), (HANDLE, "handle"), (JOINER, "joiner"), (RECEIVER, "receiver"), (BLOCKED, "blocked"),
    (SEEN, "seen"), (LONG, "long"), (EXIT_HOOKS, "exit hooks"),
];

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Word(self.0.load(Ordering::Relaxed));
        let set = NAMES.iter().filter(|(bit, _)| word.has(*bit));
        f.debug_list().entries(set.map(|(_, name)| name)).finish()
    }
}
