//! OS threads: what crossbeam, flume, parking_lot and std are measured on.
//!
//! Invariant: the program is bound to as many processors as there are workers before the first thread starts.

use std::future::ready;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use common::{fail, use_processors};

use crate::system::{Arrival, Mailbox, Outbox, System, run_blocking};

pub(crate) enum Std {}

impl Std {
    /// Runs the measured work, which ends the program.
    pub(crate) fn run(workers: usize, work: impl Future<Output = ()>) -> ! {
        use_processors(workers);
        run_blocking(work);
        unreachable!("every workload ends the program")
    }
}

impl System for Std {
    type Outbox<T: Send + 'static> = Sender<T>;
    type Mailbox<T: Send + 'static> = Receiver<T>;
    type Tell<T: Send + 'static> = SyncSender<T>;
    type Told<T: Send + 'static> = Receiver<T>;
    type Unit = JoinHandle<()>;

    fn mailbox<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
        channel()
    }

    fn once<T: Send + 'static>() -> (SyncSender<T>, Receiver<T>) {
        sync_channel(1)
    }

    fn tell<T: Send + 'static>(tell: SyncSender<T>, value: T) -> bool {
        tell.send(value).is_ok()
    }

    async fn told<T: Send + 'static>(told: Receiver<T>) -> Option<T> {
        told.recv().ok()
    }

    fn start(body: impl Future<Output = ()> + Send + 'static) {
        drop(Self::spawn(body));
    }

    fn spawn(body: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match Builder::new().spawn(move || run_blocking(body)) {
            Ok(thread) => thread,
            Err(_) => fail("A thread cannot be started: give a smaller number of them."),
        }
    }

    async fn gone<T: Send>(units: &mut Vec<Option<(T, JoinHandle<()>)>>) {
        for (_, unit) in units.drain(..).flatten() {
            unit.join().expect("no unit panics");
        }
    }

    async fn pause(length: Duration) {
        sleep(length);
    }
}

impl<T: Send + 'static> Outbox<T> for Sender<T> {
    fn send(&self, value: T) -> bool {
        Sender::send(self, value).is_ok()
    }
}

impl<T: Send + 'static> Mailbox<T> for Receiver<T> {
    fn receive(&mut self) -> impl Future<Output = impl Arrival<T>> + Send {
        ready(self.recv())
    }
}
