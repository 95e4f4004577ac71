//! may: units are stackful coroutines, mailboxes are its unbounded mpsc channels.
//!
//! Invariants: the measured work runs in a coroutine. If the kernel's limit of memory maps does not allow the number of
//! coroutines, the program says so and ends before it starts the first one, because may itself would abort.

use std::future::ready;
use std::time::Duration;

use common::fail;
use may::coroutine::{JoinHandle, sleep};
use may::go;
use may::sync::mpsc::{Receiver, Sender, channel};

use crate::system::{Arrival, Mailbox, Outbox, System, run_blocking};

/// Each coroutine takes two memory maps (a stack and its guard page); this many are left for everything else.
const SPARE_MAPS: usize = 2000;

pub(crate) enum May {}

impl May {
    /// Runs the measured work, which ends the program.
    pub(crate) fn run(workers: usize, work: impl Future<Output = ()> + Send + 'static) -> ! {
        may::config().set_workers(workers);
        match Self::spawn(work).join() {
            Ok(()) => unreachable!("every workload ends the program"),
            Err(_) => fail("The measured coroutine panicked: see the message above."),
        }
    }
}

impl System for May {
    type Outbox<T: Send + 'static> = Sender<T>;
    type Mailbox<T: Send + 'static> = Receiver<T>;
    type Tell<T: Send + 'static> = Sender<T>;
    type Told<T: Send + 'static> = Receiver<T>;
    type Unit = JoinHandle<()>;

    fn mailbox<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
        channel()
    }

    fn once<T: Send + 'static>() -> (Sender<T>, Receiver<T>) {
        channel()
    }

    fn tell<T: Send + 'static>(tell: Sender<T>, value: T) -> bool {
        tell.send(value).is_ok()
    }

    async fn told<T: Send + 'static>(told: Receiver<T>) -> Option<T> {
        told.recv().ok()
    }

    fn start(body: impl Future<Output = ()> + Send + 'static) {
        drop(Self::spawn(body));
    }

    fn spawn(body: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        go!(move || run_blocking(body))
    }

    async fn gone<T: Send>(units: &mut Vec<Option<(T, JoinHandle<()>)>>) {
        for (_, unit) in units.drain(..).flatten() {
            unit.join().expect("no unit panics");
        }
    }

    async fn pause(length: Duration) {
        sleep(length);
    }

    fn allow(coroutines: usize) {
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
        let Some(limit) = limit.and_then(|limit| limit.trim().parse::<usize>().ok()) else {
            fail("/proc/sys/vm/max_map_count cannot be read: run this on Linux with /proc mounted.")
        };
        let most = limit.saturating_sub(SPARE_MAPS) / 2;
        if coroutines > most {
            fail(&format!(
                "The kernel's vm.max_map_count of {limit} allows about {most} coroutines: \
                 raise it, or give a number of at most {most}."
            ));
        }
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
