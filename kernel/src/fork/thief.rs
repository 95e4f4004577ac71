//! The thief of a fork: it takes a stack job, makes a job of it, and runs that.
//!
//! As a job, what it stole waits, is cancelled and is detached like any other. In the stack job's place it leaves the
//! job's handle, for the owner to wait with (`stolen_job`).

#![allow(unsafe_code)]

use std::{
    any::TypeId,
    cell::Cell,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    api::join::JoinHandle,
    fork::{
        self,
        fork_deque::ForkDeque,
        fork_deques::{self, relief::Relief},
        root_fork::{Origin, RootFork},
        stack_job::StolenEntry,
        stolen_job::StolenJob,
    },
    job::{self, Header, Room, Spec, body_bit, runnable::Runnable, transition::Inbox},
    report,
    scheduler::{
        services::ThreadFork,
        workers::{
            context,
            shared::{self, Shared},
        },
    },
};

/// How reports name a job that runs parts of a fork.
pub(crate) const PART: &str = "part of a fork";

/// Why a thief may steal.
pub(super) enum Admitted {
    Plainly,
    /// The job that it makes goes before all others in the quarantine.
    ByRelief(Relief),
}

/// Steals the oldest stack job of `fork_deque`, if `admits` accepts the deque, as a job that the caller runs or queues.
pub(super) fn steal_from(
    shared: &Shared,
    fork_deque: &ForkDeque,
    admits: impl FnOnce(&ForkDeque) -> Option<Admitted>,
) -> Option<Runnable> {
    let relief = Cell::new(None);
    // `admits` is the caller's last check, after that of the bound (`ForkDeques::admits`). It is called only after the
    // owner can no longer pop the stack job: until then the deque may pass to another root fork.
    fork_deque.deque.steal(
        || match admits(fork_deque) {
            None => false,
            Some(Admitted::Plainly) => true,
            Some(Admitted::ByRelief(taken)) => {
                relief.set(Some(taken));
                true
            }
        },
        |entry| {
            let number = fork_deques::of(shared).number();
            let inherited = fork_deque.ancestry();
            let ancestry: Vec<u64> = inherited
                .iter()
                .flat_map(|ancestry| ancestry.iter().copied())
                .chain([number])
                .collect();
            let origin = Origin {
                root: fork_deque.root_of_forks(),
                ancestry: Arc::from(ancestry),
            };
            // SAFETY: it has just been stolen.
            let entry = unsafe { StolenEntry::new(entry) };
            let stolen = StolenBody {
                runtime: shared.id(),
                entry,
                site: fork_deque.site(),
                origin,
                relief: relief.take(),
            };
            let (runnable, job) = make_job(stolen);
            (StolenJob::new(number, job), runnable)
        },
    )
}

fn make_job(stolen: StolenBody) -> (Runnable, JoinHandle<()>) {
    let spec = Spec {
        runtime: stolen.runtime,
        site: stolen.site,
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs: 1,
    };
    let bits = match stolen.relief {
        None => body_bit::PART,
        Some(_) => body_bit::PART | body_bit::RELIEVES,
    };
    let runnable = job::new(Room::needed(), spec, |_| StolenFuture(Some(stolen)));
    runnable.header().set_body_bit(bits);
    // SAFETY: this is the one reference that the spec asked for.
    let reference = unsafe { runnable.claim_ref() };
    // SAFETY: this is the job's only handle, and the job's output is `()`.
    (runnable, unsafe { JoinHandle::new(reference) })
}

/// Whether `job` is one that a thief has made, and does not go before all others in the quarantine.
pub(super) fn is_stolen_without_relief(job: &Header) -> bool {
    !job.relieves() && (job.vtable.type_id)() == TypeId::of::<StolenFuture>()
}

/// Runs what was stolen. A type with a name, by which such jobs are known.
struct StolenFuture(Option<StolenBody>);

impl Future for StolenFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let stolen = self.get_mut().0.take();
        stolen.expect("a job is polled until it ends").run();
        Poll::Ready(())
    }
}

/// What the stolen job needs to run.
struct StolenBody {
    runtime: u16,
    entry: StolenEntry,
    /// Where the user's code called the fork.
    site: &'static Location<'static>,
    origin: Origin,
    /// Ends when the job begins to run.
    relief: Option<Relief>,
}

impl StolenBody {
    fn run(self) {
        drop(self.relief);
        // Not from the context: a foreign thread that waits in a join has no runtime there.
        let Some(shared) = shared::find(self.runtime) else {
            report::impossible("a runtime ended while a job was stolen in it");
        };
        let _root_fork = RootFork::enter(context::here(), &shared, self.site, Some(self.origin));
        let returned = self.entry.run();
        fork::cancel::tell_if_survived(returned);
    }
}
