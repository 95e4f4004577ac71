//! The offenders of `stall` that need a runtime's own means; smol has none of them.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use common::{Offender, REST, bad_usage, fail};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::stall::Offences;
use crate::systems::{Smol, Tokio};

/// The tasks that one sender sends to, and how many messages each of them gets before the sender waits.
const RECEIVERS: usize = 60;
const SHARE: u32 = 20_000;

impl Offences for Smol {
    fn prepare(offender: Offender) {
        if let Offender::Waker | Offender::Destructor | Offender::Sends | Offender::File = offender
        {
            bad_usage("The rival smol has no program for this offender: leave it out.")
        }
    }

    async fn offend(_: Offender) {}

    async fn use_file(_: Duration) {}

    fn clean_up() {}
}

impl Offences for Tokio {
    fn prepare(offender: Offender) {
        if offender == Offender::File {
            create_files();
        }
    }

    async fn offend(offender: Offender) {
        match offender {
            Offender::Waker => wait_with_blocking_waker().await,
            Offender::Destructor => {
                let blocks = BlocksAtDrop;
                let task = tokio::spawn(async move {
                    let _blocks = blocks;
                    std::future::pending::<()>().await;
                });
                sleep(REST).await;
                task.abort();
                let _cancelled = task.await;
            }
            Offender::Sends => send_again().await,
            // It comes back when the files are removed.
            _ => drop(tokio::fs::read(fifo()).await),
        }
    }

    async fn use_file(left: Duration) {
        let used = timeout(left, async {
            tokio::fs::read(small_file()).await?;
            let _addresses = tokio::net::lookup_host("localhost:80").await?;
            std::io::Result::Ok(())
        });
        if let Ok(Err(error)) = used.await {
            fail(&format!("A tick failed: {error}."));
        }
    }

    /// Lets the readers go that have opened the FIFO or are about to; those that still wait for a thread find it gone.
    fn clean_up() {
        let both = OpenOptions::new().read(true).write(true).open(fifo());
        let _removed = std::fs::remove_file(fifo());
        let _gone = std::fs::remove_file(small_file());
        drop(both);
    }
}

/// The FIFO that nobody writes, which each offender reads to its end.
fn fifo() -> PathBuf {
    std::env::temp_dir().join(format!("rival-tokio-fifo-{}", std::process::id()))
}

/// The small file that each tick reads before it looks up a name.
fn small_file() -> PathBuf {
    std::env::temp_dir().join(format!("rival-tokio-tick-{}", std::process::id()))
}

fn create_files() {
    let made = Command::new("mkfifo").arg(fifo()).status();
    if !made.is_ok_and(|status| status.success()) {
        fail("mkfifo failed in the folder for temporary files.");
    }
    if std::fs::write(small_file(), "small").is_err() {
        fail("The folder for temporary files cannot be written.");
    }
}

/// A message of a sender.
enum Sent {
    Value(u32),
    /// The last one of a share: the receiver drops the sender's end.
    LastOfShare(oneshot::Sender<()>),
}

/// Rests, sends to each receiver in turn without a wait, and waits until they have received everything, for ever.
async fn send_again() {
    let channels = (0..RECEIVERS).map(|_| mpsc::unbounded_channel());
    let (senders, mailboxes): (Vec<_>, Vec<_>) = channels.unzip();
    for mut mailbox in mailboxes {
        tokio::spawn(async move {
            while let Some(message) = mailbox.recv().await {
                match message {
                    Sent::Value(value) => drop(black_box(value)),
                    Sent::LastOfShare(at_end) => drop(at_end),
                }
            }
        });
    }
    loop {
        sleep(REST).await;
        for value in 0..SHARE {
            for sender in &senders {
                assert!(sender.send(Sent::Value(value)).is_ok(), "it goes on");
            }
        }
        let mut ends = Vec::with_capacity(RECEIVERS);
        for sender in &senders {
            let (at_end, ended) = oneshot::channel::<()>();
            assert!(sender.send(Sent::LastOfShare(at_end)).is_ok(), "it goes on");
            ends.push(ended);
        }
        for ended in ends {
            let _closed = ended.await;
        }
    }
}

/// Rests with a waker that is not the task's own and that blocks when the timer fires it.
async fn wait_with_blocking_waker() {
    let (sender, woken) = oneshot::channel();
    let waker = Waker::from(Arc::new(BlockingWaker(Mutex::new(Some(sender)))));
    let mut rest = pin!(sleep(REST));
    let polled = rest.as_mut().poll(&mut Context::from_waker(&waker));
    if polled.is_pending() {
        let _closed = woken.await;
    }
}

struct BlockingWaker(Mutex<Option<oneshot::Sender<()>>>);

impl Wake for BlockingWaker {
    fn wake(self: Arc<Self>) {
        Offender::Waker.offend();
        let sender = self.0.lock().ok().and_then(|mut sender| sender.take());
        if let Some(sender) = sender {
            let _gone = sender.send(());
        }
    }
}

struct BlocksAtDrop;

impl Drop for BlocksAtDrop {
    fn drop(&mut self) {
        Offender::Destructor.offend();
    }
}
