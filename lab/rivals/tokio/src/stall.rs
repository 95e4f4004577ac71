//! `stall` and `handoff`: what happens to the others when one unit does not yield.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use common::{
    CALM, Lateness, Offender, REST, Stall, TICK, TickLog, compute_for, fail, per, print_metrics,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::files::Files;

/// The tasks that one sender sends to, and how many messages each of them gets before the sender waits.
const RECEIVERS: usize = 60;
const SHARE: u32 = 20_000;

const HANDOFF_WORK: Duration = Duration::from_millis(50);

/// The number of messages that one pair has exchanged; a cache line of its own, so that pairs do not share
/// one.
#[repr(align(64))]
#[derive(Default)]
struct Exchanged(AtomicU64);

pub(crate) async fn run(stall: Stall) {
    let pairs: &'static [Exchanged] = (0..stall.pingers / 2)
        .map(|_| Exchanged::default())
        .collect::<Vec<_>>()
        .leak();
    for exchanged in pairs {
        start_pair(exchanged);
    }
    let files = (stall.offender == Offender::File).then(|| Arc::new(Files::new()));
    let offend = || {
        for _ in 0..stall.offenders {
            match &files {
                Some(files) => files.start_reader(),
                None => drop(tokio::spawn(offend(stall))),
            }
        }
    };
    let tick = || tick(stall.length(), pairs, files.clone());
    let (ticker, begin) = if stall.is_burst {
        let ticker = tokio::spawn(tick());
        sleep(CALM).await;
        stall.end_in_time();
        (ticker, Instant::now())
    } else {
        let begin = Instant::now();
        offend();
        (tokio::spawn(tick()), begin)
    };
    if stall.is_burst {
        offend();
    }
    let (ticks, exchanged, running) = ticker.await.expect("the ticker does not panic");
    let mut metrics = ticks.metrics(begin, stall.is_burst);
    if exchanged > 0 {
        metrics.push(("ns_per_hop", per(running, exchanged as f64)));
    }
    print_metrics(&metrics);
}

/// Ticks for `length`. With `files` each tick also reads one and looks up a name; a tick that this holds up ends with
/// the run.
async fn tick(
    length: Duration,
    pairs: &'static [Exchanged],
    files: Option<Arc<Files>>,
) -> (TickLog, u64, Duration) {
    let total = || {
        pairs
            .iter()
            .map(|pair| pair.0.load(Ordering::Relaxed))
            .sum::<u64>()
    };
    let (clock, before) = (Instant::now(), total());
    let mut ticks = TickLog::default();
    while clock.elapsed() < length {
        let due = Instant::now() + TICK;
        sleep(TICK).await;
        if let Some(files) = &files {
            let left = length.saturating_sub(clock.elapsed());
            if let Ok(Err(error)) = timeout(left, files.read()).await {
                fail(&format!("A tick failed: {error}."));
            }
        }
        ticks.add(due);
    }
    (ticks, total() - before, clock.elapsed())
}

fn start_pair(exchanged: &'static Exchanged) {
    let (ping, mut ping_mailbox) = unbounded_channel::<u64>();
    let (pong, mut pong_mailbox) = unbounded_channel::<u64>();
    let start = ping.clone();
    tokio::spawn(async move {
        while let Some(number) = pong_mailbox.recv().await {
            ping.send(number).expect("ping lives as long as pong");
        }
    });
    tokio::spawn(async move {
        while let Some(number) = ping_mailbox.recv().await {
            exchanged.0.store(number, Ordering::Relaxed);
            pong.send(number + 2).expect("pong lives as long as ping");
        }
    });
    start.send(0).expect("ping waits for the start");
}

async fn offend(stall: Stall) {
    if stall.is_burst {
        return stall.offender.burst();
    }
    if stall.offender == Offender::Sends {
        return send_again().await;
    }
    loop {
        match stall.offender {
            Offender::None => return,
            Offender::JustBelow => {
                Offender::JustBelow.offend();
                yield_now().await;
            }
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
            other => {
                sleep(REST).await;
                other.offend();
            }
        }
    }
}

/// A message of a sender.
enum SentMessage {
    Value(u32),
    /// The last one of a share: the receiver drops the sender's end.
    LastOfShare(oneshot::Sender<()>),
}

/// Rests, sends to each receiver in turn without a wait, and waits until they have received everything, for ever.
async fn send_again() {
    let (senders, mailboxes): (Vec<_>, Vec<_>) =
        (0..RECEIVERS).map(|_| unbounded_channel()).unzip();
    for mut mailbox in mailboxes {
        tokio::spawn(async move {
            while let Some(message) = mailbox.recv().await {
                match message {
                    SentMessage::Value(value) => {
                        std::hint::black_box(value);
                    }
                    SentMessage::LastOfShare(at_end) => drop(at_end),
                }
            }
        });
    }
    let send = |sender: &UnboundedSender<SentMessage>, message| {
        assert!(sender.send(message).is_ok(), "the receiver goes on");
    };
    loop {
        sleep(REST).await;
        for value in 0..SHARE {
            for sender in &senders {
                send(sender, SentMessage::Value(value));
            }
        }
        let mut ends = Vec::with_capacity(RECEIVERS);
        for sender in &senders {
            let (at_end, ended) = oneshot::channel::<()>();
            send(sender, SentMessage::LastOfShare(at_end));
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
    if rest
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
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

pub(crate) async fn handoff(rounds: u64) {
    let (woken, mut woken_mailbox) = unbounded_channel::<Instant>();
    let (waker, mut waker_mailbox) = unbounded_channel::<Duration>();
    tokio::spawn(async move {
        while let Some(sent) = woken_mailbox.recv().await {
            waker
                .send(sent.elapsed())
                .expect("the waking process waits for this");
        }
    });
    let measured = tokio::spawn(async move {
        let mut lateness = Lateness::default();
        for _ in 0..rounds {
            // Waits for a timer first, so that the waking process starts each round from the
            // runtime.
            sleep(TICK).await;
            wake_and_compute(&woken);
            lateness.add(
                waker_mailbox
                    .recv()
                    .await
                    .expect("the woken process answers"),
            );
        }
        lateness
    });
    let mut lateness = measured.await.expect("the waking process does not panic");
    print_metrics(&[
        ("lateness_worst_ms", lateness.milliseconds(1.0)),
        ("lateness_p50_ms", lateness.milliseconds(0.5)),
    ]);
}

fn wake_and_compute(woken: &UnboundedSender<Instant>) {
    woken
        .send(Instant::now())
        .expect("the woken process waits for this");
    compute_for(HANDOFF_WORK);
}
