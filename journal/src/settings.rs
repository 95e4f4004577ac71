//! The settings of a journal that is yet to be opened.

use std::sync::Arc;
use std::time::Duration;

use weald_forest::{Clock, SystemClock};

use crate::master_key::{MasterKey, MasterKeys};

/// How a journal works. The defaults are for a program that runs for long on a local disk.
#[derive(Clone)]
pub struct Settings {
    /// The length of a segment.
    pub(crate) segment: u32,
    /// How many bytes may have a place and not be written.
    pub(crate) buffer: usize,
    /// How long commits may be silent before what is not durable is synced, and a mark says so.
    pub(crate) silence: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) has_threads: bool,
    /// After how many bytes a forest puts a checkpoint; `None` for never.
    pub(crate) checkpoint: Option<u64>,
    pub(crate) history: History,
    pub(crate) masters: MasterKeys,
    /// A damaged erasable value is left out.
    pub(crate) skips_damaged: bool,
}

/// How much of the history stays on the medium.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct History {
    pub(crate) bytes: Option<u64>,
    pub(crate) time: Option<Duration>,
}

impl History {
    pub(crate) fn is_limited(self) -> bool {
        self.bytes.is_some() || self.time.is_some()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment: 16 << 20,
            buffer: 8 << 20,
            silence: Duration::from_millis(100),
            clock: Arc::new(SystemClock::default()),
            has_threads: true,
            checkpoint: Some(64 << 20),
            history: History::default(),
            masters: MasterKeys::default(),
            skips_damaged: false,
        }
    }
}

impl Settings {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of a segment in bytes, from 1 KiB to 1 GiB; by default 16 MiB. The next one is filled with zeros
    /// beforehand, so an open journal has that much more on the disk than it needs; closing it and the next opening
    /// give it back.
    ///
    /// # Panics
    /// If it is less or more.
    #[must_use]
    pub fn segment(mut self, bytes: u32) -> Self {
        assert!(
            (1 << 10..=1 << 30).contains(&bytes),
            "a segment has 1 KiB to 1 GiB"
        );
        self.segment = bytes;
        self
    }

    /// How many bytes may be accepted and not yet written; by default 8 MiB. Beyond that, authors wait.
    #[must_use]
    pub fn buffer(mut self, bytes: usize) -> Self {
        self.buffer = bytes.max(1);
        self
    }

    /// How long commits may be silent before all is synced, even if nobody waits for that, and a mark is written; by
    /// default 100 ms.
    #[must_use]
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// The clock from whose time an opening's epoch is made; by default that of the operating system.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// After how many bytes of records a [`DiskForest`](crate::DiskForest) puts a checkpoint by itself, on a thread of
    /// its own; by default 64 MiB, and at least twice the length of the checkpoint before. Each opening counts as a
    /// 1,024th of these bytes at least. An opening that finds twice as many, because the programs before ended before a
    /// checkpoint was put, puts it before it returns. So the time of an opening is bounded by the length of a
    /// checkpoint, and by these bytes. `None` for never.
    #[must_use]
    pub fn checkpoint_after(mut self, bytes: Option<u64>) -> Self {
        self.checkpoint = bytes.map(|bytes| bytes.max(1));
        self
    }

    /// How many bytes of history stay on the medium, about; by default all of it, for ever. What is older is removed
    /// when a checkpoint was put by itself. The versions that the forest keeps, and those with tags, stay in any case.
    #[must_use]
    pub fn history_bytes(mut self, bytes: u64) -> Self {
        self.history.bytes = Some(bytes);
        self
    }

    /// The least time for which history stays on the medium; by default for ever. What is older is removed when a
    /// checkpoint was put by itself, or by an opening; so a clock that is ahead makes history too old. The versions
    /// that the forest keeps, and those with tags, stay in any case.
    #[must_use]
    pub fn history_time(mut self, time: Duration) -> Self {
        self.history.time = Some(time);
        self
    }

    /// The key that seals the keys of erasable bytes, and that lies elsewhere; by default there is none, and they lie
    /// open in the key file. Opening seals those that are open. Without the master key no opening succeeds then.
    #[must_use]
    pub fn master_key(mut self, key: MasterKey) -> Self {
        self.masters.current = Some(key);
        self
    }

    /// A master key that the journal had before: opening writes the key file anew, sealed by the one of
    /// [`master_key`](Self::master_key), or open if there is none.
    #[must_use]
    pub fn former_master_key(mut self, key: MasterKey) -> Self {
        self.masters.former.push(key);
        self
    }

    /// The forest opens without erasable values that are damaged or missing in the segments, or in a part that the
    /// medium cannot read (`EIO`); otherwise one of them keeps it closed. They read as erased, the log names their
    /// files, and [`Stats::unreadable_blobs`](weald_forest::Stats) counts them. Nothing is removed: the next opening
    /// looks again, so put the files back, or erase the values, where they are or where a reference was copied to.
    /// Openings for reading do the same.
    #[must_use]
    pub fn skip_damaged_values(mut self) -> Self {
        self.skips_damaged = true;
        self
    }

    /// Without threads: the medium is written and synced when [`work`](crate::DiskJournal::work) is called, and at no
    /// other time. That is for simulations.
    #[must_use]
    pub fn by_hand(mut self) -> Self {
        self.has_threads = false;
        self
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Settings {{ segment: {}, buffer: {}, silence: {:?} }}",
            self.segment, self.buffer, self.silence
        )
    }
}
