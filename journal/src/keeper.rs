//! The thread of a forest on disk that puts checkpoints by itself, and removes the history that is too old.
//!
//! While it waits, the thread holds no handle of the forest, so it keeps no forest open. The drop of the last handle of
//! the forest ends the thread, and waits for its end: then nobody has the forest's files open any more.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, SystemTime};

use weald_forest::Forest;
use weald_forest::journal::{CheckpointError, Journal, Position, catch_foreign, notice};

use crate::checkpoint;
use crate::core::Core;
use crate::disk_journal::DiskJournal;
use crate::names;
use crate::place::Place;

/// What the thread works on.
pub(crate) struct Kept {
    /// `None` only during the drop.
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

    /// Puts the checkpoint that the openings before had no time for, because their programs ended too soon. Without it
    /// each of them would begin with more than the one before.
    pub(crate) async fn catch_up(&self) {
        let core = self.journal.core();
        let is_overdue = {
            let state = core.state();
            state.grown / 2 >= state.grown_enough
        };
        if core.settings.has_threads && is_overdue {
            core.begin_keeper();
            put_and_trim(&core, self).await;
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A waker may hold the forest for a moment, and would otherwise close the journal later, on the thread that
        // woke it.
        let core = self.journal.core();
        if !core.is_forked() {
            core.wakes.without(|| drop(self.forest.take()));
        }
    }
}

/// The thread. It ends when this is dropped.
pub(crate) struct Keeper {
    core: Arc<Core>,
    /// Held by the caller that ends it.
    handle: Mutex<Option<JoinHandle<()>>>,
    /// The keeper's own thread, and the journal's: none of them may join the keeper, which waits for the journal's.
    others: Vec<ThreadId>,
}

impl Keeper {
    /// Starts the thread, unless the journal is worked by hand.
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
        let handle = handle.transpose()?;
        let own = handle.iter().map(|handle| handle.thread().id());
        let others = own.chain(kept.journal.threads().iter().copied()).collect();
        Ok(Self {
            core,
            handle: Mutex::new(handle),
            others,
        })
    }

    /// Returns when the thread has ended, whichever caller ends it.
    pub(crate) fn end(&self) {
        // A child that was forked has no such thread.
        if self.core.is_forked() {
            return;
        }
        self.core.end_keeper();
        // A waker that the journal or this thread wakes may close the forest there.
        if self.others.contains(&thread::current().id()) {
            return;
        }
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handle.take() {
            let _ = handle.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
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

    pub(crate) fn begin_keeper(&self) {
        self.is_keeper_over.store(false, Ordering::Relaxed);
    }

    /// Ends the thread that puts checkpoints, even in the middle of one.
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
        pollster::block_on(put_and_trim(core, &kept));
    }
}

async fn put_and_trim(core: &Core, kept: &Kept) {
    if let Err(error) = caught(put_checkpoint(kept)).await {
        let what = "no checkpoint was put, so the next opening takes longer";
        warn(core, what, error);
        // Not again at once: there may be no room.
        let mut state = core.state();
        let more = core.settings.checkpoint.unwrap_or(0);
        state.grown_enough = state.grown.saturating_add(more);
    } else if let Err(error) = caught(trim(core, kept)).await {
        let what =
            "history that is too old was not removed; after the next checkpoint it is tried again";
        warn(core, what, error);
    }
}

/// Works on the medium. A panic in it is a failure like any other: the thread lives on, and tries again later.
async fn caught(
    work: impl Future<Output = Result<(), CheckpointError>>,
) -> Result<(), CheckpointError> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        catch_foreign(|| work.as_mut().poll(cx)).unwrap_or_else(|| {
            let text = "the medium has panicked";
            Poll::Ready(Err(CheckpointError::Failed(text.into())))
        })
    })
    .await
}

fn warn(core: &Core, what: &'static str, error: CheckpointError) {
    let (name, is_over) = (core.medium_name(), core.is_keeper_over());
    if !is_over {
        notice(move || tracing::warn!("{name}: {what}: {error}"));
    }
}

async fn put_checkpoint(kept: &Kept) -> Result<(), CheckpointError> {
    let checkpoint = kept.forest().checkpoint().await?;
    kept.journal.put_checkpoint(checkpoint).await
}

async fn trim(core: &Core, kept: &Kept) -> Result<(), CheckpointError> {
    match oldest_wanted(core)? {
        Some(at) => kept.journal.trim(at).await,
        None => Ok(()),
    }
}

/// The checkpoint to trim to; `None`, if all of the history is to stay.
fn oldest_wanted(core: &Core) -> Result<Option<Position>, CheckpointError> {
    let history = core.settings.history;
    if !history.is_limited() {
        return Ok(None);
    }
    let checkpoints = core.state().checkpoints.clone();
    // A trim that was interrupted is finished.
    let is_begun = core.is_trimmed() && readable(core, &checkpoints, 0) == Some(0);
    let mut wanted = is_begun.then_some(0);
    if let Some(time) = history.time {
        wanted = within_time(core, &checkpoints, time).or(wanted);
    }
    if let Some(bytes) = history.bytes {
        wanted = within_bytes(core, &checkpoints, (wanted, bytes))?;
    }
    Ok(wanted.map(|wanted| checkpoints[wanted]))
}

/// The last checkpoint that is at least so old, so that the history reaches back that far.
fn within_time(core: &Core, checkpoints: &[Position], time: Duration) -> Option<usize> {
    let now = core.settings.clock.now();
    let begin = now.checked_sub(time).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut wanted = None;
    for (number, at) in checkpoints.iter().enumerate() {
        match read_time(core, *at) {
            Some(time) if time > begin => break,
            Some(_) => wanted = Some(number),
            None => {}
        }
    }
    wanted
}

/// The first checkpoint from `wanted` on with which the files have at most this many bytes; the newest one, if the
/// files would have more with each.
fn within_bytes(
    core: &Core,
    checkpoints: &[Position],
    (mut wanted, bytes): (Option<usize>, u64),
) -> Result<Option<usize>, CheckpointError> {
    let segments = core.state().log.chain.newest_first();
    let lens_of_segments = lens(core, segments.iter().map(|it| names::segment(*it)))?;
    let lens_of_checkpoints = lens(core, checkpoints.iter().map(|at| names::checkpoint(*at)))?;
    // The length of all files that would be left with a checkpoint; without one, of all files.
    let left_with = |oldest: Option<usize>| {
        let since = oldest.map(|oldest| Place::of(checkpoints[oldest]).segment);
        let kept = segments.iter().zip(&lens_of_segments);
        let kept = kept.take_while(|(segment, _)| Some(**segment) >= since);
        let kept: u64 = kept.map(|(_, len)| len).sum();
        kept + lens_of_checkpoints[oldest.unwrap_or(0)..]
            .iter()
            .sum::<u64>()
    };
    while left_with(wanted) > bytes {
        let next = wanted.map_or(0, |wanted| wanted + 1);
        match readable(core, checkpoints, next) {
            Some(next) => wanted = Some(next),
            None => break,
        }
    }
    Ok(wanted)
}

/// The lengths of files. One that somebody has removed, as a damaged checkpoint, has none.
fn lens(core: &Core, names: impl Iterator<Item = String>) -> Result<Vec<u64>, CheckpointError> {
    let len = |name: String| match core.medium.open(&name).and_then(|file| file.len()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        len => len.map_err(|error| CheckpointError::Failed(error.to_string())),
    };
    names.map(len).collect()
}

/// The first checkpoint from this one on that can be read: the history can begin only with such a
/// one.
fn readable(core: &Core, checkpoints: &[Position], from: usize) -> Option<usize> {
    (from..checkpoints.len()).find(|number| read_time(core, checkpoints[*number]).is_some())
}

/// The time of a checkpoint; `None`, if it cannot be read.
fn read_time(core: &Core, at: Position) -> Option<SystemTime> {
    let journal = core.state().log.head.journal;
    let stored = checkpoint::get(&*core.medium, journal, at).map_err(|error| error.to_string());
    let newest = stored.and_then(|stored| stored.newest().map_err(|error| error.to_string()));
    if let Err(error) = &newest {
        let (name, error) = (core.medium_name(), error.clone());
        notice(move || {
            tracing::warn!(
                "{name}: a checkpoint cannot be read, so what it is for cannot be shown until it is put back from a copy \
                 or removed: {error}"
            );
        });
    }
    newest.ok().map(|(_, time)| time)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::{Context, Wake, Waker};

    use pollster::block_on;
    use weald_forest::{Attributes, Level};

    use super::*;
    use crate::disk_forest::DiskForest;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    /// A waker that does something once, on the thread that wakes it.
    struct Once<F>(Mutex<Option<F>>);

    impl<F: FnOnce() + Send + 'static> Wake for Once<F> {
        fn wake(self: Arc<Self>) {
            let act = self.0.lock().unwrap().take();
            act.into_iter().for_each(|act| act());
        }
    }

    fn open(disk: &SimulatedDisk) -> Result<DiskForest, crate::OpenForestError> {
        // Only the end writes a mark.
        let settings = Settings::new().silence(Duration::from_secs(1000));
        let journal = DiskJournal::open_on(disk.clone(), settings)?;
        block_on(DiskForest::recover(Forest::builder(), journal))
    }

    /// Drops the last handle of a forest while a waker of its journal runs, which does this once it is waited for;
    /// returns whether the waker had ended when the drop returned.
    fn drop_while_waking(forest: DiskForest, act: impl FnOnce() + Send + 'static) -> bool {
        let tree = block_on(forest.create("notes")).unwrap();
        let core = forest.journal().core();
        let next = Position(core.state().log.cursor.position().0 + 1);
        let mut waits = forest.journal().when_reached(next, Level::Durable);
        let [is_running, is_dropped, has_ended] = [(); 3].map(|()| Arc::new(AtomicBool::default()));
        let waker = {
            let [runs, dropped, ended] = [&is_running, &is_dropped, &has_ended].map(Arc::clone);
            Waker::from(Arc::new(Once(Mutex::new(Some(move || {
                runs.store(true, Ordering::SeqCst);
                while !core.wakes.is_held() && !dropped.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                act();
                ended.store(true, Ordering::SeqCst);
            })))))
        };
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let mut edit = tree.edit();
        edit.append(edit.root(), Attributes::new()).unwrap();
        block_on(edit.commit().level(Level::Accepted)).unwrap();
        drop(tree);
        while !is_running.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        drop(forest);
        let had_ended = has_ended.load(Ordering::SeqCst);
        is_dropped.store(true, Ordering::SeqCst);
        had_ended
    }

    #[test]
    fn the_drop_of_the_last_forest_waits_for_a_waker_that_has_it() {
        let disk = SimulatedDisk::new();
        let forest = open(&disk).unwrap();
        let held = Forest::clone(&forest);
        assert!(drop_while_waking(forest, || drop(held)));
        open(&disk).unwrap();
    }

    #[test]
    fn a_waker_may_close_the_journal_while_the_last_forest_goes() {
        let disk = SimulatedDisk::new();
        let forest = open(&disk).unwrap();
        let journal = forest.journal().clone();
        let (closed, is_closed) = std::sync::mpsc::channel();
        drop_while_waking(forest, move || {
            journal.close();
            drop(journal);
            closed.send(()).unwrap();
        });
        is_closed.recv().unwrap();
        open(&disk).unwrap();
    }
}
