//! Tokio: units are spawned tasks, mailboxes are unbounded mpsc channels.
//!
//! Invariant: the measured work runs in a spawned task, so that the `block_on` thread is never part of it.

use std::time::{Duration, Instant};

use common::fail;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Sleep, sleep, sleep_until};

use crate::system::{Arrival, Mailbox, Outbox, System, Tasks};

/// Which of tokio's runtimes is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    MultiThread,
    /// A worker hands the timers to another one before it polls a task.
    EagerHandoff,
    /// It has exactly one worker.
    CurrentThread,
}

/// Runs the measured work, which ends the program.
pub(crate) fn on_runtime(
    flavour: Flavour,
    workers: usize,
    work: impl Future<Output = ()> + Send + 'static,
) -> ! {
    if flavour == Flavour::CurrentThread && workers != 1 {
        fail("The current_thread runtime has one worker: give workers=1.");
    }
    let mut builder = match flavour {
        Flavour::CurrentThread => Builder::new_current_thread(),
        Flavour::MultiThread => Builder::new_multi_thread(),
        Flavour::EagerHandoff => eager_handoff(),
    };
    if flavour != Flavour::CurrentThread {
        builder.worker_threads(workers);
    }
    let Ok(runtime) = builder.enable_time().build() else {
        fail("The runtime cannot start its threads: give fewer workers.")
    };
    match runtime.block_on(async move { tokio::spawn(work).await }) {
        Ok(()) => unreachable!("every workload ends the program"),
        Err(_) => fail("The measured task panicked: see the message above."),
    }
}

#[cfg(tokio_unstable)]
fn eager_handoff() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_eager_driver_handoff();
    builder
}

#[cfg(not(tokio_unstable))]
fn eager_handoff() -> Builder {
    fail("The eager hand-off is unstable: build with RUSTFLAGS=\"--cfg tokio_unstable\".")
}

pub(crate) enum Tokio {}

impl System for Tokio {
    type Outbox<T: Send + 'static> = mpsc::UnboundedSender<T>;
    type Mailbox<T: Send + 'static> = mpsc::UnboundedReceiver<T>;
    type Tell<T: Send + 'static> = oneshot::Sender<T>;
    type Told<T: Send + 'static> = oneshot::Receiver<T>;
    type Unit = ();

    fn mailbox<T: Send + 'static>() -> (Self::Outbox<T>, Self::Mailbox<T>) {
        mpsc::unbounded_channel()
    }

    fn once<T: Send + 'static>() -> (Self::Tell<T>, Self::Told<T>) {
        oneshot::channel()
    }

    fn tell<T: Send + 'static>(tell: Self::Tell<T>, value: T) -> bool {
        tell.send(value).is_ok()
    }

    async fn told<T: Send + 'static>(told: Self::Told<T>) -> Option<T> {
        told.await.ok()
    }

    fn start(body: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(body));
    }

    fn spawn(body: impl Future<Output = ()> + Send + 'static) {
        Self::start(body);
    }

    async fn gone<T: Send>(_: &mut Vec<Option<(T, ())>>) {
        let metrics = Handle::current().metrics();
        // The measured task itself is alive.
        while metrics.num_alive_tasks() > 1 {
            yield_now().await;
        }
    }

    async fn pause(length: Duration) {
        sleep(length).await;
    }
}

impl Tasks for Tokio {
    type Task = JoinHandle<()>;
    type Sleep = Sleep;

    fn task(body: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        tokio::spawn(body)
    }

    fn cancel(task: JoinHandle<()>) {
        task.abort();
    }

    fn sleep(length: Duration) -> Sleep {
        sleep(length)
    }

    fn sleep_until(due: Instant) -> Sleep {
        sleep_until(due.into())
    }

    async fn give_way() {
        yield_now().await;
    }
}

impl<T: Send + 'static> Outbox<T> for mpsc::UnboundedSender<T> {
    fn send(&self, value: T) -> bool {
        mpsc::UnboundedSender::send(self, value).is_ok()
    }
}

impl<T: Send + 'static> Mailbox<T> for mpsc::UnboundedReceiver<T> {
    fn receive(&mut self) -> impl Future<Output = impl Arrival<T>> + Send {
        self.recv()
    }
}
