//! The changes of a group: which watches are told of them, and in which order.
//!
//! A change is noted under the lock of the groups, so the list has the order of the changes. It is told outside of that
//! lock, by the thread that finds nobody else telling, until the list is empty.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weald_kernel::catch_unwinding;

use super::{forget_if_unused, groups};
use crate::signal::signals::{HeldKey, ProcessId};

/// A change of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupChange {
    /// This process is a member now.
    Joined(ProcessId),
    /// This process is no longer a member.
    Left(ProcessId),
}

type TellChange = Arc<dyn Fn(GroupChange) + Send + Sync>;

#[derive(Default)]
struct Watchers {
    watchers: BTreeMap<u64, TellChange>,
    next: u64,
    /// Changes that are not told yet, each with the watches at the time of the change.
    pending: VecDeque<(GroupChange, Vec<u64>)>,
    is_telling: bool,
}

#[derive(Default)]
pub(super) struct Changes(Mutex<Watchers>);

impl Changes {
    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a change. Under the lock of the groups; [`tell`](Changes::tell) must follow, outside of it.
    pub(super) fn push(&self, change: GroupChange) {
        let mut state = self.lock();
        if !state.watchers.is_empty() {
            let watchers = state.watchers.keys().copied().collect();
            state.pending.push_back((change, watchers));
        }
    }

    /// Tells what is noted, unless another thread does.
    pub(super) fn tell(&self) {
        let mut state = self.lock();
        if state.is_telling {
            return;
        }
        state.is_telling = true;
        while let Some((change, watchers)) = state.pending.pop_front() {
            for watcher in watchers {
                let tell = state.watchers.get(&watcher).cloned();
                drop(state);
                if let Some(tell) = tell {
                    // The last reference may be this one: what `convert` holds is dropped here, too.
                    catch_unwinding(move || tell(change));
                }
                state = self.lock();
            }
        }
        state.is_telling = false;
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.lock().watchers.is_empty()
    }

    /// From now on, tells `tell` of every change. Called under the lock of the groups.
    pub(super) fn watch(changes: &Arc<Changes>, group: HeldKey, tell: TellChange) -> GroupWatch {
        let mut state = changes.lock();
        let number = state.next;
        state.next += 1;
        state.watchers.insert(number, tell);
        GroupWatch {
            changes: changes.clone(),
            group,
            number,
        }
    }
}

/// A watch of a group. Dropping it ends the watch.
#[must_use = "a watch that is dropped tells nothing"]
pub struct GroupWatch {
    changes: Arc<Changes>,
    group: HeldKey,
    number: u64,
}

impl Drop for GroupWatch {
    fn drop(&mut self) {
        let tell = self.changes.lock().watchers.remove(&self.number);
        forget_if_unused(&mut groups(), &self.group);
        drop(tell);
    }
}

impl fmt::Debug for GroupWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupWatch").field(&self.number).finish()
    }
}
