//! An author who waits until a commit is buffered writes for all: the *leader* of a batch.
//!
//! To wake a thread of the journal and be woken by it takes longer than writing a few commits. So the first author of a
//! batch becomes its leader: it lets the other tasks of its executor run first, and when it is polled again, it writes
//! whatever was accepted meanwhile. (Group commit with leaders, as RocksDB does it.)
//!
//! - Nobody depends on a leader. If it is dropped, a thread writes. If it is not polled for long, a thread that looks
//!   after [`LOOK`](crate::leading::LOOK) writes.
//! - A leader writes only short batches, and only while the medium is quick, because a write must
//!   seldom hold up an author. The threads do everything else.
//! - An author who waits until its commit is durable does not lead, because a thread does the sync.

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

    /// Waits until a position is buffered. The caller is no author and does not lead, so a thread writes at once.
    pub(crate) fn when_written(&self, position: Position) -> When {
        self.refuse_if_forked();
        let mut state = self.state();
        state.leading.ask_for(position);
        self.wake_threads(state);
        self.marks.when(position, Level::Buffered)
    }

    /// Writes what was accepted, unless a thread has written it, or is about to.
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
        let mut state = self.state();
        state.leading.has_led(begun, ended);
        // A thread that has looked meanwhile rests until it is woken, and no other thread would sync after a
        // silence.
        self.wake_threads(state);
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
                this.core.refuse_if_forked();
            }
            Stage::Leader(number) => {
                this.core.refuse_if_forked();
                this.core.write_as_leader(number);
            }
            Stage::Waiting => {}
        }
        Pin::new(&mut this.when).poll(cx)
    }
}

impl Drop for Buffering {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may have held the state.
        if let Stage::Leader(number) = self.stage
            && !self.core.is_forked()
        {
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
    use std::pin::pin;
    use std::task::Waker;
    use std::time::{Duration, SystemTime};

    use weald_forest::journal::{AppendError, Appended, BlobId, Journal, Record};
    use weald_forest::{CommitId, Version};

    use super::*;
    use crate::body::Share;
    use crate::core::Work;
    use crate::disk_journal::DiskJournal;
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

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
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

        // A long batch has no leader.
        let mut last = Position::default();
        for id in 2..10 {
            last = append(&core, id, 10_000);
        }
        let mut state = core.state();
        assert_eq!(state.lead(last), None);
        assert!(state.must_write() && !state.is_led());
        drop(state);
        core.work(Work::Write);

        // For a while there is no leader either after the medium was slow.
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

    #[test]
    fn after_an_author_has_written_a_thread_looks_unless_one_does_anyway() {
        for is_watched in [false, true] {
            let core = Arc::new(core());
            let position = append(&core, 1, 100);
            let mut author = Buffering::new(&core, position);
            assert!(poll(&mut author).is_pending());
            // A thread has looked while the author writes, and rests.
            core.state().idle = 1;
            core.state().leading.is_watched = is_watched;
            assert_eq!(poll(&mut author), Poll::Ready(Durability::Reached));
            assert_ne!(core.state().is_called, is_watched);
        }
    }

    #[test]
    fn a_leader_that_goes_or_may_not_write_leaves_all_to_a_thread() {
        let obstacles: [fn(&Core); 4] = [
            |core| core.state().is_writing = true,
            |core| core.state().is_closing = true,
            |core| core.state().failed = Some(AppendError::Poisoned),
            |core| _ = append(core, 2, 70_000),
        ];
        for obstacle in obstacles.map(Some).into_iter().chain([None]) {
            let core = Arc::new(core());
            let position = append(&core, 1, 100);
            let mut author = Buffering::new(&core, position);
            assert!(poll(&mut author).is_pending());
            core.state().idle = 1;
            core.state().leading.is_watched = true;
            if let Some(obstacle) = obstacle {
                obstacle(&core);
                assert!(poll(&mut author).is_pending());
            }
            drop(author);
            let state = core.state();
            assert!(!state.log.batch.items.is_empty());
            if state.failed.is_none() {
                assert!(state.leading.is_asked(Position::default()));
                assert_ne!(state.is_called, state.is_writing);
            }
        }
    }

    #[test]
    fn what_others_wait_for_is_written_at_once_by_a_thread() {
        let waits: [fn(&DiskJournal) -> bool; 4] = [
            |journal| poll(journal.read(Position::default(), 1)).is_pending(),
            |journal| poll(journal.blob(BlobId(1))).is_pending(),
            |journal| poll(journal.resolve(CommitId(1))).is_pending(),
            |journal| journal.when_room(0, &[], &[]).is_some(),
        ];
        for wait in waits {
            let settings = Settings::new().segment(1 << 20).buffer(1).by_hand();
            let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
            let core = journal.core();
            append(&core, 1, 100);
            core.state().leading.is_watched = true;
            assert!(!core.state().must_write());
            assert!(wait(&journal));
            assert!(core.state().must_write());
        }
    }

    #[test]
    fn while_a_record_waits_for_room_a_thread_writes_at_once() {
        let settings = Settings::new().segment(1 << 20).buffer(1).by_hand();
        let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
        let core = journal.core();
        let position = append(&core, 1, 100);
        let mut state = core.state();
        state.leading.is_watched = true;
        state.lead(position).unwrap();
        stay(&mut state);
        assert!(state.is_led() && !state.must_write());
        drop(state);
        let version = Version {
            incarnation: 1,
            number: 2,
        };
        let waits = journal.append(&Record {
            version,
            id: CommitId(2),
            time: SystemTime::UNIX_EPOCH,
            digest: None,
            bytes: &[],
            changes: &[],
            blobs: &[],
            erases: None,
        });
        assert!(matches!(waits, Ok(Appended::Sent(_))));
        let state = core.state();
        assert!(!state.is_led() && state.must_write());
    }

    impl Core {
        fn reached(&self, position: Position) -> bool {
            self.marks.reached(Level::Buffered) >= position
        }
    }
}
