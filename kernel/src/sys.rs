//! The one place that chooses between `std` and loom, and the asymmetric fence.
//!
//! Everything that a loom model explores takes its atomics, mutexes and fences from here.

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{
            AtomicBool, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
            AtomicUsize,
        },
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{
            AtomicBool, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
            AtomicUsize,
        },
    },
    thread::yield_now,
};

pub(crate) use std::sync::atomic::Ordering;

/// Runs `act` with the calling thread's value of `key`, which has no destructor. As `LocalKey::with`, which the default
/// release profile does not inline.
#[inline(always)]
pub(crate) fn with_local<T, R>(
    key: &'static std::thread::LocalKey<T>,
    act: impl FnOnce(&T) -> R,
) -> R {
    match key.try_with(act) {
        Ok(result) => result,
        Err(_) => unreachable!("it has no destructor"),
    }
}

/// A mutex of `std` or loom.
pub(crate) trait Lock {
    /// The mutex's guard.
    type Guard<'a>
    where
        Self: 'a;

    /// See [`lock`].
    fn lock_ignoring_poison(&self) -> Self::Guard<'_>;
}

impl<T> Lock for std::sync::Mutex<T> {
    type Guard<'a>
        = std::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn lock_ignoring_poison(&self) -> Self::Guard<'_> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(loom)]
impl<T> Lock for loom::sync::Mutex<T> {
    type Guard<'a>
        = loom::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn lock_ignoring_poison(&self) -> Self::Guard<'_> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<M: Lock> Lock for std::sync::Arc<M> {
    type Guard<'a>
        = M::Guard<'a>
    where
        M: 'a;

    fn lock_ignoring_poison(&self) -> Self::Guard<'_> {
        M::lock_ignoring_poison(self)
    }
}

/// Locks `mutex`, even if a panic poisoned it: no critical section of the kernel runs user code, so a
/// poisoned lock can only mean that the panicking thread was past its last write.
pub(crate) fn lock<M: Lock>(mutex: &M) -> M::Guard<'_> {
    mutex.lock_ignoring_poison()
}

/// How many pauses [`spin_while`] makes: some 5 µs. None in a model, where each would be a step.
const SPINS: usize = if cfg!(loom) { 0 } else { 128 };

/// Pauses for a few microseconds while `is_so`, which mostly ends sooner than a sleep and a wake. Whether it still is.
pub(crate) fn spin_while(is_so: impl Fn() -> bool) -> bool {
    (0..SPINS).all(|_| {
        spin_loop();
        is_so()
    })
}

/// A pair of fences that together order "store, then load" on two threads, where one side is hot.
///
/// Thread A runs `store x; light(); load y`, thread B runs `store y; heavy(); load x`. At least one
/// of the two loads sees the other thread's store. `light` costs nothing: it only stops the
/// compiler. `heavy` interrupts every other running thread of the program (3 to 5 µs with a running
/// peer), and so belongs on paths that are about to sleep or to revoke a lease.
///
/// This is the asymmetric barrier of `membarrier(2)`, as used by libfork and liburcu.
pub(crate) mod barrier {
    #[cfg(not(loom))]
    mod choice {
        use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};
        use std::sync::{
            Once,
            atomic::{AtomicBool, Ordering, compiler_fence, fence},
        };

        /// Whether the system lacks the expedited private membarrier (old kernels, some sandboxes);
        /// both sides then use the symmetric fence. Written once, before the first runtime starts.
        static SYMMETRIC: AtomicBool = AtomicBool::new(false);
        static CHOSEN: Once = Once::new();

        /// Orders as `heavy` does, but only the calling thread: both sides need it.
        pub(crate) fn full() {
            fence(Ordering::SeqCst);
        }

        #[inline(always)]
        pub(crate) fn light() {
            if SYMMETRIC.load(Ordering::Relaxed) {
                fence(Ordering::SeqCst);
            } else {
                compiler_fence(Ordering::SeqCst);
            }
        }

        /// As `light` where the fences are asymmetric, else no fence; then the caller must need none.
        #[inline(always)]
        pub(crate) fn light_if_asymmetric() {
            compiler_fence(Ordering::SeqCst);
        }

        /// Whether `light` is a full fence. The result does not change once a runtime has started.
        pub(crate) fn is_symmetric() -> bool {
            SYMMETRIC.load(Ordering::Relaxed)
        }

        #[cfg(test)]
        thread_local! {
            static HEAVY_FENCES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
        }

        /// How many heavy fences the calling thread has executed.
        #[cfg(test)]
        pub(crate) fn heavy_fences() -> usize {
            HEAVY_FENCES.get()
        }

        pub(crate) fn heavy() {
            #[cfg(test)]
            HEAVY_FENCES.set(HEAVY_FENCES.get() + 1);
            fence(Ordering::SeqCst);
            if !SYMMETRIC.load(Ordering::Relaxed) {
                membarrier(MembarrierCommand::PrivateExpedited)
                    .expect("the membarrier was registered before the first runtime started");
            }
        }

        /// Registers the process for membarriers. Called before a runtime's first thread starts. Only the first call
        /// chooses: a lock that exists keeps its owner's fence, so the foreign side's must not change.
        pub(crate) fn register() {
            CHOSEN.call_once(|| {
                // Miri knows neither the system call nor that a fence may be left out.
                let known =
                    !cfg!(miri) && membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED);
                if !known || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_err() {
                    SYMMETRIC.store(true, Ordering::SeqCst);
                }
            });
        }
    }

    /// loom has no membarrier. In its place both sides change one word: whichever comes second sees all that came
    /// before the first. So a light fence whose counterpart is not heavy orders nothing, as in the program.
    #[cfg(loom)]
    mod choice {
        use loom::sync::atomic::{AtomicUsize, Ordering, fence};

        loom::lazy_static! {
            static ref MEETING: AtomicUsize = AtomicUsize::new(0);
        }

        pub(crate) fn full() {
            fence(Ordering::SeqCst);
        }

        #[inline(always)]
        pub(crate) fn light() {
            MEETING.fetch_add(1, Ordering::AcqRel);
        }

        /// Stronger than in the program.
        pub(crate) fn light_if_asymmetric() {
            fence(Ordering::SeqCst);
        }

        pub(crate) fn is_symmetric() -> bool {
            false
        }

        pub(crate) fn heavy() {
            fence(Ordering::SeqCst);
            MEETING.fetch_add(1, Ordering::AcqRel);
        }

        pub(crate) fn register() {}
    }

    pub(crate) use choice::*;
}

#[cfg(all(test, not(loom)))]
#[path = "../tests/support/no_membarrier.rs"]
mod no_membarrier;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{barrier, no_membarrier::forbid_membarriers};

    #[test]
    fn the_fences_stay_what_they_are_when_a_sandbox_takes_the_membarrier_away() {
        barrier::register();
        let before = barrier::is_symmetric();
        let late = std::thread::spawn(|| {
            forbid_membarriers();
            barrier::register();
        });
        late.join().unwrap();
        assert_eq!(barrier::is_symmetric(), before);
    }
}
