//! The registry: names of processes, typed by the message that they take.
//!
//! Each runtime has names of its own. A name is free again before anyone is told that its process has ended. The lock
//! of the registry may be taken under that of a unit's signals, never the other way round; it is never held while user
//! code runs.

mod error;
mod registered;

use std::{
    any::{Any, type_name},
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    panic::Location,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use weald_kernel::{AsUnit, Unit, catch_panic, current_runtime};

pub use error::{NameError, RegisterError};
pub use registered::Registered;

use crate::{
    call::{Call, Reply},
    inbox::Inbox,
    pid::Pid,
    signal::signals::{Holding, ProcessId, Signals},
    spawn::{Builder, Process},
};

/// A runtime and a name in it.
type Key = (u16, String);

#[derive(Default)]
struct Registry {
    entries: BTreeMap<Key, Entry>,
    waiters: BTreeMap<Key, BTreeMap<u64, Waker>>,
    /// The number of the next waiter.
    next: u64,
}

struct Entry {
    /// The process and its pid; none while it is being spawned.
    process: Option<(ProcessId, Box<dyn AnyPid>)>,
    message: &'static str,
}

/// A pid, without its type.
trait AnyPid: AsUnit + Any + Send {}

impl<P: AsUnit + Any + Send> AnyPid for P {}

impl Entry {
    fn is_given(&self) -> bool {
        self.process.is_some()
    }
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    entries: BTreeMap::new(),
    waiters: BTreeMap::new(),
    next: 0,
});

impl Registry {
    #[must_use = "a waker is dropped outside the lock"]
    fn remove_waiter(&mut self, key: &Key, number: u64) -> Option<Waker> {
        let waiters = self.waiters.get_mut(key)?;
        let waker = waiters.remove(&number);
        if waiters.is_empty() {
            self.waiters.remove(key);
        }
        waker
    }
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name for processes that take messages `M`.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use weald::process::{self as process, Inbox, Name};
///
/// static ADDER: Name<u32> = Name::new("adder");
///
/// let adder = ADDER.spawn(process::Builder::new(), async |mut inbox: Inbox<u32>| {
///     inbox.receive().await + inbox.receive().await
/// }).unwrap();
/// ADDER.send(40).unwrap();
/// ADDER.whereis().unwrap().send(2);
/// assert_eq!(adder.await, Ok(42));
/// assert!(ADDER.whereis().is_err());
/// # });
/// ```
pub struct Name<M> {
    name: Cow<'static, str>,
    message: PhantomData<fn(M)>,
}

impl<M: Send + 'static> Name<M> {
    /// The name, as a constant.
    pub const fn new(name: &'static str) -> Name<M> {
        Name {
            name: Cow::Borrowed(name),
            message: PhantomData,
        }
    }

    /// A name that is known only at run time.
    pub fn of(name: impl Into<String>) -> Name<M> {
        Name {
            name: Cow::Owned(name.into()),
            message: PhantomData,
        }
    }

    fn key(&self, runtime: u16) -> Key {
        (runtime, self.name.clone().into_owned())
    }

    /// Gives the name to a process, until it ends or the name is [taken back](Name::unregister). A process may have
    /// several names. O(log n).
    ///
    /// # Errors
    /// If the name is taken, or the process has ended.
    pub fn register(&self, pid: &Pid<M>) -> Result<(), RegisterError> {
        let key = self.key(pid.0.unit().runtime());
        give(key, type_name::<M>(), pid, |registry, key| {
            !registry.entries.contains_key(key)
        })
    }

    /// Spawns a process that has the name before it runs. If the name is taken, nothing is spawned.
    ///
    /// # Errors
    /// If the name is taken, or as [`Builder::spawn`].
    #[track_caller]
    pub fn spawn<F, Fut>(
        &self,
        builder: Builder,
        body: F,
    ) -> Result<Process<M, Fut::Output>, RegisterError>
    where
        F: FnOnce(Inbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        self.spawn_prepared(builder, |_| {}, body)
    }

    /// As [`spawn`](Name::spawn); `prepare` is called before anyone can find the process by its name.
    #[track_caller]
    pub(crate) fn spawn_prepared<F, Fut>(
        &self,
        builder: Builder,
        prepare: impl FnOnce(&Inbox<M>),
        body: F,
    ) -> Result<Process<M, Fut::Output>, RegisterError>
    where
        F: FnOnce(Inbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let reserved = Reserved::new(self.key(current_runtime()), type_name::<M>())?;
        let process = builder.spawn(|inbox| {
            prepare(&inbox);
            let given = reserved.give_to(&inbox.pid());
            given.expect("a process that has not run has not ended");
            body(inbox)
        });
        Ok(process?)
    }

    /// The process that has the name now. O(log n).
    ///
    /// # Errors
    /// If there is none, or it takes other messages.
    pub fn whereis(&self) -> Result<Pid<M>, NameError> {
        let key = self.key(current_runtime());
        let registry = registry();
        let entry = registry.entries.get(&key);
        let Some((entry, (_, pid))) = entry.and_then(|e| e.process.as_ref().map(|p| (e, p))) else {
            return Err(NameError::NotRegistered(key.1));
        };
        let pid: &dyn Any = &**pid;
        match pid.downcast_ref::<Pid<M>>() {
            Some(pid) => Ok(pid.clone()),
            None => Err(NameError::WrongType {
                takes: entry.message,
                asked: type_name::<M>(),
                name: key.1,
            }),
        }
    }

    /// Sends a message to the process that has the name.
    ///
    /// # Errors
    /// As [`whereis`](Name::whereis); the message is dropped.
    pub fn send(&self, message: M) -> Result<(), NameError> {
        self.whereis().map(|pid| pid.send(message))
    }

    /// Calls the process that has the name now; see [`Pid::call`].
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{Builder, Inbox, Name, Reply};
    ///
    /// static CLOCK: Name<Reply<u32>> = Name::new("clock");
    ///
    /// let clock = async |mut inbox: Inbox<Reply<u32>>| inbox.receive().await.send(12);
    /// CLOCK.spawn(Builder::new(), clock)?.into_pid();
    /// assert_eq!(CLOCK.call(|reply| reply)?.await?, 12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`whereis`](Name::whereis). The future returns a [`CallError`](crate::CallError).
    #[track_caller]
    pub fn call<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        request: F,
    ) -> Result<Call<M, T, F>, NameError> {
        let site = Location::caller();
        self.whereis().map(|pid| pid.call_at(Some(site), request))
    }

    /// Waits until a process has the name, and returns the process. So a unit that learns that the old process has
    /// ended finds its successor. Cancel-safe.
    ///
    /// A child that calls this before it is ready holds up its supervisor, which starts nobody meanwhile. If the
    /// process with the name is a child of the same supervisor, it is not started either. Such a child should use
    /// [`whereis`](Name::whereis), or have a limit ([`ChildSpec::ready_within`](crate::ChildSpec::ready_within)).
    ///
    /// # Errors
    /// If the process that has the name takes other messages.
    pub fn registered(&self) -> Registered<'_, M> {
        Registered::new(self)
    }

    /// Takes the name back. Returns whether a process had it.
    pub fn unregister(&self) -> bool {
        let key = self.key(current_runtime());
        let mut registry = registry();
        // A reservation stays: the caller that made it is about to give the name to its process.
        let is_given = registry.entries.get(&key).is_some_and(Entry::is_given);
        let removed = is_given.then(|| registry.entries.remove(&key)).flatten();
        drop(registry);
        let Some((_, process)) = removed.and_then(|entry| entry.process) else {
            return false;
        };
        if let Some(signals) = process.as_unit().and_then(|unit| unit.attachment()) {
            forget(&key, &signals);
        }
        true
    }
}

/// The names that processes of this runtime have, in order.
pub fn registered() -> Vec<String> {
    let runtime = current_runtime();
    let registry = registry();
    let of_runtime = registry.entries.range((runtime, String::new())..);
    of_runtime
        .take_while(|((r, _), _)| *r == runtime)
        .filter(|(_, entry)| entry.is_given())
        .map(|((_, name), _)| name.clone())
        .collect()
}

/// The process that has the name now, so that [`monitor`](crate::monitor()) and [`link`](crate::link) take names, too.
impl<M> AsUnit for Name<M> {
    fn as_unit(&self) -> Option<Unit> {
        let key = (current_runtime(), self.name.clone().into_owned());
        let registry = registry();
        let (_, process) = registry.entries.get(&key)?.process.as_ref()?;
        process.as_unit()
    }
}

/// A name that no other process gets. Dropping it frees the name.
struct Reserved(Option<Key>);

impl Reserved {
    fn new(key: Key, message: &'static str) -> Result<Reserved, RegisterError> {
        let mut registry = registry();
        if registry.entries.contains_key(&key) {
            return Err(RegisterError::Taken(key.1));
        }
        let entry = Entry {
            process: None,
            message,
        };
        registry.entries.insert(key.clone(), entry);
        Ok(Reserved(Some(key)))
    }

    fn give_to<M: Send + 'static>(mut self, pid: &Pid<M>) -> Result<(), RegisterError> {
        let key = self.0.clone().unwrap_or_default();
        give(key, type_name::<M>(), pid, |_, _| true)?;
        self.0 = None;
        Ok(())
    }
}

/// Gives a name to a process if `is_free` says that it may have it.
fn give<M: Send + 'static>(
    key: Key,
    message: &'static str,
    pid: &Pid<M>,
    is_free: impl FnOnce(&Registry, &Key) -> bool,
) -> Result<(), RegisterError> {
    let unit = pid.0.unit();
    let signals = Signals::of(&unit);
    let mut state = match &signals {
        Some(signals) => signals.lock(),
        None => return Err(RegisterError::NoProcess(key.1)),
    };
    if unit.is_done() || !state.can_hold() {
        return Err(RegisterError::NoProcess(key.1));
    }
    let mut registry = registry();
    if !is_free(&registry, &key) {
        return Err(RegisterError::Taken(key.1));
    }
    let _held = state.hold(Holding::Name, key.clone(), release);
    let process: (ProcessId, Box<dyn AnyPid>) = (ProcessId::of(&unit), Box::new(pid.clone()));
    let waiters = registry.waiters.remove(&key).unwrap_or_default();
    let process = Some(process);
    // A reservation has no pid that would be dropped under the lock.
    registry.entries.insert(key, Entry { process, message });
    drop(registry);
    drop(state);
    for waiter in waiters.into_values() {
        // A waker that panics keeps no other one from being woken.
        let _is_woken = catch_panic(|| waiter.wake());
    }
    Ok(())
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(key) = self.0.take() {
            registry().entries.remove(&key);
        }
    }
}

/// Notes in the signals of a process that it holds a name no longer, unless it got the name again meanwhile.
fn forget(key: &Key, signals: &Signals) {
    let mut state = signals.lock();
    let registry = registry();
    let entry = registry.entries.get(key).and_then(|e| e.process.as_ref());
    if entry.is_none_or(|(id, _)| *id != signals.id()) {
        state.hold_no_longer(Holding::Name, key);
    }
}

/// Frees the name of a process that has ended, unless another one has it.
fn release(key: &Key, id: ProcessId) {
    let mut registry = registry();
    let entry = registry.entries.get(key);
    let is_ours = entry.is_some_and(|e| e.process.as_ref().is_some_and(|(own, _)| *own == id));
    let removed = is_ours.then(|| registry.entries.remove(key));
    drop(registry);
    drop(removed);
}

impl<M> Clone for Name<M> {
    fn clone(&self) -> Name<M> {
        Name {
            name: self.name.clone(),
            message: PhantomData,
        }
    }
}

impl<M> fmt::Display for Name<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl<M> fmt::Debug for Name<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Name").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use weald_kernel::SpawnError;

    use super::*;

    #[test]
    fn a_name_can_be_taken_back_once_it_is_given() {
        let runtime = weald_kernel::Runtime::test(1);
        let tested = runtime.block_on(async {
            let name = Name::<u32>::new("reserved");
            let reserved = Reserved::new(name.key(current_runtime()), "u32");
            assert!(!name.unregister());
            let process = crate::spawn(async |mut inbox: Inbox<u32>| inbox.receive().await)?;
            let taken = RegisterError::Taken("reserved".to_owned());
            assert_eq!(name.register(process.pid()), Err(taken));
            drop(reserved);
            assert_eq!(name.register(process.pid()), Ok(()));
            // A name that is taken back leaves nothing with the process.
            let signals = Signals::of(&process.pid().0.unit());
            let held = || signals.as_ref().map(|signals| signals.lock().held());
            assert_eq!(held(), Some(1));
            assert!(name.unregister());
            assert_eq!(held(), Some(0));
            Ok::<(), SpawnError>(())
        });
        assert_eq!(tested, Ok(()));
    }
}
