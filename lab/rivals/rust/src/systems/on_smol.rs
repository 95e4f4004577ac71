//! smol: units are tasks of one static async-executor, mailboxes are unbounded async-channels.
//!
//! Invariant: the measured work is itself a task of the executor; `workers` OS threads run it, and the timers have the
//! thread that smol keeps for them.

use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use async_executor::StaticExecutor;
use common::fail;
use smol::{Task, Timer};

use crate::system::{Arrival, Mailbox, Outbox, System, Tasks};

/// The executor that all workers run.
static EXECUTOR: StaticExecutor = StaticExecutor::new();

pub(crate) enum Smol {}

impl Smol {
    /// Runs the measured work, which ends the program.
    pub(crate) fn run(workers: usize, work: impl Future<Output = ()> + Send + 'static) -> ! {
        for _ in 1..workers {
            let work = || smol::block_on(EXECUTOR.run(std::future::pending::<()>()));
            if std::thread::Builder::new().spawn(work).is_err() {
                fail("A worker thread cannot be started: give fewer workers.");
            }
        }
        smol::block_on(EXECUTOR.run(EXECUTOR.spawn(work)));
        unreachable!("every workload ends the program")
    }
}

impl System for Smol {
    type Outbox<T: Send + 'static> = Sender<T>;
    type Mailbox<T: Send + 'static> = Receiver<T>;
    type Tell<T: Send + 'static> = Sender<T>;
    type Told<T: Send + 'static> = Receiver<T>;
    type Unit = Task<()>;

    fn mailbox<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
        async_channel::unbounded()
    }

    fn once<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
        async_channel::bounded(1)
    }

    fn tell<T: Send + 'static>(tell: Sender<T>, value: T) -> bool {
        tell.try_send(value).is_ok()
    }

    async fn told<T: Send + 'static>(told: Receiver<T>) -> Option<T> {
        told.recv().await.ok()
    }

    fn start(body: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(body).detach();
    }

    fn spawn(body: impl Future<Output = ()> + Send + 'static) -> Task<()> {
        EXECUTOR.spawn(body)
    }

    async fn gone<T: Send>(units: &mut Vec<Option<(T, Task<()>)>>) {
        for (_, unit) in units.drain(..).flatten() {
            unit.await;
        }
    }

    async fn pause(length: Duration) {
        Timer::after(length).await;
    }
}

impl Tasks for Smol {
    type Task = Task<()>;
    type Sleep = Timer;

    fn task(body: impl Future<Output = ()> + Send + 'static) -> Task<()> {
        EXECUTOR.spawn(body)
    }

    fn cancel(task: Task<()>) {
        drop(task);
    }

    fn sleep(length: Duration) -> Timer {
        Timer::after(length)
    }

    fn sleep_until(due: Instant) -> Timer {
        Timer::at(due)
    }

    async fn give_way() {
        smol::future::yield_now().await;
    }
}

impl<T: Send + 'static> Outbox<T> for Sender<T> {
    fn send(&self, value: T) -> bool {
        self.try_send(value).is_ok()
    }
}

impl<T: Send + 'static> Mailbox<T> for Receiver<T> {
    fn receive(&mut self) -> impl Future<Output = impl Arrival<T>> + Send {
        self.recv()
    }
}
