//! Groups of processes, as Erlang's `pg`: who is in them, and messages to all members.
//!
//! A group has the type of what is broadcast in it. Its members are processes with mailboxes of any types: each says at
//! its join how a broadcast becomes a message of its own. Each runtime has groups of its own. A member leaves before
//! anyone is told that its process has ended.
//!
//! A broadcast is made once, and shared by its receivers; each gets a [`Broadcast`], which counts as unhandled until it
//! is dropped. So the group knows which members are slow, and each member says at its join what happens then: [`Slow`].
//!
//! Locks: that of all groups is taken under that of a unit's signals, never the other way round. No lock is held while
//! user code runs. Changes of a group are told one at a time, in their order, by a thread that finds that no other
//! thread is telling any.

mod broadcast;
mod changes;

use std::{
    any::{Any, type_name},
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

pub use broadcast::Broadcast;
use broadcast::Gauge;
use changes::Changes;
pub use changes::{GroupChange, GroupWatch};
use weald_kernel::{Unit, catch_panic, current_runtime};

use crate::{
    exit::ExitReason,
    guarded::Guarded,
    pid::Pid,
    signal::{
        link::send_exit,
        signals::{HeldKey, Holding, ProcessId, Signals},
    },
};

static GROUPS: Mutex<BTreeMap<HeldKey, GroupEntry>> = Mutex::new(BTreeMap::new());

fn groups() -> MutexGuard<'static, BTreeMap<HeldKey, GroupEntry>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A group that has members, or is watched.
struct GroupEntry {
    /// What is broadcast in it.
    message: &'static str,
    /// `Members<T>`.
    members: Box<dyn AnyMembers>,
    changes: Arc<Changes>,
}

/// The members of a group, without the type of its broadcasts.
trait AnyMembers: Any + Send {
    /// Removes and returns a member, which the caller drops outside of the lock.
    fn remove(&mut self, id: ProcessId) -> Option<Box<dyn Any + Send>>;
    fn ids(&self) -> Vec<ProcessId>;
    fn is_empty(&self) -> bool;
}

struct Members<T>(Arc<BTreeMap<ProcessId, Arc<Member<T>>>>);

/// Gives a member its message of a broadcast. The code is the member's.
type Deliver<T> = Box<dyn Fn(Broadcast<T>) + Send + Sync>;

/// A process in a group.
struct Member<T> {
    unit: Unit,
    deliver: Guarded<Deliver<T>>,
    slow: Slow,
    /// How far it is behind. None if that has no consequence.
    gauge: Option<Arc<Gauge>>,
}

impl<T: Send + Sync + 'static> AnyMembers for Members<T> {
    fn remove(&mut self, id: ProcessId) -> Option<Box<dyn Any + Send>> {
        if !self.0.contains_key(&id) {
            return None;
        }
        // A broadcast that is under way keeps the former list.
        let member = Arc::make_mut(&mut self.0).remove(&id)?;
        Some(Box::new(member))
    }

    fn ids(&self) -> Vec<ProcessId> {
        self.0.keys().copied().collect()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What happens to a broadcast when a member has as many unhandled ones as it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slow {
    /// The broadcast waits in the mailbox as the others do, however many there are.
    Queue,
    /// With this many unhandled ones, the member misses further ones; [`Broadcast::missed`] tells how many.
    Miss(usize),
    /// With this many unhandled ones, the member leaves the group.
    Leave(usize),
    /// With this many unhandled ones, the member leaves the group and gets an exit signal with this reason.
    Exit(usize, ExitReason),
}

/// A group whose broadcasts are `T`.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{self as process, Broadcast, Group, Inbox, Slow};
///
/// static NEWS: Group<String> = Group::new("news");
///
/// let reader = process::spawn(async |mut inbox: Inbox<Broadcast<String>>| {
///     NEWS.join(&inbox.pid(), Slow::Miss(100), |news| news).unwrap();
///     inbox.receive().await.len()
/// })?;
/// while NEWS.members().is_empty() {
///     weald::yield_now().await;
/// }
/// assert_eq!(NEWS.broadcast("rain".to_owned()).unwrap().sent, 1);
/// assert_eq!(reader.await, Ok(4));
/// assert!(NEWS.members().is_empty());
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
pub struct Group<T> {
    name: Cow<'static, str>,
    message: PhantomData<fn(T)>,
}

/// Why a process did not join a group, or nothing was broadcast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The process is a member already.
    #[error("the process is in the group `{0}` already; it must leave before it joins again")]
    Joined(String),
    /// The process has ended.
    #[error("the process that should join the group `{0}` has ended")]
    NoProcess(String),
    /// The broadcasts of the group have another type.
    #[error(
        "in the group `{name}` `{has}` is broadcast and not `{asked}`; use a group of another name"
    )]
    WrongType {
        /// The group.
        name: String,
        /// What is broadcast in it.
        has: &'static str,
        /// What was asked for.
        asked: &'static str,
    },
}

/// What became of a broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// How many members it was sent to.
    pub sent: usize,
    /// How many missed it.
    pub missed: usize,
    /// How many had to leave.
    pub left: usize,
}

impl<T: Send + Sync + 'static> Group<T> {
    /// The group with this name, as a constant.
    pub const fn new(name: &'static str) -> Group<T> {
        Group {
            name: Cow::Borrowed(name),
            message: PhantomData,
        }
    }

    /// A group whose name is known only at run time.
    pub fn of(name: impl Into<String>) -> Group<T> {
        Group {
            name: Cow::Owned(name.into()),
            message: PhantomData,
        }
    }

    fn key(&self, runtime: u16) -> HeldKey {
        (runtime, self.name.clone().into_owned())
    }

    /// The group's entry, created now if there was none.
    fn entry<'a>(
        &self,
        groups: &'a mut BTreeMap<HeldKey, GroupEntry>,
        key: &HeldKey,
    ) -> Result<(&'a mut Members<T>, &'a Arc<Changes>), GroupError> {
        let entry = groups.entry(key.clone()).or_insert_with(|| GroupEntry {
            message: type_name::<T>(),
            members: Box::new(Members::<T>(Arc::default())),
            changes: Arc::default(),
        });
        let has = entry.message;
        let members: &mut dyn Any = &mut *entry.members;
        match members.downcast_mut() {
            Some(members) => Ok((members, &entry.changes)),
            None => Err(GroupError::WrongType {
                name: key.1.clone(),
                has,
                asked: type_name::<T>(),
            }),
        }
    }

    /// Makes a process a member, until it ends or [leaves](Group::leave). `convert` makes its message of each
    /// broadcast; it runs on the sender's thread, must not wait, and if it panics, that is reported, and the message is
    /// lost. O(log n); O(n) if a broadcast is under way.
    ///
    /// # Errors
    /// If it is a member already, or has ended, or the broadcasts of the group have another type.
    pub fn join<M: Send + 'static>(
        &self,
        pid: &Pid<M>,
        slow: Slow,
        convert: impl Fn(Broadcast<T>) -> M + Send + Sync + 'static,
    ) -> Result<(), GroupError> {
        let (unit, receiver) = (pid.0.unit(), pid.clone());
        let (key, id) = (self.key(unit.runtime()), ProcessId::of(&unit));
        let gone = || GroupError::NoProcess(self.name.clone().into_owned());
        let signals = Signals::of(&unit).ok_or_else(gone)?;
        let member = Arc::new(Member {
            unit,
            // A message that nobody takes is dropped here, by a destructor of the receiver's.
            deliver: Guarded::new(Box::new(move |broadcast| {
                let _panicked = catch_panic(|| receiver.send(convert(broadcast)));
            })),
            gauge: (slow != Slow::Queue).then(Arc::default),
            slow,
        });
        let mut state = signals.lock();
        let mut groups = groups();
        let (members, changes) = self.entry(&mut groups, &key)?;
        if members.0.contains_key(&id) {
            return Err(GroupError::Joined(key.1));
        }
        if !state.hold(Holding::Member, key.clone(), release) {
            forget_if_unused(&mut groups, &key);
            return Err(gone());
        }
        Arc::make_mut(&mut members.0).insert(id, member);
        let changes = changes.clone();
        changes.push(GroupChange::Joined(id));
        drop(groups);
        drop(state);
        changes.tell();
        Ok(())
    }

    /// Takes a process out of the group. Returns whether it was in it.
    pub fn leave<M>(&self, pid: &Pid<M>) -> bool {
        let unit = pid.0.unit();
        leave(&self.key(unit.runtime()), &unit)
    }

    /// The members, in ascending order.
    pub fn members(&self) -> Vec<ProcessId> {
        let groups = groups();
        let entry = groups.get(&self.key(current_runtime()));
        entry.map(|entry| entry.members.ids()).unwrap_or_default()
    }

    /// Sends `value` to all members. Never waits. Broadcasts of one sender arrive in their order.
    ///
    /// # Errors
    /// If the group is one of other broadcasts.
    pub fn broadcast(&self, value: T) -> Result<Sent, GroupError> {
        let key = self.key(current_runtime());
        let members = {
            let mut groups = groups();
            if !groups.contains_key(&key) {
                return Ok(Sent::default());
            }
            self.entry(&mut groups, &key)?.0.0.clone()
        };
        let value = Arc::new(value);
        let mut sent = Sent::default();
        for member in members.values() {
            if let Some(gauge) = member.behind() {
                match &member.slow {
                    Slow::Queue => {}
                    Slow::Miss(_) => {
                        // Relaxed: a count, which only the next broadcast reads.
                        gauge.missed.fetch_add(1, Ordering::Relaxed);
                        sent.missed += 1;
                        continue;
                    }
                    Slow::Leave(_) | Slow::Exit(..) => {
                        sent.left += usize::from(leave(&key, &member.unit));
                        if let Slow::Exit(_, reason) = &member.slow {
                            send_exit(&member.unit, reason);
                        }
                        continue;
                    }
                }
            }
            sent.sent += 1;
            member.deliver.value()(Broadcast::new(&value, member.gauge.as_ref()));
        }
        Ok(sent)
    }

    /// Watches the group: `convert` makes a message of each [`GroupChange`], in their order. Returns the members of
    /// this moment; changes from then on are told, until the watch is dropped.
    ///
    /// # Errors
    /// If the group is one of other broadcasts.
    pub fn watch<M: Send + 'static>(
        &self,
        pid: &Pid<M>,
        convert: impl Fn(GroupChange) -> M + Send + Sync + 'static,
    ) -> Result<(Vec<ProcessId>, GroupWatch), GroupError> {
        let key = self.key(pid.0.unit().runtime());
        let receiver = pid.clone();
        let tell = Arc::new(move |change| {
            let _panicked = catch_panic(|| receiver.send(convert(change)));
        });
        let mut groups = groups();
        let (members, changes) = self.entry(&mut groups, &key)?;
        let watch = Changes::watch(changes, key.clone(), tell);
        Ok((members.ids(), watch))
    }
}

impl<T> Member<T> {
    /// The gauge of a member that has as many unhandled broadcasts as it may have.
    fn behind(&self) -> Option<&Gauge> {
        let most = match self.slow {
            Slow::Queue => return None,
            Slow::Miss(most) | Slow::Leave(most) | Slow::Exit(most, _) => most,
        };
        let gauge = self.gauge.as_deref()?;
        // Relaxed: a count. A sender that sees it late counts the member as slow once more.
        (gauge.unhandled.load(Ordering::Relaxed) >= most).then_some(gauge)
    }
}

/// Takes a member out of a group, and notes in its signals that it is no member any longer.
fn leave(key: &HeldKey, unit: &Unit) -> bool {
    let Some(signals) = unit.attachment::<Signals>() else {
        return false;
    };
    let mut state = signals.lock();
    let removed = remove(key, signals.id());
    if removed.is_some() {
        state.hold_no_longer(Holding::Member, key);
    }
    drop(state);
    match removed {
        Some((member, changes)) => {
            drop(member);
            changes.tell();
            true
        }
        None => false,
    }
}

/// A member has ended.
fn release(key: &HeldKey, id: ProcessId) {
    if let Some((member, changes)) = remove(key, id) {
        drop(member);
        changes.tell();
    }
}

/// Takes a member out of its group. The caller drops it, and tells the watchers, outside of the
/// locks.
fn remove(key: &HeldKey, id: ProcessId) -> Option<(Box<dyn Any + Send>, Arc<Changes>)> {
    let mut groups = groups();
    let entry = groups.get_mut(key)?;
    let member = entry.members.remove(id)?;
    let changes = entry.changes.clone();
    changes.push(GroupChange::Left(id));
    forget_if_unused(&mut groups, key);
    Some((member, changes))
}

/// Forgets a group without members that nobody watches.
fn forget_if_unused(groups: &mut BTreeMap<HeldKey, GroupEntry>, key: &HeldKey) {
    let is_unused = |entry: &GroupEntry| entry.members.is_empty() && !entry.changes.is_watched();
    if groups.get(key).is_some_and(is_unused) {
        groups.remove(key);
    }
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.name).finish()
    }
}
