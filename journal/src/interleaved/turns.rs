//! The turns of the parties: only the thread that has the turn runs, and a seed chooses who has it next.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::sectors::Random;

pub(super) const AUTHORS: usize = 3;

/// Those who write and sync, and the one that prepares segments.
pub(super) const HANDS: usize = 3;

thread_local! {
    /// Which party this thread is.
    static PARTY: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Whose turn it is.
pub(super) struct Turns {
    state: Mutex<State>,
    /// Where each party waits for its turn.
    calls: [Condvar; AUTHORS + HANDS],
}

struct State {
    random: Random,
    turn: usize,
    /// The parties that have not ended.
    left: Vec<usize>,
}

impl Turns {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            random: Random(seed),
            turn: 0,
            left: (0..AUTHORS + HANDS).collect(),
        };
        Self {
            state: Mutex::new(state),
            calls: Default::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A number that belongs to the interleaving. Only the thread that has the turn asks.
    pub(super) fn below(&self, bound: usize) -> usize {
        self.state().random.below(bound)
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, party: usize) {
        while state.turn != party {
            state = self.calls[party].wait(state).unwrap();
        }
    }

    fn choose(&self, state: &mut State) {
        if !state.left.is_empty() {
            let next = state.random.below(state.left.len());
            state.turn = state.left[next];
            self.calls[state.turn].notify_one();
        }
    }

    /// Lets somebody go on, perhaps the same party.
    pub(super) fn pass(&self) {
        let Some(party) = PARTY.get() else { return };
        let mut state = self.state();
        self.choose(&mut state);
        self.wait(state, party);
    }

    pub(super) fn begin(&self, party: usize) {
        PARTY.set(Some(party));
        self.wait(self.state(), party);
    }

    pub(super) fn end(&self, party: usize) {
        let mut state = self.state();
        state.left.retain(|other| *other != party);
        self.choose(&mut state);
    }

    /// Whether an author is left.
    pub(super) fn is_on(&self) -> bool {
        self.state().left.iter().any(|party| *party < AUTHORS)
    }
}

/// Ends a party, even if it panics.
pub(super) struct End<'a>(pub(super) &'a Turns, pub(super) usize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}
