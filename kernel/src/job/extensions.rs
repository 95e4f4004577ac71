//! The extensions of a job, which only some jobs have: a name, wakers of those that wait for it, exit hooks.
//!
//! A job's extensions word holds its spawn site until the first extension is needed, and a boxed
//! [`ExtensionsBox`] from then on; so a plain parked job pays one word for all of them.

#![allow(unsafe_code)]

use std::{
    any::Any,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    ptr,
    sync::Arc,
    task::Waker,
    thread::{self, Thread},
    time::Instant,
};

use crate::{
    job::{
        attachment::AttachedValue, exit_hooks::ExitHooks, foreign_waker, name::UnitName,
        work_kind::WorkKind,
    },
    report::panic_site::PanicSite,
    report::{self, Describe},
    sys::{AtomicPtr, Mutex, MutexGuard, Ordering, lock},
};

/// Set while the word is still a spawn site. Both kinds of pointee are aligned to more than 1.
const SITE: usize = 1;
/// How often [`ExtensionsWord::try_with`] tries the lock, which other threads hold for some instructions only.
const TRIES: usize = 100;

/// A spawn site or a box of extensions.
///
/// # Safety
/// *Box*: a word without [`SITE`] is a box that [`lock`](ExtensionsWord::lock) has published. It never changes again,
/// and the box lives as long as this value.
pub(crate) struct ExtensionsWord(AtomicPtr<()>);

struct ExtensionsBox {
    site: &'static Location<'static>,
    extensions: Mutex<Extensions>,
    /// The address of what [`Extensions::owner`] has, for code of the job, which reads it without the lock; null if
    /// that is none.
    owner: AtomicPtr<()>,
}

/// A long queue of messages, as its receiver found it.
#[derive(Clone, Copy)]
pub(crate) struct Backlog {
    pub(crate) messages: usize,
    pub(crate) found: Instant,
    /// Whether the receiver has passed them over, because it waits for a certain message.
    pub(crate) is_unwanted: bool,
    /// Whether the mailbox was reported, now or before.
    pub(crate) is_named: bool,
}

/// The extensions of one job.
#[derive(Default)]
pub(crate) struct Extensions {
    /// Set at spawn; read by reports.
    pub(crate) name: Option<Box<str>>,
    /// Describes what the job does at a moment. Set at spawn.
    pub(crate) description: Option<Arc<dyn Describe>>,
    /// The kind of what the job does at a moment. Set at spawn.
    pub(crate) kind: Option<WorkKind>,
    /// The waker of the joiner. Present if the state's `JOINER` bit is set; also possible while the job is done and has
    /// not ended.
    pub(crate) joiner: Option<Waker>,
    /// The waker of the receiver, if that is not the job itself. Present if `RECEIVER` is set.
    pub(crate) receiver: Option<Waker>,
    /// The waker of the job's `park`, if the park was polled with another waker than the job's.
    pub(crate) parker: Option<Waker>,
    /// The job's thread while it is blocked in `wait()`; present if `BLOCKED` is set, and while a job that unwinds is
    /// blocked there, for which `BLOCKED` is not set.
    pub(crate) blocked: Option<Thread>,
    /// Whether the job shuts its own runtime down, or waits for what does, so that it ends only after the shutdown.
    pub(crate) shuts_down: bool,
    /// Whether `wait()` has unwound the job because of a cancel, which it does once.
    pub(crate) unwound: bool,
    /// How many shields the job has: with one, a cancel ends no wait of it, although none has unwound it.
    pub(crate) shields: u32,
    /// Whether the description or the attachment is being told that the job takes long.
    is_being_told: bool,
    /// The job's number, if one was asked for.
    number: u64,
    /// The queue of the only thread that may run the job, if it is pinned. Set at spawn.
    pub(crate) pinned: Option<Arc<dyn Any + Send + Sync>>,
    /// The owner of the units that the job starts and that have no job of their own.
    pub(crate) owner: Option<Arc<dyn Any + Send + Sync>>,
    /// The unit that the job runs, if units share the job.
    pub(crate) running_unit: Option<UnitName>,
    /// The long queue of messages that the receiver found last, if it ever found one.
    pub(crate) backlog: Option<Backlog>,
    /// What to do when the job has ended.
    pub(crate) exit_hooks: ExitHooks,
    /// What the job panicked with, if it did.
    pub(crate) panic_message: Option<Box<str>>,
    /// Where the job panicked, if it did and the panic hook was called.
    pub(crate) panic_site: Option<PanicSite>,
    /// What a crate above attached to the job. It learns of the end after the exit hooks.
    pub(crate) attachment: Option<AttachedValue>,
}

/// The user values in a job's extensions. Their destructors are user code.
#[expect(dead_code, reason = "it is only dropped")]
pub(crate) struct UserValues {
    wakers: [Option<Waker>; 3],
    owner: Option<Arc<dyn Any + Send + Sync>>,
    attachment: Option<AttachedValue>,
    description: Option<Arc<dyn Describe>>,
}

impl Extensions {
    /// Takes the user values. The caller drops them when it no longer holds the lock.
    pub(crate) fn take_user_values(&mut self) -> UserValues {
        UserValues {
            wakers: [self.joiner.take(), self.receiver.take(), self.parker.take()],
            owner: self.owner.take(),
            attachment: self.attachment.take(),
            description: self.description.take(),
        }
    }

    pub(super) fn has_user_values(&self) -> bool {
        let wakers = [&self.joiner, &self.receiver, &self.parker];
        wakers.iter().any(|waker| waker.is_some())
            || self.owner.is_some()
            || self.attachment.is_some()
            || self.description.is_some()
    }

    /// A number that no other job of this program ever has. Assigned at the first call.
    pub(crate) fn number(&mut self) -> u64 {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        if self.number == 0 {
            // Relaxed: it is a count, and guards no other memory.
            self.number = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        self.number
    }
}

impl ExtensionsWord {
    pub(crate) fn new(site: &'static Location<'static>) -> ExtensionsWord {
        let site = ptr::from_ref(site).cast_mut().cast::<()>();
        ExtensionsWord(AtomicPtr::new(site.map_addr(|a| a | SITE)))
    }

    /// Where the job was spawned.
    pub(crate) fn site(&self) -> &'static Location<'static> {
        // Acquire: pairs with the exchange in `lock`.
        let word = self.0.load(Ordering::Acquire);
        match as_site(word) {
            Some(site) => site,
            // SAFETY: *box*.
            None => unsafe { self.boxed(word) }.site,
        }
    }

    /// Whether there are none.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        is_site(self.0.load(Ordering::Acquire))
    }

    /// The box that `word` is.
    ///
    /// # Safety
    /// *Box*: `word` was read from this value, and has no [`SITE`].
    #[inline(always)]
    unsafe fn boxed(&self, word: *mut ()) -> &ExtensionsBox {
        // SAFETY: the caller's promise.
        unsafe { &*word.cast::<ExtensionsBox>() }
    }

    /// Sets [`Extensions::owner`] of these extensions, which the caller has locked, and returns what was there. By
    /// code of the job, while no other code of it runs on another thread, unless there was none.
    pub(crate) fn set_owner(
        &self,
        locked: &mut Extensions,
        owner: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let address = |owner: &Arc<dyn Any + Send + Sync>| Arc::as_ptr(owner).cast::<()>();
        let address = owner.as_ref().map_or(ptr::null(), address);
        // SAFETY: *box*: what is locked has been published.
        let boxed = unsafe { self.boxed(self.0.load(Ordering::Acquire)) };
        // Release: pairs with the load in `owner`.
        boxed.owner.store(address.cast_mut(), Ordering::Release);
        std::mem::replace(&mut locked.owner, owner)
    }

    /// The address of what [`Extensions::owner`] has; null if that is none. It stays there while the calling code,
    /// which is the job's, runs.
    #[inline]
    pub(crate) fn owner(&self) -> *const () {
        let word = self.0.load(Ordering::Acquire);
        match as_site(word) {
            Some(_) => ptr::null(),
            // SAFETY: *box*.
            None => unsafe { self.boxed(word) }.owner.load(Ordering::Acquire),
        }
    }

    /// The extensions, if the job has any.
    pub(crate) fn lock_existing(&self) -> Option<MutexGuard<'_, Extensions>> {
        let word = self.0.load(Ordering::Acquire);
        (!is_site(word))
            // SAFETY: *box*.
            .then(|| lock(&unsafe { self.boxed(word) }.extensions))
    }

    /// Whether they hold any user values.
    pub(crate) fn has_user_values(&self) -> bool {
        self.lock_existing().is_some_and(|it| it.has_user_values())
    }

    /// Tells the job's description that the job takes long, and its attachment if the job has ended. Does nothing
    /// within a call of what is told, which may wait against its contract: it would be told of that wait, and wait
    /// again. Returns whether there may have been something to tell.
    #[inline(always)]
    pub(crate) fn tell_that_it_takes_long(&self) -> bool {
        let has_some = !is_site(self.0.load(Ordering::Relaxed));
        if has_some {
            self.tell_existing_that_it_takes_long();
        }
        has_some
    }

    fn tell_existing_that_it_takes_long(&self) {
        let Some(mut extensions) = self.lock_existing().filter(|it| !it.is_being_told) else {
            return;
        };
        let description = extensions.description.clone();
        let attached = extensions.attachment.as_ref();
        let attached = attached.and_then(AttachedValue::takes_long);
        if description.is_none() && attached.is_none() {
            return;
        }
        extensions.is_being_told = true;
        drop(extensions);
        if let Some(description) = description {
            report::call_for_user(move || description.takes_long());
        }
        if let Some(takes_long) = attached {
            report::call_for_user(takes_long);
        }
        self.lock().is_being_told = false;
    }

    /// Calls `with` with the job's extensions, if it has any. Gives up if the lock stays taken: the calling thread
    /// itself may hold it. Neither blocks nor allocates.
    pub(crate) fn try_with<R>(&self, with: impl FnOnce(&Extensions) -> R) -> Option<R> {
        let word = self.0.load(Ordering::Acquire);
        if as_site(word).is_some() {
            return None;
        }
        // SAFETY: *box*.
        let boxed = unsafe { self.boxed(word) };
        let extensions = (0..TRIES).find_map(|_| {
            let extensions = boxed.extensions.try_lock().ok();
            if extensions.is_none() {
                thread::yield_now();
            }
            extensions
        })?;
        Some(with(&extensions))
    }

    /// The extensions, created now if the job had none.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Extensions> {
        let word = self.0.load(Ordering::Acquire);
        match as_site(word) {
            // SAFETY: *box*.
            None => lock(&unsafe { self.boxed(word) }.extensions),
            Some(site) => self.lock_new(word, site),
        }
    }

    /// [`lock`](ExtensionsWord::lock) for a job that has no extensions yet, and whose word was
    /// `word`.
    #[inline(never)]
    fn lock_new(
        &self,
        word: *mut (),
        site: &'static Location<'static>,
    ) -> MutexGuard<'_, Extensions> {
        let new = Box::into_raw(Box::new(ExtensionsBox {
            site,
            extensions: Mutex::default(),
            owner: AtomicPtr::new(ptr::null_mut()),
        }));
        // AcqRel: publishes the box, or acquires the one that another thread published first.
        let won = self
            .0
            .compare_exchange(word, new.cast(), Ordering::AcqRel, Ordering::Acquire);
        match won {
            // SAFETY: *box*: it has just been published.
            Ok(_) => lock(&unsafe { self.boxed(new.cast()) }.extensions),
            Err(other) => {
                // SAFETY: the box was created above and never published.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: *box*: a word leaves the site once, so the other one is no site.
                lock(&unsafe { self.boxed(other) }.extensions)
            }
        }
    }
}

impl Drop for ExtensionsWord {
    #[inline(always)]
    fn drop(&mut self) {
        let word = self.0.load(Ordering::Acquire);
        if as_site(word).is_none() {
            // SAFETY: an untagged word is a box that `lock` published; this is its only owner.
            drop_extensions(unsafe { Box::from_raw(word.cast::<ExtensionsBox>()) });
        }
    }
}

/// The box may hold a waker that was never woken, whose destructor is user code; this may be a worker's thread, or the
/// monitor's.
#[inline(never)]
fn drop_extensions(extensions: Box<ExtensionsBox>) {
    let drops = || report::drop_for_user(extensions);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(drops)) {
        foreign_waker::report_panic(payload);
    }
}

fn as_site(word: *mut ()) -> Option<&'static Location<'static>> {
    let site = word.map_addr(|a| a & !SITE).cast::<Location<'static>>();
    // SAFETY: a tagged word is the address of a location that lives forever.
    is_site(word).then(|| unsafe { &*site })
}

#[inline(always)]
fn is_site(word: *mut ()) -> bool {
    word.addr() & SITE != 0
}

#[cfg(test)]
mod tests;
