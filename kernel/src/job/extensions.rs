//! What only some jobs have: a name, wakers of others who wait for them, things that end with them.
//!
//! A job's extras word holds its spawn site until the first of these is needed, and a boxed
//! [`ExtensionsBox`] from then on; so a plain parked job pays one word for all of it.

#![allow(unsafe_code)]

use std::{
    any::Any,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    ptr,
    sync::Arc,
    task::Waker,
    thread::{self, Thread},
};

use crate::{
    job::exit_hooks::ExitHooks,
    report::{self, panic_message},
    sys::{AtomicPtr, Mutex, MutexGuard, Ordering, lock},
};

/// Marks a word that still is a spawn site. Both kinds of pointee are aligned to more than 1.
const SITE: usize = 1;
/// How often a name is tried for that must not be waited for. A thief holds the parts for some instructions.
const NAME_TRIES: usize = 100;

/// The word.
pub(crate) struct ExtensionsWord(AtomicPtr<()>);

struct ExtensionsBox {
    site: &'static Location<'static>,
    extensions: Mutex<Extensions>,
}

/// The parts, each by who uses it.
#[derive(Default)]
pub(crate) struct Extensions {
    /// Set at spawn; read by reports.
    pub(crate) name: Option<Box<str>>,
    /// Who awaits the job's end; guarded by the state's `JOINER` bit.
    pub(crate) joiner: Option<Waker>,
    /// Who receives from the job's inbox, if not the job itself; guarded by `RECEIVER`.
    pub(crate) receiver: Option<Waker>,
    /// Who parks for the job, if it polls with another waker than the job's.
    pub(crate) parker: Option<Waker>,
    /// The job's thread while it is blocked in `wait()`; guarded by `BLOCKED`.
    pub(crate) blocked: Option<Thread>,
    /// Whether `wait()` has unwound the job for its cancel; it does so once.
    pub(crate) unwound: bool,
    /// The job's number, if somebody asked for one.
    pub(crate) number: u64,
    /// The one thread that a local job may run on. Set at spawn.
    pub(crate) pinned: Option<Arc<dyn Any + Send + Sync>>,
    /// The owner of the callbacks that the job starts.
    pub(crate) callbacks: Option<Arc<dyn Any + Send + Sync>>,
    /// What the callback that the job runs is called, if it runs callbacks.
    pub(crate) callback: Option<fn() -> &'static str>,
    /// What ends with the job.
    pub(crate) exit_hooks: ExitHooks,
}

impl ExtensionsWord {
    pub(crate) fn new(site: &'static Location<'static>) -> ExtensionsWord {
        let site = ptr::from_ref(site).cast_mut().cast::<()>();
        ExtensionsWord(AtomicPtr::new(site.map_addr(|a| a | SITE)))
    }

    /// Where the job was spawned.
    pub(crate) fn site(&self) -> &'static Location<'static> {
        // Acquire: pairs with the exchange in `extensions`.
        let word = self.0.load(Ordering::Acquire);
        match as_site(word) {
            Some(site) => site,
            None => extensions(word).site,
        }
    }

    /// The parts, if the job has any.
    pub(crate) fn lock_existing(&self) -> Option<MutexGuard<'_, Extensions>> {
        let word = self.0.load(Ordering::Acquire);
        as_site(word)
            .is_none()
            .then(|| lock(&extensions(word).extensions))
    }

    /// Calls `with` with the job's name, if it has one and nobody holds the parts for long: it may be the calling
    /// thread that does. Neither locks nor allocates.
    pub(crate) fn try_name<R>(&self, with: impl FnOnce(&str) -> R) -> Option<R> {
        let word = self.0.load(Ordering::Acquire);
        if as_site(word).is_some() {
            return None;
        }
        let extensions = (0..NAME_TRIES).find_map(|_| {
            let extensions = extensions(word).extensions.try_lock().ok();
            if extensions.is_none() {
                thread::yield_now();
            }
            extensions
        })?;
        extensions.name.as_deref().map(with)
    }

    /// The parts, made now if the job had none.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Extensions> {
        let word = self.0.load(Ordering::Acquire);
        let Some(site) = as_site(word) else {
            return lock(&extensions(word).extensions);
        };
        let made = Box::into_raw(Box::new(ExtensionsBox {
            site,
            extensions: Mutex::default(),
        }));
        // AcqRel: publishes the box, or acquires the one that another thread published first.
        let won = self
            .0
            .compare_exchange(word, made.cast(), Ordering::AcqRel, Ordering::Acquire);
        match won {
            Ok(_) => lock(&extensions(made.cast()).extensions),
            Err(other) => {
                // SAFETY: the box was made above and never published.
                drop(unsafe { Box::from_raw(made) });
                lock(&extensions(other).extensions)
            }
        }
    }
}

impl Drop for ExtensionsWord {
    #[inline(always)]
    fn drop(&mut self) {
        let word = self.0.load(Ordering::Acquire);
        if as_site(word).is_none() {
            // SAFETY: an untagged word is a box that `extensions` published; this is its only owner.
            drop_extras(unsafe { Box::from_raw(word.cast::<ExtensionsBox>()) });
        }
    }
}

/// A waker that nobody woke may lie in it, and its destructor is user code; this may be a worker's thread.
#[inline(never)]
fn drop_extras(extensions: Box<ExtensionsBox>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(extensions))) {
        report::waker_panicked(&panic_message(payload.as_ref()));
        // Its own destructor could panic again.
        std::mem::forget(payload);
    }
}

fn as_site(word: *mut ()) -> Option<&'static Location<'static>> {
    let site = word.map_addr(|a| a & !SITE).cast::<Location<'static>>();
    // SAFETY: a tagged word is the address of a location that lives for ever.
    (word.addr() & SITE != 0).then(|| unsafe { &*site })
}

fn extensions<'a>(word: *mut ()) -> &'a ExtensionsBox {
    // SAFETY: an untagged word is a box that lives as long as the word, which every caller borrows.
    unsafe { &*word.cast::<ExtensionsBox>() }
}

/// Inside the crate, because by its public face only a race leaves a waker in the extras of a job that
/// is freed.
#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{atomic::AtomicBool, mpsc},
        task::{Context, Wake},
        time::Duration,
    };

    use super::*;
    use crate::{JoinHandle, Runtime, sleep, spawn_local, yield_now};

    /// How many operations a waker completes when it is dropped: more than the budget of a poll.
    const OPERATIONS: usize = 1_000;

    /// Tells at its drop how many operations were ready: all of them, unless a job runs on the thread.
    struct Completes(mpsc::Sender<usize>);

    impl Wake for Completes {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Completes {
        fn drop(&mut self) {
            let ready = |_: &usize| {
                let cx = &mut Context::from_waker(Waker::noop());
                pin!(sleep(Duration::ZERO)).poll(cx).is_ready()
            };
            let _ = self.0.send((0..OPERATIONS).filter(ready).count());
        }
    }

    /// Leaves a [`Completes`] with `job`, which is then dropped with the job's last reference.
    fn leave_with(job: JoinHandle<()>) -> mpsc::Receiver<usize> {
        let (sender, receiver) = mpsc::channel();
        let waker = Waker::from(Arc::new(Completes(sender)));
        job.job().unwrap().header().extensions.lock().joiner = Some(waker);
        receiver
    }

    /// Ends when the flag is set; nobody has to wake it, and so nobody else holds a reference.
    fn ends_at(flag: &Arc<AtomicBool>) -> impl Future<Output = ()> + Send + 'static {
        let flag = flag.clone();
        async move {
            while !flag.load(Ordering::SeqCst) {
                yield_now().await;
            }
        }
    }

    #[test]
    fn what_is_dropped_with_a_job_finds_no_running_job() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        // On a worker.
        let flag = Arc::default();
        let told = leave_with(runtime.spawn(ends_at(&flag)));
        flag.store(true, Ordering::SeqCst);
        assert_eq!(told.recv(), Ok(OPERATIONS));
        // On a thread in `block_on`.
        let ready = runtime.block_on(async {
            let flag = Arc::default();
            let told = leave_with(spawn_local(ends_at(&flag)).unwrap());
            flag.store(true, Ordering::SeqCst);
            loop {
                match told.try_recv() {
                    Ok(ready) => break ready,
                    Err(_) => yield_now().await,
                }
            }
        });
        assert_eq!(ready, OPERATIONS);
        // Queued, in a runtime that is dropped.
        let told = leave_with(runtime.spawn(ends_at(&Arc::default())));
        drop(runtime);
        assert_eq!(told.recv(), Ok(OPERATIONS));
    }

    #[test]
    fn a_waker_that_panics_when_it_is_dropped_unwinds_nobody() {
        struct Panics;
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {}
        }
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("a dropped waker panics");
            }
        }
        let word = ExtensionsWord::new(Location::caller());
        word.lock().receiver = Some(Waker::from(Arc::new(Panics)));
        drop(word);
    }
}
