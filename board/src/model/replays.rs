//! Reading what only the disk has: boards as they were, and changes that memory has let go.
//!
//! - A replay takes the time and the memory of all boards. So one replay runs at a time, a few wait, and all others are
//!   refused at once.
//! - The last results are kept in case others ask for the same, for example all readers of a board after a restart.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weald::forest::disk::{DiskForest, Moment, ReadOnlyForest};
use weald::forest::{TreeHandle, Version};
use weald::sync::Semaphore;
use weald::sync::semaphore::Permit;

use super::error::BoardError;
use super::happened::{Happened, happened};

/// How many may wait for a replay.
const WAITING: u32 = 16;
/// How many earlier moments are kept. Each takes the memory of all boards.
const MOMENTS: usize = 3;
/// How many lists of changes are kept, of a thousand at most.
const LISTS: usize = 8;

/// Replays, in turns.
pub(crate) struct Replays {
    waiting: Semaphore,
    replaying: Semaphore,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
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
        }
    }

    /// The forest at a moment.
    ///
    /// # Errors
    /// [`BoardError::Busy`]; [`BoardError::NoVersion`].
    pub(crate) async fn at(
        &self,
        forest: &DiskForest,
        moment: Moment,
    ) -> Result<ReadOnlyForest, BoardError> {
        if let Some(past) = self.lock().at(moment) {
            return Ok(past);
        }
        let _turn = self.turn().await?;
        // The caller before may have asked for the same.
        if let Some(past) = self.lock().at(moment) {
            return Ok(past);
        }
        let past = forest.at(moment).await?;
        keep(&mut self.lock().moments, MOMENTS, (moment, past.clone()));
        Ok(past)
    }

    /// The next changes of a tree after a version that memory has let go; none if there are none.
    ///
    /// # Errors
    /// As [`at`](Self::at).
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

    /// Forgets the opened forests, because bytes in them were erased. Waits for one that is just being opened.
    pub(crate) async fn forget(&self) {
        let _turn = self.replaying.acquire().await;
        self.lock().moments.clear();
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

impl Kept {
    fn at(&self, moment: Moment) -> Option<ReadOnlyForest> {
        let mut all = self.moments.iter();
        all.find(|(kept, _)| *kept == moment)
            .map(|(_, past)| past.clone())
    }

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
    use std::future::Future;
    use std::task::{Context, Waker};

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
