//! Models of a job's end against the exit hooks and the joiner that must learn of it, and of an end that only the
//! joiner knows of against a walk over all jobs.

use std::{
    panic::Location,
    sync::{Arc, atomic::Ordering},
};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::{
    job::{
        exit_hooks, extensions::ExtensionsWord, state::State, transition::Inbox,
        unseen::give_up_both,
    },
    sys::{AtomicU32, AtomicUsize as Watched},
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

/// What a model of an end that only the joiner knows of needs of a job.
struct Known {
    state: State,
    /// The job's own reference and the handle's.
    refs: AtomicU32,
    /// Stands for the block. Whoever frees it touches it; loom would find another one that does at the same time.
    block: Cell<bool>,
}

impl Known {
    fn new() -> Arc<Known> {
        Arc::new(Known {
            state: State::new(Inbox::None),
            refs: AtomicU32::new(2),
            block: Cell::new(true),
        })
    }

    /// As `JobRef::from_block`.
    fn find(&self) -> bool {
        let more = |refs: u32| (refs > 0).then(|| refs + 1);
        let found = self
            .refs
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more);
        found.is_ok()
    }

    /// As the drop of a `JobRef`.
    fn let_go(&self) {
        if self.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.free();
        }
    }

    fn free(&self) {
        assert!(self.block.get(), "a block is freed once");
        self.block.set(false);
    }
}

/// A walk that finds the job may leave something that the end must tell of. Then the job does not end unseen. Either
/// way its block is freed once, by the last that could reach it.
#[test]
fn an_end_is_unseen_only_if_nobody_has_left_anything() {
    for leaves in [false, true] {
        loom::model(move || {
            let job = Known::new();
            let walk = {
                let job = job.clone();
                thread::spawn(move || {
                    if !job.find() {
                        return false;
                    }
                    let left = leaves && job.state.register_exit_hook();
                    job.let_go();
                    left
                })
            };
            let unseen = give_up_both(&job.refs, || job.state.is_untouched());
            let mut tells = false;
            if unseen {
                job.free();
            } else {
                tells = job.state.complete().run_exit_hooks;
                job.let_go();
                job.let_go();
            }
            let left = walk.join().unwrap();
            assert!(!(unseen && left), "the walk's hook is never called");
            assert_eq!(left, tells);
            assert!(!job.block.get());
        });
    }
}
