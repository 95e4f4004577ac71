//! What the poll of a job notes about its end, for [`park`](crate::scheduler::workers::run::park): one byte, so that
//! the common cases are one comparison.

use weald_sync::unit::notes;

use crate::job::JobPtr;

/// A fiber that has switched to another one, and is still to be parked or queued.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub(crate) job: JobPtr,
    /// What its poll had noted.
    pub(crate) noted: PollNotes,
}

/// What a poll notes for its end, as bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollNotes(u8);

impl PollNotes {
    pub(crate) const NOTHING: PollNotes = PollNotes(0);
    /// A message will wake the running job, perhaps besides other wakes.
    pub(crate) const LISTENS: PollNotes = PollNotes(1);
    /// The job yielded: it runs again without a wake.
    pub(super) const YIELDED: PollNotes = PollNotes(notes::YIELDED);
    /// The job has panicked, or dropped its mailbox. If the job survives this, callers to which it owes a reply must
    /// be told. It has survived when this poll comes to a wait, or ends without ending the job.
    pub(super) const PANICKED: PollNotes = PollNotes(4);
    /// A wait with the stack polls what it waits for. Not noted while the stack is suspended.
    pub(super) const WAITS: PollNotes = PollNotes(notes::WAITS);
    /// The fiber that was polled has switched to another one, which has come back; see
    /// [`crate::scheduler::stackful::direct`]. Noted between that and the end of the poll.
    pub(super) const OTHER_CAME_BACK: PollNotes = PollNotes(16);
    /// Beside `WAITS`: what is polled has noted what it waits for.
    pub(super) const HAS_REASON: PollNotes = PollNotes(32);

    /// Of a fiber that yielded and was left: it is [prepared](crate::queue::ring::RingOwner::prepare) as the last of
    /// the ring, and the thread is inside of the core.
    pub(crate) const PREPARED: PollNotes = PollNotes(64);

    /// The notes of a poll that only yielded.
    #[inline(always)]
    pub(crate) fn of_yield() -> PollNotes {
        PollNotes::YIELDED
    }

    /// For code that keeps the notes and does not look at them.
    #[inline(always)]
    pub(crate) fn to_bits(self) -> u8 {
        self.0
    }

    /// The notes that [`to_bits`](PollNotes::to_bits) returned.
    #[inline(always)]
    pub(crate) fn of_bits(bits: u8) -> PollNotes {
        PollNotes(bits)
    }

    /// These, noted before the stack was suspended: the wait may have used up wakes that were meant for something else,
    /// so the job runs once more.
    #[inline(always)]
    pub(crate) fn after_suspension(self) -> PollNotes {
        self.and(PollNotes::YIELDED)
    }

    /// Whether a fiber whose code goes on has nothing of these to restore. That it yielded is of no use to it: it is
    /// only read where its stack is suspended, and noted anew there.
    #[inline(always)]
    pub(crate) fn leaves_nothing(self) -> bool {
        self.0 & !PollNotes::YIELDED.0 == 0
    }

    /// Whether nothing is noted but that a wait with the stack polls, and perhaps what it waits for.
    #[inline(always)]
    pub(crate) fn only_waits(self) -> bool {
        self.0 & !PollNotes::HAS_REASON.0 == PollNotes::WAITS.0
    }

    #[inline(always)]
    pub(super) fn and(self, other: PollNotes) -> PollNotes {
        PollNotes(self.0 | other.0)
    }

    /// These, and that the job has panicked, if `other` says so.
    #[inline(always)]
    pub(super) fn with_panic_of(self, other: PollNotes) -> PollNotes {
        PollNotes(self.0 | other.0 & PollNotes::PANICKED.0)
    }

    #[inline(always)]
    pub(crate) fn has_panicked(self) -> bool {
        self.0 & PollNotes::PANICKED.0 != 0
    }

    /// Whether a poll that has not ended its job leaves more to do than to park the job.
    #[inline(always)]
    pub(crate) fn needs_care(self) -> bool {
        self.0 & (PollNotes::PANICKED.0 | PollNotes::OTHER_CAME_BACK.0) != 0
    }

    pub(super) fn has_other(self) -> bool {
        self.0 & PollNotes::OTHER_CAME_BACK.0 != 0
    }

    pub(super) fn without_other(self) -> PollNotes {
        PollNotes(self.0 & !PollNotes::OTHER_CAME_BACK.0)
    }

    pub(crate) fn waits(self) -> bool {
        self.0 & PollNotes::WAITS.0 != 0
    }

    pub(super) fn without_wait(self) -> PollNotes {
        PollNotes(self.0 & !(PollNotes::WAITS.0 | PollNotes::HAS_REASON.0))
    }

    pub(crate) fn without_panic(self) -> PollNotes {
        PollNotes(self.0 & !PollNotes::PANICKED.0)
    }
}
