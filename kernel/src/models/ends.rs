//! Models of a job's end against the exit hooks and the joiner that must learn of it.

use std::{
    panic::Location,
    sync::{Arc, atomic::Ordering},
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::thread;

use crate::{
    job::{exit_hooks, extensions::ExtensionsWord, state::State, transition::Inbox},
    sys::AtomicUsize as Watched,
};

/// What the model needs of a job, and how often its exit hooks ran.
struct Ending {
    state: State,
    extensions: ExtensionsWord,
    /// Relaxed, so a joiner sees a count only if the end orders it.
    told: Watched,
}

impl Ending {
    fn new() -> Arc<Ending> {
        Arc::new(Ending {
            state: State::new(Inbox::None),
            extensions: ExtensionsWord::new(Location::caller()),
            told: Watched::new(0),
        })
    }

    /// As `exit_hooks::attach`. Whether the hook was left to the thread that ends the job.
    fn attach(self: &Arc<Ending>) -> bool {
        let job = Arc::downgrade(self);
        let hook = move || {
            let job = job.upgrade().expect("the job outlives the model's threads");
            job.told.fetch_add(1, Ordering::Relaxed);
        };
        match exit_hooks::push(&self.state, &self.extensions, Box::new(hook)) {
            Ok(_) => true,
            Err(hook) => {
                hook();
                false
            }
        }
    }

    /// As `run::finish`.
    fn finish(&self) {
        if self.state.complete().run_exit_hooks {
            exit_hooks::take_each(&self.extensions, |hook| hook());
            let extensions = self.extensions.lock();
            self.state.end_exit_hooks();
            drop(extensions);
        }
    }
}

/// An end against an exit hook, the first of a job or a later one: a hook that was left to the job has run when a
/// joiner sees the end, and each hook runs once.
#[test]
fn who_joins_sees_the_end_after_all_hooks_of_the_job() {
    for earlier in [0, 1] {
        loom::model(move || {
            let job = Ending::new();
            for _ in 0..earlier {
                assert!(job.attach());
            }
            let ending = {
                let job = job.clone();
                thread::spawn(move || job.finish())
            };
            let attaching = {
                let job = job.clone();
                thread::spawn(move || job.attach())
            };
            while !job.state.has_ended() {
                thread::yield_now();
            }
            let told = job.told.load(Ordering::Relaxed);
            let was_left = attaching.join().unwrap();
            ending.join().unwrap();
            let wanted = earlier + usize::from(was_left);
            assert!(told >= wanted, "{told} of {wanted}");
            assert_eq!(job.told.load(Ordering::Relaxed), earlier + 1);
        });
    }
}
