//! `mailbox`: one process sends itself messages and then receives them all.

use std::hint::black_box;
use std::time::{Duration, Instant};

use common::{per, print_metrics, rss_bytes};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::start;

/// A message to the process; `T` says whether the text is shared or owned.
enum Message<T> {
    Begin,
    Item {
        text: T,
        number: u64,
        length: u64,
        share: f64,
    },
}

/// The process that sends to itself.
struct Echo<T> {
    k: usize,
    text: &'static str,
    make: fn(&'static str) -> T,
}

/// The measurements of the process so far.
struct Progress {
    received: usize,
    clock: Instant,
    sending: Duration,
    grown: u64,
}

impl<T: AsRef<str> + Send + Sync + 'static> Actor for Echo<T> {
    type Msg = Message<T>;
    type State = Progress;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<Message<T>>,
        (): (),
    ) -> Result<Progress, ActorProcessingErr> {
        Ok(Progress {
            received: 0,
            clock: Instant::now(),
            sending: Duration::ZERO,
            grown: 0,
        })
    }

    async fn handle(
        &self,
        me: ActorRef<Message<T>>,
        message: Message<T>,
        progress: &mut Progress,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Begin => {
                *progress = self.send_all(&me);
            }
            Message::Item {
                text,
                number,
                length,
                share,
            } => {
                black_box((text.as_ref(), number, length, share));
                drop(text);
                progress.received += 1;
                if progress.received == self.k {
                    self.print(progress);
                }
            }
        }
        Ok(())
    }
}

impl<T: AsRef<str> + Send + Sync + 'static> Echo<T> {
    fn send_all(&self, me: &ActorRef<Message<T>>) -> Progress {
        let rss_before = rss_bytes();
        let clock = Instant::now();
        for number in 0..self.k as u64 {
            let text = (self.make)(self.text);
            let item = Message::Item {
                text,
                number,
                length: number + 1,
                share: number as f64 * 0.5,
            };
            me.cast(item).expect("the process is alive");
        }
        let sending = clock.elapsed();
        let grown = rss_bytes().saturating_sub(rss_before);
        Progress {
            received: 0,
            clock: Instant::now(),
            sending,
            grown,
        }
    }

    fn print(&self, progress: &Progress) -> ! {
        let k = self.k as f64;
        print_metrics(&[
            ("ns_per_send", per(progress.sending, k)),
            ("ns_per_receive", per(progress.clock.elapsed(), k)),
            ("bytes_per_message", progress.grown as f64 / k),
        ])
    }
}

pub(crate) async fn run<T>(k: usize, bytes: usize, make: fn(&'static str) -> T)
where
    T: AsRef<str> + Send + Sync + 'static,
{
    let text: &'static str = "x".repeat(bytes).leak();
    let process = start(Echo { k, text, make }, ()).await;
    process
        .cast(Message::Begin)
        .expect("the process waits for its start");
    std::future::pending::<()>().await;
}
