//! Tells the program when many connections at once gave back their buffers. Then it can make its allocator return the
//! pages: few allocators do that by themselves, and none before somebody allocates again.
//!
//! A connection that falls idle counts itself. The one that completes a mass starts a job, which waits until hardly any
//! others follow, and then calls the program's function once for all of them. Without a function nothing is counted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// How many connections are a mass: together they have some ten megabytes.
pub(crate) const MASS: usize = 1_000;
/// The mass has calmed down when fewer than [`FEW`] connections fell idle in this time.
const REST: Duration = Duration::from_millis(250);
const FEW: usize = MASS / 4;

/// What the program does when buffers were freed.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// The connections of one server that have given back their buffers since the program was last told.
#[derive(Default)]
pub(crate) struct Freed {
    hook: Option<Hook>,
    /// Relaxed, as the flag below: the job that a mass starts takes what it needs with it.
    count: AtomicUsize,
    /// Whether a job waits for the mass to calm down.
    is_watched: AtomicBool,
}

impl Freed {
    pub(crate) fn new(hook: Option<Hook>) -> Arc<Freed> {
        Arc::new(Freed {
            hook,
            ..Freed::default()
        })
    }

    /// A connection has given back its buffers. Called by its job, under no lock.
    pub(crate) fn note(self: &Arc<Self>) {
        if self.hook.is_none() {
            return;
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= MASS && !self.is_watched.swap(true, Ordering::Relaxed) {
            weald_kernel::spawn(self.clone().watch()).detach();
        }
    }

    async fn watch(self: Arc<Self>) {
        let mut seen = self.count.load(Ordering::Relaxed);
        loop {
            weald_kernel::sleep(REST).await;
            let count = self.count.load(Ordering::Relaxed);
            if count - seen < FEW {
                break;
            }
            seen = count;
        }
        self.count.store(0, Ordering::Relaxed);
        self.is_watched.store(false, Ordering::Relaxed);
        if let Some(hook) = &self.hook {
            hook();
        }
    }
}

impl fmt::Debug for Freed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With virtual time.
    #[test]
    fn the_program_is_told_once_when_a_mass_has_calmed_down() {
        weald_kernel::Runtime::test(1).block_on(async {
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = calls.clone();
            let freed = Freed::new(Some(Arc::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
            })));
            let told = || calls.load(Ordering::Relaxed);
            let several = |count: usize| (0..count).for_each(|_| freed.note());
            several(MASS - 1);
            weald_kernel::sleep(10 * REST).await;
            assert_eq!(told(), 0, "no mass yet");
            for _ in 0..20 {
                several(FEW);
                weald_kernel::sleep(REST / 2).await;
            }
            assert_eq!(told(), 0, "it goes on");
            several(FEW - 1);
            weald_kernel::sleep(3 * REST).await;
            assert_eq!(told(), 1);
            several(MASS);
            weald_kernel::sleep(3 * REST).await;
            assert_eq!(told(), 2, "another mass");
        });
    }
}
