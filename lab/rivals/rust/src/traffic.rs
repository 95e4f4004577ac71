//! The workloads of processes and messages: `spawn`, `mailbox`, `ring`, `many-to-many`, `fan-in`, `ping-pong` and
//! `burst-send`.

use std::hint::black_box;
use std::time::Instant;

use common::programs::xorshift::{Xorshift, shares};
use common::{Call, per, print_metrics, rss_bytes};

use crate::system::{Arrival, Counter, Gate, Mailbox, Outbox, System, Team};

/// Runs the workload if it is one of these.
pub(crate) async fn run<S: System>(call: &Call) {
    match call.workload.as_str() {
        "spawn" => spawn::<S>(call.count("n")).await,
        "ring" => ring::<S>(call).await,
        "mailbox" => {
            let (k, bytes) = (call.count("k"), call.count("bytes"));
            let text: &'static str = "x".repeat(bytes).leak();
            if call.word("payload", &[("shared", true), ("fresh", false)]) {
                mailbox::<S, _>(k, || Shared(text)).await;
            } else {
                mailbox::<S, _>(k, || Box::<str>::from(text)).await;
            }
        }
        "many-to-many" => many_to_many::<S>(call).await,
        "fan-in" => fan_in::<S>(call).await,
        "ping-pong" => ping_pong::<S>(call.number("rounds", 1)).await,
        _ => {}
    }
}

/// The message that ends a process.
struct Die;

/// How long a process takes to start and to end, and how much memory it holds while it waits.
async fn spawn<S: System>(n: usize) {
    S::allow(n);
    let (mut started, mut ended) = (Gate::<S>::new(n), Gate::<S>::new(n));
    let mut handles: Vec<Option<(S::Outbox<Die>, S::Unit)>> = Vec::new();
    handles.resize_with(n, || None);
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for handle in &mut handles {
        let (sender, mut mailbox) = S::mailbox::<Die>();
        let (started, ended) = (started.counter, ended.counter);
        let unit = S::spawn(async move {
            started.count();
            mailbox.receive().await;
            ended.count();
        });
        *handle = Some((sender, unit));
    }
    started.wait().await;
    let spawning = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for (sender, _) in handles.iter().flatten() {
        assert!(sender.send(Die), "the process waits for this message");
    }
    ended.wait().await;
    S::gone(&mut handles).await;
    let teardown = clock.elapsed();
    print_metrics(&[
        ("ns_per_spawn", per(spawning, n as f64)),
        ("ns_per_teardown", per(teardown, n as f64)),
        ("bytes_per_process", grown as f64 / n as f64),
    ]);
}

/// A text that all messages refer to.
pub(crate) struct Shared(pub(crate) &'static str);

impl AsRef<str> for Shared {
    fn as_ref(&self) -> &str {
        self.0
    }
}

/// One message; `T` says whether the text is shared or owned.
struct Message<T> {
    text: T,
    number: u64,
    length: u64,
    share: f64,
}

/// One process sends itself messages and then receives them all.
async fn mailbox<S: System, T: AsRef<str> + Send + 'static>(k: usize, mut text: impl FnMut() -> T) {
    let (me, mut mailbox) = S::mailbox();
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for number in 0..k as u64 {
        let message = Message {
            text: text(),
            number,
            length: number + 1,
            share: number as f64 * 0.5,
        };
        assert!(me.send(message), "the mailbox is open");
    }
    let sending = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for _ in 0..k {
        let message = mailbox.receive().await.message();
        let message = message.expect("as many messages were sent");
        black_box((
            message.text.as_ref(),
            message.number,
            message.length,
            message.share,
        ));
    }
    let receiving = clock.elapsed();
    print_metrics(&[
        ("ns_per_send", per(sending, k as f64)),
        ("ns_per_receive", per(receiving, k as f64)),
        ("bytes_per_message", grown as f64 / k as f64),
    ]);
}

/// What every process of the ring has.
struct Node<S: System> {
    mailbox: S::Mailbox<u64>,
    started: &'static Counter<S>,
    arrived: &'static Counter<S>,
}

impl<S: System> Node<S> {
    /// Passes tokens on; the number in a token is how many hops it has left.
    async fn pass(mut self, neighbour: S::Outbox<u64>) {
        self.started.count();
        while let Some(hops) = self.mailbox.receive().await.message() {
            if hops == 0 {
                self.arrived.count();
            } else {
                assert!(neighbour.send(hops - 1), "the neighbour lives on");
            }
        }
    }
}

/// Tokens go round a ring of processes, each of which knows only its neighbour.
async fn ring<S: System>(call: &Call) {
    let (n, tokens, rounds) = (call.count("n"), call.count("tokens"), call.number("m", 1));
    if tokens > n {
        common::bad_usage("There are more tokens than processes: give tokens <= n.");
    }
    S::allow(n);
    let (mut started, mut arrived) = (Gate::<S>::new(n), Gate::<S>::new(tokens));
    let counters = (started.counter, arrived.counter);
    let node = || {
        let ((sender, mailbox), (started, arrived)) = (S::mailbox(), counters);
        let node = Node::<S> {
            mailbox,
            started,
            arrived,
        };
        (sender, node)
    };
    let mut handles: Vec<S::Outbox<u64>> = Vec::with_capacity(n);
    let setup = Instant::now();
    // The ring is built backwards: the last process is started first and gets the first one's address at the end.
    let (tell, told) = S::once();
    let (sender, last) = node();
    S::start(async move {
        if let Some(neighbour) = S::told(told).await {
            last.pass(neighbour).await;
        }
    });
    handles.push(sender);
    for index in 1..n {
        let (sender, node) = node();
        S::start(node.pass(handles[index - 1].clone()));
        handles.push(sender);
    }
    let first = handles[n - 1].clone();
    assert!(S::tell(tell, first), "the last process waits");
    started.wait().await;

    let hops = n as u64 * rounds;
    let clock = Instant::now();
    for token in 0..tokens {
        let handle = &handles[token * n / tokens];
        assert!(handle.send(hops), "the process waits for tokens");
    }
    arrived.wait().await;
    let running = clock.elapsed();
    print_metrics(&[
        ("ns_per_hop", per(running, hops as f64 * tokens as f64)),
        ("ms_with_setup", setup.elapsed().as_secs_f64() * 1e3),
    ]);
}

/// Receives this many messages, whose senders live until then.
async fn receive<S: System>(mut mailbox: S::Mailbox<u64>, count: usize) {
    for _ in 0..count {
        let message = mailbox.receive().await.message();
        message.expect("every sender lives until all is received");
    }
}

/// A unit that does this and nothing else.
async fn receive_all<S: System>(
    mut mailbox: S::Mailbox<u64>,
    count: usize,
    [started, done]: [&'static Counter<S>; 2],
) {
    started.count();
    for _ in 0..count {
        let message = mailbox.receive().await.message();
        message.expect("every sender lives until all is received");
    }
    done.count();
}

/// Processes send to pseudo-random others.
async fn many_to_many<S: System>(call: &Call) {
    let (processes, messages) = (call.count("processes"), call.count("messages"));
    let mut team = Team::<S>::of(processes);
    let (senders, mailboxes): (Vec<_>, Vec<_>) = (0..processes).map(|_| S::mailbox()).unzip();
    let everyone: &'static [S::Outbox<u64>] = senders.leak();
    let expected = shares(processes, messages);
    for (index, (mailbox, expected)) in mailboxes.into_iter().zip(expected).enumerate() {
        let ([started, done], go) = (team.counters(), team.told_to_start());
        S::start(async move {
            started.count();
            S::told(go).await.expect("the main unit sends the start");
            let mut random = Xorshift::of(index);
            for number in 0..messages as u64 {
                let target = random.below(everyone.len());
                assert!(everyone[target].send(number), "every mailbox is open");
            }
            receive::<S>(mailbox, expected).await;
            done.count();
        });
    }
    print_per_message(&team.run().await, processes * messages);
}

/// Many senders, one receiver.
async fn fan_in<S: System>(call: &Call) {
    let (senders, messages) = (call.count("senders"), call.count("messages"));
    S::allow(senders + 1);
    let mut team = Team::<S>::that_counts(senders + 1, 1);
    let (sender, mailbox) = S::mailbox();
    S::start(receive_all::<S>(
        mailbox,
        senders * messages,
        team.counters(),
    ));
    for _ in 0..senders {
        let receiver = sender.clone();
        team.add_uncounted(async move {
            for number in 0..messages as u64 {
                assert!(receiver.send(number), "the receiver waits for all");
            }
        });
    }
    print_per_message(&team.run().await, senders * messages);
}

/// One process sends to each of its receivers in turn.
pub(crate) async fn burst_send<S: System>(call: &Call) {
    let receivers = call.count("receivers");
    let each = call.count("messages").div_ceil(receivers);
    let mut team = Team::<S>::that_counts(receivers + 1, receivers);
    let (senders, mailboxes): (Vec<_>, Vec<_>) = (0..receivers).map(|_| S::mailbox()).unzip();
    for mailbox in mailboxes {
        S::start(receive_all::<S>(mailbox, each, team.counters()));
    }
    team.add_uncounted(async move {
        for number in 0..each as u64 {
            for receiver in &senders {
                assert!(receiver.send(number), "the receiver waits for all");
            }
        }
    });
    print_per_message(&team.run().await, receivers * each);
}

fn print_per_message(elapsed: &std::time::Duration, messages: usize) -> ! {
    print_metrics(&[("ns_per_message", per(*elapsed, messages as f64))])
}

/// Two processes send one small integer back and forth.
async fn ping_pong<S: System>(rounds: u64) {
    let team = Team::<S>::that_counts(2, 1);
    let (ping, mut ping_mailbox) = S::mailbox::<u64>();
    let (pong, mut pong_mailbox) = S::mailbox::<u64>();
    let (start, back) = (ping.clone(), ping);
    let [started, done] = team.counters();
    S::start(async move {
        started.count();
        while let Some(left) = pong_mailbox.receive().await.message() {
            if !back.send(left) {
                break;
            }
        }
    });
    S::start(async move {
        started.count();
        while let Some(left) = ping_mailbox.receive().await.message() {
            if left == 0 {
                break;
            }
            assert!(pong.send(left - 1), "pong lives as long as ping");
        }
        done.count();
    });
    let begin = move || assert!(start.send(rounds), "ping waits for the start");
    let elapsed = team.run_from(begin).await;
    print_metrics(&[("ns_per_round_trip", per(elapsed, rounds as f64))]);
}
