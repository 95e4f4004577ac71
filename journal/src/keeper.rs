//! The thread of a forest on disk that puts checkpoints by itself, and removes the history that is too old.
//!
//! It has nothing of the forest while it waits, so it keeps no forest open. Whoever drops the last handle of the forest
//! ends it, and waits for that: then nobody has the forest's files any more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::SystemTime;

use weald_forest::Forest;
use weald_forest::journal::{CheckpointError, Journal, Position};

use crate::checkpoint;
use crate::core::Core;
use crate::disk_journal::DiskJournal;
use crate::names;
use crate::place::Place;

/// What the thread works on.
pub(crate) struct Kept {
    /// There until this is dropped.
    forest: Option<Forest>,
    pub(crate) journal: DiskJournal,
}

impl Kept {
    pub(crate) fn new(forest: Forest, journal: DiskJournal) -> Self {
        let forest = Some(forest);
        Self { forest, journal }
    }

    pub(crate) fn forest(&self) -> &Forest {
        self.forest.as_ref().expect("it is there until the end")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A waker on a thread of the journal may hold the forest for a moment, and would close the journal there, later.
        let core = self.journal.core();
        core.wakes.without(|| drop(self.forest.take()));
    }
}

/// The thread. It ends when this is dropped.
pub(crate) struct Keeper {
    core: Arc<Core>,
    handle: Mutex<Option<JoinHandle<()>>>,
    /// The threads on which nobody may wait for this one: it waits for them.
    others: Vec<ThreadId>,
}

impl Keeper {
    /// Begins; without threads of its own a journal has none of these either.
    pub(crate) fn begin(kept: &Arc<Kept>) -> std::io::Result<Self> {
        let core = kept.journal.core();
        core.begin_keeper();
        let settings = &core.settings;
        let has_thread = settings.has_threads && settings.checkpoint.is_some();
        let handle = has_thread.then(|| {
            let (core, kept) = (Arc::clone(&core), Arc::downgrade(kept));
            let thread = thread::Builder::new().name("journal-checkpoints".into());
            thread.spawn(move || serve(&core, &kept))
        });
        let handle = Mutex::new(handle.transpose()?);
        let others = kept.journal.threads().to_vec();
        Ok(Self {
            core,
            handle,
            others,
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.core.end_keeper();
        let handle = self.handle.get_mut();
        let handle = handle.unwrap_or_else(PoisonError::into_inner).take();
        // A waker that the journal or this thread wakes may drop the last handle of the forest there.
        let here = thread::current().id();
        let may_wait = !self.others.contains(&here);
        let is_other = |handle: &JoinHandle<()>| may_wait && handle.thread().id() != here;
        if let Some(handle) = handle.filter(is_other) {
            let _ = handle.join();
        }
    }
}

/// How the thread waits, and how it is told to end.
impl Core {
    /// Waits until there is enough for a checkpoint; `false`, if no more are to be put.
    pub(crate) fn wait_for_growth(&self) -> bool {
        let mut state = self.state();
        loop {
            if self.is_keeper_over() || state.failed.is_some() {
                return false;
            }
            if state.grown >= state.grown_enough {
                return true;
            }
            let waited = self.keeper.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_keeper_over(&self) -> bool {
        self.is_keeper_over.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_keeper(&self) {
        self.is_keeper_over.store(false, Ordering::Relaxed);
    }

    /// Ends the thread that puts checkpoints, also within one.
    pub(crate) fn end_keeper(&self) {
        // Under the lock under which it is looked at before waiting, so that the notice is not missed.
        let state = self.state();
        self.is_keeper_over.store(true, Ordering::Relaxed);
        drop(state);
        self.keeper.notify_all();
    }
}

fn serve(core: &Core, kept: &Weak<Kept>) {
    while core.wait_for_growth() {
        let Some(kept) = kept.upgrade() else { return };
        if let Err(error) = pollster::block_on(keep(core, &kept))
            && !core.is_keeper_over()
        {
            let name = core.medium.name();
            tracing::warn!(
                "{name}: no checkpoint was put, so the next opening takes longer: {error}"
            );
            // Not again at once: there may be no room.
            let mut state = core.state();
            state.grown_enough = state
                .grown
                .saturating_add(core.settings.checkpoint.unwrap_or(0));
        }
    }
}

async fn keep(core: &Core, kept: &Kept) -> Result<(), CheckpointError> {
    let checkpoint = kept.forest().checkpoint().await?;
    kept.journal.put_checkpoint(checkpoint).await?;
    match oldest_wanted(core)? {
        Some(at) => kept.journal.trim(at).await,
        None => Ok(()),
    }
}

/// The position of the checkpoint before which nothing is to stay, if something is there.
fn oldest_wanted(core: &Core) -> Result<Option<Position>, CheckpointError> {
    let history = core.settings.history;
    let (checkpoints, segments, journal) = {
        let state = core.state();
        let segments = state.log.chain.newest_first();
        (state.checkpoints.clone(), segments, state.log.head.journal)
    };
    let failed = |error: String| CheckpointError::Failed(error);
    let mut wanted = 0;
    if let Some(time) = history.time {
        let now = core.settings.clock.now();
        let begin = now.checked_sub(time).unwrap_or(SystemTime::UNIX_EPOCH);
        while let Some(at) = checkpoints.get(wanted + 1) {
            let stored = checkpoint::get(&*core.medium, journal, *at);
            let stored = stored.map_err(|error| failed(error.to_string()))?;
            let (_, time) = stored.newest().map_err(|error| failed(error.to_string()))?;
            if time > begin {
                break;
            }
            wanted += 1;
        }
    }
    if let Some(bytes) = history.bytes {
        let len = |name: &str| core.medium.open(name).and_then(|file| file.len());
        let len = |name: &str| len(name).map_err(|error| failed(error.to_string()));
        while let Some(at) = checkpoints.get(wanted) {
            let since = Place::of(*at).segment;
            let segments = segments.iter().take_while(|segment| **segment >= since);
            let names = segments.map(|segment| names::segment(*segment));
            let names = names.chain(
                checkpoints[wanted..]
                    .iter()
                    .map(|at| names::checkpoint(*at)),
            );
            let all = names.map(|name| len(&name)).sum::<Result<u64, _>>()?;
            if all <= bytes || wanted + 1 == checkpoints.len() {
                break;
            }
            wanted += 1;
        }
    }
    let has_limit = history.time.is_some() || history.bytes.is_some();
    Ok(checkpoints.get(wanted).copied().filter(|_| has_limit))
}
