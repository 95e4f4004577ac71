//! An author who waits until a commit is buffered writes for all: the *leader* of a batch.
//!
//! To wake a thread of the journal and to be woken by it takes longer than to write a few commits. So the first author of
//! a batch becomes its leader: it lets the others of its executor run first, and when it is polled again it writes whatever
//! was accepted meanwhile, with one call of the medium. (Group commit with leaders, as RocksDB does it.)
//!
//! - Nobody depends on a leader. It may be dropped, and then a thread writes; or it may not be polled for long, and then a
//!   thread writes that looks after [`LOOK`](crate::leading::LOOK).
//! - A leader writes only what is short, and on a medium that has been quick: an author is to be held up by a write as
//!   rarely as may be. All else is done by the threads.
//! - Whoever waits until a commit is durable leads nothing: a sync is done by a thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use weald_forest::journal::{Durability, Level, Position, When};

use crate::core::Core;

impl Core {
    /// Makes the author of the record at a position the leader, if one is wanted; returns its number.
    fn lead(&self, position: Position) -> Option<u64> {
        let mut state = self.state();
        let number = state.lead(position);
        self.wake_threads(state);
        number
    }

    /// Writes what was accepted, unless a thread has, or is to.
    fn write_as_leader(&self, number: u64) {
        let mut state = self.state();
        if !state.leading.step_down(number) || state.failed.is_some() {
            return;
        }
        if !state.may_write() || !state.may_lead() {
            let all = state.log.cursor.position();
            state.leading.ask_for(all);
            return self.wake_threads(state);
        }
        let step = state.begin_write();
        drop(state);
        let begun = Instant::now();
        self.carry_out(step);
        let ended = Instant::now();
        self.state().leading.has_led(begun, ended);
    }
}

/// Waits until a position is buffered, and leads if need be. Dropping it loses nothing.
pub(crate) struct Buffering {
    core: Arc<Core>,
    position: Position,
    when: When,
    stage: Stage,
}

enum Stage {
    New,
    /// It is the leader with this number, and writes when it is polled again.
    Leader(u64),
    Waiting,
}

impl Buffering {
    pub(crate) fn new(core: &Arc<Core>, position: Position) -> Self {
        Self {
            core: Arc::clone(core),
            position,
            when: core.marks.when(position, Level::Buffered),
            stage: Stage::New,
        }
    }
}

impl Future for Buffering {
    type Output = Durability;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Durability> {
        let this = &mut *self;
        match std::mem::replace(&mut this.stage, Stage::Waiting) {
            Stage::New => {
                if let Some(number) = this.core.lead(this.position) {
                    this.stage = Stage::Leader(number);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            Stage::Leader(number) => this.core.write_as_leader(number),
            Stage::Waiting => {}
        }
        Pin::new(&mut this.when).poll(cx)
    }
}

impl Drop for Buffering {
    fn drop(&mut self) {
        if let Stage::Leader(number) = self.stage {
            let mut state = self.core.state();
            if state.leading.step_down(number) {
                let all = state.log.cursor.position();
                state.leading.ask_for(all);
                self.core.wake_threads(state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use weald_forest::CommitId;
    use weald_forest::journal::{Level, Position};

    use crate::body::Share;
    use crate::core::{Core, Work};
    use crate::leading::LOOK;
    use crate::next_step::State;
    use crate::open::open;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    fn core() -> Core {
        let settings = Settings::new().segment(1 << 20).by_hand();
        let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
        while core.work(Work::Write) || core.work(Work::Sync) {}
        core
    }

    fn append(core: &Core, id: u128, len: usize) -> Position {
        let put = |out: &mut Vec<u8>| out.resize(out.len() + len, 7);
        let id = CommitId(id);
        let position = core.state().log.put_short((len, Share::Most), id, put);
        position.unwrap()
    }

    /// Lets the leader be one for as long as the test takes.
    fn stay(state: &mut State) {
        let later = Instant::now() + Duration::from_secs(3600);
        state.leading.set_since(later);
    }

    #[test]
    fn a_batch_has_one_leader_until_somebody_takes_it() {
        let core = core();
        let first = append(&core, 1, 100);
        let second = append(&core, 2, 100);
        let mut state = core.state();
        let leader = state.lead(first).unwrap();
        stay(&mut state);
        assert_eq!(state.lead(second), None);
        assert!(state.is_led() && state.leading.wants_watch());
        assert!(state.must_write(), "a thread is to come and watch");
        state.leading.is_watched = true;
        assert!(!state.must_write() && !state.leading.wants_watch());
        drop(state);

        core.work(Work::Write);
        assert!(core.reached(second));
        let mut state = core.state();
        assert!(
            !state.leading.step_down(leader),
            "a thread has taken its batch"
        );
        assert_eq!(state.lead(second), None, "it is written");
        drop(state);
        let third = append(&core, 3, 100);
        let mut state = core.state();
        let next = state.lead(third).unwrap();
        assert!(!state.leading.step_down(leader) && state.leading.step_down(next));
        assert!(!state.is_led());
    }

    #[test]
    fn what_no_leader_writes_is_written_at_once_by_a_thread() {
        let core = core();
        let position = append(&core, 1, 100);
        let mut state = core.state();
        state.leading.is_watched = true;
        state.lead(position).unwrap();
        stay(&mut state);
        // Somebody waits until it is durable.
        state.wanted = position;
        assert!(state.must_write() && !state.is_led());
        state.wanted = Position::default();
        assert!(!state.must_write());
        // The leader is gone.
        state.leading.ask_for(position);
        assert!(state.must_write() && !state.is_led());
        drop(state);
        core.work(Work::Write);

        // Nobody leads what is long.
        let mut last = Position::default();
        for id in 2..10 {
            last = append(&core, id, 10_000);
        }
        let mut state = core.state();
        assert_eq!(state.lead(last), None);
        assert!(state.must_write() && !state.is_led());
        drop(state);
        core.work(Work::Write);

        // Nor on a medium that was slow, for a while.
        let position = append(&core, 10, 100);
        let mut state = core.state();
        let later = Instant::now() + Duration::from_secs(3600);
        state.leading.has_led(later - LOOK * 10, later);
        assert_eq!(state.lead(position), None);
        assert!(state.must_write() && !state.is_led());
    }

    #[test]
    fn a_leader_who_does_not_come_back_is_waited_for_no_longer_than_a_look() {
        let core = core();
        let position = append(&core, 1, 100);
        let mut state = core.state();
        state.lead(position).unwrap();
        let long_ago = Instant::now().checked_sub(LOOK).unwrap();
        state.leading.set_since(long_ago);
        assert!(!state.is_led());
        stay(&mut state);
        assert!(state.is_led());
        state.is_closing = true;
        assert!(!state.is_led() && state.must_write());
    }

    impl Core {
        fn reached(&self, position: Position) -> bool {
            self.marks.reached(Level::Buffered) >= position
        }
    }
}
