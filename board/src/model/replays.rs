//! Reading what only the disk has: boards as they were, and changes that memory has let go.
//!
//! - A replay takes the time and the memory of all boards. So one replay runs at a time, a few wait, and all others are
//!   refused at once.
//! - A replay keeps the versions that led to its moment, so the history of a message does not need one for each state.
//! - The last results are kept in case others ask for the same, for example all readers of a board after a restart.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weald::forest::disk::{DiskForest, Moment, OpenForestError, ReadOnlyForest};
use weald::forest::{Snapshot, TreeHandle, Version, VersionError};
use weald::sync::Semaphore;
use weald::sync::semaphore::Permit;

use super::error::BoardError;
use super::happened::{Happened, happened};
use super::store::{Source, Store};

/// How many may wait for a replay.
const WAITING: u32 = 16;
/// How many earlier moments are kept. Each takes the memory of all boards.
const MOMENTS: usize = 3;
/// How many versions of each board a replay keeps: as many as memory has of the present.
const VERSIONS: usize = 1_000;
/// How often a replay is made, if bytes were erased during each of them.
const TRIES: usize = 3;
/// How many lists of changes are kept, of a thousand at most.
const LISTS: usize = 8;

/// Replays, in turns.
pub(crate) struct Replays {
    waiting: Semaphore,
    replaying: Semaphore,
    kept: Mutex<Kept>,
    /// How many were made. Relaxed everywhere: it orders nothing.
    made: AtomicU64,
}

#[derive(Default)]
struct Kept {
    /// How often bytes were erased.
    erasures: u64,
    moments: VecDeque<(Moment, ReadOnlyForest)>,
    changes: VecDeque<Changes>,
}

/// All changes of a tree after a version, up to the last one of them.
struct Changes {
    tree: String,
    since: Version,
    all: Arc<[Happened]>,
}

impl Replays {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Semaphore::named("wait for a replay", 1 + WAITING),
            replaying: Semaphore::named("replay", 1),
            kept: Mutex::default(),
            made: AtomicU64::new(0),
        }
    }

    /// How many replays were made.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The tree of a board at a moment: from memory if that keeps it, otherwise from the disk.
    ///
    /// # Errors
    /// [`BoardError::Busy`]; [`BoardError::NoVersion`].
    pub(crate) async fn tree_at(
        &self,
        store: &Store,
        tree: &TreeHandle,
        moment: Moment,
    ) -> Result<(Snapshot, Source), BoardError> {
        let kept = self.kept_tree_at(store, tree, moment).await?;
        match (kept, store) {
            (Some(kept), _) => Ok(kept),
            (None, Store::Disk(forest)) => self.replayed(forest, tree, moment).await,
            (None, Store::Memory(_)) => Err(BoardError::NoVersion("nothing has it".to_owned())),
        }
    }

    /// The same, if it is in memory, or among what was just read from the disk.
    ///
    /// # Errors
    /// [`BoardError::NoVersion`], if it is nowhere.
    pub(crate) async fn kept_tree_at(
        &self,
        store: &Store,
        tree: &TreeHandle,
        moment: Moment,
    ) -> Result<Option<(Snapshot, Source)>, BoardError> {
        let kept = match moment {
            Moment::Version(version) => tree.kept_at(version),
            Moment::Time(time) => tree.at_time(time).await,
        };
        match (kept, store) {
            (Ok(snapshot), _) => Ok(Some((snapshot, Source::Now(store.clone())))),
            (Err(error @ VersionError::Future { .. }), _) | (Err(error), Store::Memory(_)) => {
                Err(BoardError::NoVersion(error.to_string()))
            }
            (Err(_), Store::Disk(_)) => self.kept_at(tree, moment).transpose(),
        }
    }

    async fn replayed(
        &self,
        forest: &DiskForest,
        tree: &TreeHandle,
        moment: Moment,
    ) -> Result<(Snapshot, Source), BoardError> {
        let _turn = self.turn().await?;
        // The caller before may have asked for the same.
        if let Some(kept) = self.kept_at(tree, moment) {
            return kept;
        }
        let open = || forest.at_with(moment, VERSIONS);
        newest(self.opened(moment, open).await?, tree)
    }

    /// Opens the forest of a moment, again if bytes were erased meanwhile: after an erasure nobody gets what had them.
    async fn opened<F>(
        &self,
        moment: Moment,
        open: impl Fn() -> F,
    ) -> Result<ReadOnlyForest, BoardError>
    where
        F: Future<Output = Result<ReadOnlyForest, OpenForestError>>,
    {
        for _ in 0..TRIES {
            self.made.fetch_add(1, Ordering::Relaxed);
            let erasures = self.lock().erasures;
            let past = open().await?;
            if self.keep_opened((moment, past.clone()), erasures) {
                return Ok(past);
            }
        }
        Err(BoardError::Busy)
    }

    /// What the last replays have; an error, if there was no such tree at that moment.
    fn kept_at(
        &self,
        tree: &TreeHandle,
        moment: Moment,
    ) -> Option<Result<(Snapshot, Source), BoardError>> {
        let kept = self.lock();
        let of_moment = kept.moments.iter().find(|(kept, _)| *kept == moment);
        if let Some((_, past)) = of_moment {
            return Some(newest(past.clone(), tree));
        }
        let Moment::Version(version) = moment else {
            return None;
        };
        kept.moments.iter().find_map(|(_, past)| {
            let tree = there(past, tree)?;
            let snapshot = tree.kept_at(version).ok()?;
            Some(Ok((snapshot, Source::Past(past.clone(), tree))))
        })
    }

    /// The next changes of a tree after a version that memory has let go; none if there are none.
    ///
    /// # Errors
    /// As [`tree_at`](Self::tree_at).
    pub(crate) async fn changes(
        &self,
        forest: &DiskForest,
        tree: &TreeHandle,
        since: Version,
    ) -> Result<VecDeque<Happened>, BoardError> {
        let name = tree.name();
        if let Some(changes) = self.lock().changes(&name, since) {
            return Ok(changes);
        }
        let _turn = self.turn().await?;
        if let Some(changes) = self.lock().changes(&name, since) {
            return Ok(changes);
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        let missed = forest.commits_after(tree, since).await?;
        let all: Arc<[_]> = missed.iter().map(happened).collect();
        let changes = all.iter().cloned().collect();
        if !all.is_empty() {
            let tree = name;
            keep(
                &mut self.lock().changes,
                LISTS,
                Changes { tree, since, all },
            );
        }
        Ok(changes)
    }

    /// Keeps an opened forest, unless bytes were erased since its opening began: then nobody may see it.
    fn keep_opened(&self, opened: (Moment, ReadOnlyForest), erasures: u64) -> bool {
        let mut kept = self.lock();
        let is_clean = kept.erasures == erasures;
        if is_clean {
            keep(&mut kept.moments, MOMENTS, opened);
        }
        is_clean
    }

    /// Forgets the opened forests, because bytes in them were erased. One that is just being opened is opened again, so
    /// an erasure does not wait in the line of those who look at the past.
    pub(crate) fn forget(&self) {
        let mut kept = self.lock();
        kept.erasures += 1;
        let gone = std::mem::take(&mut kept.moments);
        drop(kept);
        drop(gone);
    }

    /// How often bytes were erased.
    pub(crate) fn erasures(&self) -> u64 {
        self.lock().erasures
    }

    async fn turn(&self) -> Result<[Permit<'_>; 2], BoardError> {
        let place = self.waiting.try_acquire().map_err(|_| BoardError::Busy)?;
        let turn = self.replaying.acquire().await;
        Ok([place, turn.map_err(|_| BoardError::Busy)?])
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tree at the moment of a replay.
fn newest(past: ReadOnlyForest, tree: &TreeHandle) -> Result<(Snapshot, Source), BoardError> {
    let tree = there(&past, tree).ok_or(BoardError::Younger)?;
    Ok((tree.snapshot(), Source::Past(past, tree)))
}

/// A tree in an earlier forest. While a board is imported, its tree has another name, but the same number.
fn there(past: &ReadOnlyForest, tree: &TreeHandle) -> Option<TreeHandle> {
    let number = tree.number();
    let is_it = |there: &TreeHandle| there.number() == number;
    if let Some(found) = past.get(&tree.name()).ok().filter(is_it) {
        return Some(found);
    }
    let names = past.list().into_iter();
    names.filter_map(|name| past.get(&name).ok()).find(is_it)
}

impl Kept {
    fn changes(&self, tree: &str, since: Version) -> Option<VecDeque<Happened>> {
        let of_tree = self.changes.iter().filter(|list| list.tree == tree);
        let mut found = of_tree.filter_map(|list| list.after(since));
        found.next()
    }
}

impl Changes {
    /// The changes after a version, if that is in the list, and not the last one there.
    fn after(&self, since: Version) -> Option<VecDeque<Happened>> {
        let is_it = |it: &Happened| it.version == since;
        let first = match self.since == since {
            true => 0,
            false => self.all.iter().position(is_it)? + 1,
        };
        let rest = &self.all[first..];
        (!rest.is_empty()).then(|| rest.iter().cloned().collect())
    }
}

fn keep<T>(kept: &mut VecDeque<T>, most: usize, new: T) {
    kept.truncate(most - 1);
    kept.push_front(new);
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use weald::forest::Value;

    use super::*;

    #[test]
    fn few_wait_for_a_replay_and_all_others_are_refused() {
        weald::block_on(async {
            let replays = Replays::new();
            let first = replays.turn().await.unwrap();
            let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(replays.turn())).collect();
            let cx = &mut Context::from_waker(Waker::noop());
            for turn in &mut waiting {
                assert!(turn.as_mut().poll(cx).is_pending());
            }
            assert!(matches!(replays.turn().await, Err(BoardError::Busy)));
            // One that goes away makes room.
            waiting.pop();
            drop(first);
            for turn in waiting {
                drop(turn.await.unwrap());
            }
            assert!(replays.turn().await.is_ok());
        });
    }

    #[test]
    fn an_erasure_does_not_wait_for_those_who_look_at_the_past() {
        weald::block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let forest = DiskForest::open(directory.path()).await.unwrap();
            let tree = forest.create("tea").await.unwrap();
            let moment = Moment::Version(tree.view().version());
            let replays = Replays::new();
            let past = forest.at_with(moment, VERSIONS).await.unwrap();
            let before = replays.lock().erasures;
            assert!(replays.keep_opened((moment, past.clone()), before));
            assert!(replays.kept_at(&tree, moment).is_some());
            replays.forget();
            // This one was under way.
            assert!(!replays.keep_opened((moment, past), before));
            assert!(replays.kept_at(&tree, moment).is_none());
            let turn = replays.turn().await.unwrap();
            replays.forget();
            drop(turn);
        });
    }

    #[test]
    fn a_replay_during_an_erasure_does_not_tell_what_was_erased() {
        weald::block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let forest = DiskForest::open(directory.path()).await.unwrap();
            let tree = forest.create("tea").await.unwrap();
            let mut edit = tree.edit();
            let root = edit.root();
            edit.put_erasable(root, "text", "insult").unwrap();
            let made = edit.commit().await.unwrap();
            let moment = Moment::Version(made.version);
            let replays = Replays::new();
            for erasures in [1, TRIES as u64] {
                let before = replays.made();
                let open = || async {
                    let past = forest.at_with(moment, VERSIONS).await?;
                    if replays.made() - before <= erasures {
                        let _ = tree.erase(root, "text").await;
                        replays.forget();
                    }
                    Ok(past)
                };
                match (erasures, replays.opened(moment, open).await) {
                    (1, past) => {
                        let past = past.unwrap();
                        let (snapshot, source) = newest(past, &tree).unwrap();
                        let value = source.value(snapshot.tree().root(), "text");
                        assert!(matches!(value, Some(Value::Erased { .. })));
                        assert_eq!(replays.made(), before + 2);
                    }
                    (_, past) => assert!(matches!(past, Err(BoardError::Busy))),
                }
            }
        });
    }

    #[test]
    fn what_was_read_serves_all_who_missed_a_part_of_it() {
        let version = |number| Version {
            incarnation: 1,
            number,
        };
        let all = [3, 5, 6].map(|number| Happened {
            version: version(number),
            did: "write",
            messages: Vec::new(),
        });
        let list = Changes {
            tree: "tea".to_owned(),
            since: version(2),
            all: all.clone().into(),
        };
        let kept = Kept {
            changes: [list].into(),
            ..Kept::default()
        };
        let after = |number| kept.changes("tea", version(number)).map(Vec::from);
        assert_eq!(after(2).unwrap(), all);
        assert_eq!(after(5).unwrap(), all[2..]);
        // It is not known whether anything follows the last one, or what follows one that is not in the
        // list.
        assert_eq!([after(6), after(4), after(1)], [None, None, None]);
        assert_eq!(kept.changes("garden", version(2)), None);
    }
}
