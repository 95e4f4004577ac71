//! `spawn`, `ring`, `mailbox`, `many-to-many`, `fan-in`, `ping-pong` and `broadcast`, for ractor.

use std::future::ready;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::programs::xorshift::{Xorshift, shares};
use common::{Call, per, print_metrics, rss_bytes};
use ractor::{ActorCell, ActorRef, pg};

use super::{Actors, Behaviour, Die, Ractor};
use crate::system::{Counter, Gate, SETTLE, System};
use crate::systems::Tokio;
use crate::traffic::Shared;

const ALIVE: &str = "the process is alive";
const GROUP: &str = "members";

type Count = &'static Counter<Tokio>;

/// Runs the workload if it is one of these.
pub(crate) async fn run(call: &Call) {
    match call.workload.as_str() {
        "spawn" => spawn(call.count("n")).await,
        "ring" => ring(call).await,
        "mailbox" => {
            let (k, bytes) = (call.count("k"), call.count("bytes"));
            if call.word("payload", &[("shared", true), ("fresh", false)]) {
                mailbox(k, bytes, Shared).await;
            } else {
                mailbox(k, bytes, Box::<str>::from).await;
            }
        }
        "many-to-many" => many_to_many(call).await,
        "fan-in" => fan_in(call).await,
        "ping-pong" => ping_pong(call.number("rounds", 1)).await,
        "broadcast" => broadcast(call.count("members"), call.count("rounds")).await,
        _ => {}
    }
}

/// A process that counts its start and its end.
struct Mortal(Count, Count);

impl Behaviour<Ractor> for Mortal {
    type Message = Die;

    fn started(&mut self) {
        self.0.count();
    }

    fn handle(&mut self, _: &ActorRef<Die>, _: Die) -> impl Future<Output = bool> + Send {
        ready(false)
    }

    fn stopped(&mut self) {
        self.1.count();
    }
}

async fn spawn(n: usize) {
    let (mut started, mut ended) = (Gate::<Tokio>::new(n), Gate::<Tokio>::new(n));
    let mut handles: Vec<Option<ActorRef<Die>>> = vec![None; n];
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for handle in &mut handles {
        *handle = Some(Ractor::start(Mortal(started.counter, ended.counter)).await);
    }
    started.wait().await;
    let spawning = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for handle in handles.iter().flatten() {
        handle.cast(Die).expect(ALIVE);
    }
    ended.wait().await;
    Tokio::gone::<()>(&mut Vec::new()).await;
    let teardown = clock.elapsed();
    print_metrics(&[
        ("ns_per_spawn", per(spawning, n as f64)),
        ("ns_per_teardown", per(teardown, n as f64)),
        ("bytes_per_process", grown as f64 / n as f64),
    ]);
}

/// A message to a process of the ring.
enum ToNode {
    /// The address of the neighbour, for the last process.
    Neighbour(ActorRef<ToNode>),
    /// A token with the number of hops that it has left.
    Token(u64),
}

/// A process of the ring.
struct Node {
    started: Count,
    arrived: Count,
    neighbour: Option<ActorRef<ToNode>>,
}

impl Behaviour<Ractor> for Node {
    type Message = ToNode;

    fn started(&mut self) {
        if self.neighbour.is_some() {
            self.started.count();
        }
    }

    fn handle(
        &mut self,
        _: &ActorRef<ToNode>,
        message: ToNode,
    ) -> impl Future<Output = bool> + Send {
        match (message, &self.neighbour) {
            (ToNode::Neighbour(first), _) => {
                self.neighbour = Some(first);
                self.started.count();
            }
            (ToNode::Token(0), _) => self.arrived.count(),
            (ToNode::Token(hops), Some(neighbour)) => {
                neighbour.cast(ToNode::Token(hops - 1)).expect(ALIVE);
            }
            (ToNode::Token(_), None) => unreachable!("tokens come after the neighbour"),
        }
        ready(true)
    }
}

async fn ring(call: &Call) {
    let (n, tokens, rounds) = (call.count("n"), call.count("tokens"), call.number("m", 1));
    let (mut started, mut arrived) = (Gate::<Tokio>::new(n), Gate::<Tokio>::new(tokens));
    let mut handles: Vec<ActorRef<ToNode>> = Vec::with_capacity(n);
    let setup = Instant::now();
    // The ring is built backwards: the last process is started first and gets the first one's address at the end.
    for _ in 0..n {
        let node = Node {
            started: started.counter,
            arrived: arrived.counter,
            neighbour: handles.last().cloned(),
        };
        handles.push(Ractor::start(node).await);
    }
    let first = handles[n - 1].clone();
    handles[0].cast(ToNode::Neighbour(first)).expect(ALIVE);
    started.wait().await;

    let hops = n as u64 * rounds;
    let clock = Instant::now();
    for token in 0..tokens {
        let handle = &handles[token * n / tokens];
        handle.cast(ToNode::Token(hops)).expect(ALIVE);
    }
    arrived.wait().await;
    let running = clock.elapsed();
    print_metrics(&[
        ("ns_per_hop", per(running, hops as f64 * tokens as f64)),
        ("ms_with_setup", setup.elapsed().as_secs_f64() * 1e3),
    ]);
}

/// A message to the process that sends to itself; `T` says whether the text is shared or owned.
enum ToSelf<T> {
    Begin,
    Item {
        text: T,
        number: u64,
        length: u64,
        share: f64,
    },
}

struct Sender<T> {
    k: usize,
    text: &'static str,
    make: fn(&'static str) -> T,
    received: usize,
    clock: Instant,
    sending: Duration,
    grown: u64,
}

impl<T: AsRef<str> + Send + 'static> Behaviour<Ractor> for Sender<T> {
    type Message = ToSelf<T>;

    fn handle(
        &mut self,
        me: &ActorRef<ToSelf<T>>,
        message: ToSelf<T>,
    ) -> impl Future<Output = bool> + Send {
        match message {
            ToSelf::Begin => self.send_all(me),
            ToSelf::Item {
                text,
                number,
                length,
                share,
            } => {
                black_box((text.as_ref(), number, length, share));
                drop(text);
                self.received += 1;
                if self.received == self.k {
                    self.print();
                }
            }
        }
        ready(true)
    }
}

impl<T: AsRef<str> + Send + 'static> Sender<T> {
    fn send_all(&mut self, me: &ActorRef<ToSelf<T>>) {
        let rss_before = rss_bytes();
        let clock = Instant::now();
        for number in 0..self.k as u64 {
            let item = ToSelf::Item {
                text: (self.make)(self.text),
                number,
                length: number + 1,
                share: number as f64 * 0.5,
            };
            assert!(me.cast(item).is_ok(), "the process is alive");
        }
        self.sending = clock.elapsed();
        self.grown = rss_bytes().saturating_sub(rss_before);
        self.clock = Instant::now();
    }

    fn print(&self) -> ! {
        let k = self.k as f64;
        print_metrics(&[
            ("ns_per_send", per(self.sending, k)),
            ("ns_per_receive", per(self.clock.elapsed(), k)),
            ("bytes_per_message", self.grown as f64 / k),
        ])
    }
}

async fn mailbox<T>(k: usize, bytes: usize, make: fn(&'static str) -> T)
where
    T: AsRef<str> + Send + 'static,
{
    let sender = Sender {
        k,
        text: "x".repeat(bytes).leak(),
        make,
        received: 0,
        clock: Instant::now(),
        sending: Duration::ZERO,
        grown: 0,
    };
    let process = Ractor::start(sender).await;
    assert!(
        process.cast(ToSelf::Begin).is_ok(),
        "it waits for its start"
    );
    std::future::pending::<()>().await;
}

/// A message to a process that sends its share to others.
enum ToPeer {
    /// Send your share.
    Start,
    /// One small integer.
    Number(u64),
}

/// The addresses of those that receive, once all are started.
type Targets = &'static OnceLock<Vec<ActorRef<ToPeer>>>;

/// A process that sends its share to the targets, and counts what it receives.
struct Peer<F> {
    expected: usize,
    received: usize,
    targets: Targets,
    send_share: F,
    done: Count,
}

impl<F: Fn(&[ActorRef<ToPeer>]) + Send + Sync + 'static> Behaviour<Ractor> for Peer<F> {
    type Message = ToPeer;

    fn handle(
        &mut self,
        _: &ActorRef<ToPeer>,
        message: ToPeer,
    ) -> impl Future<Output = bool> + Send {
        match message {
            ToPeer::Start => {
                let targets = self.targets.get();
                (self.send_share)(targets.expect("the start comes after the addresses"));
                if self.expected == 0 {
                    self.done.count();
                }
            }
            ToPeer::Number(number) => {
                black_box(number);
                self.received += 1;
                if self.received == self.expected {
                    self.done.count();
                }
            }
        }
        ready(true)
    }
}

async fn many_to_many(call: &Call) {
    let (processes, messages) = (call.count("processes"), call.count("messages"));
    let mut done = Gate::<Tokio>::new(processes);
    let targets: Targets = Box::leak(Box::default());
    let mut handles = Vec::with_capacity(processes);
    for (index, expected) in shares(processes, messages).into_iter().enumerate() {
        let send_share = move |targets: &[ActorRef<ToPeer>]| {
            let mut random = Xorshift::of(index);
            for number in 0..messages as u64 {
                let target = &targets[random.below(targets.len())];
                target.cast(ToPeer::Number(number)).expect(ALIVE);
            }
        };
        let peer = Peer {
            expected,
            received: 0,
            targets,
            send_share,
            done: done.counter,
        };
        handles.push(Ractor::start(peer).await);
    }
    assert!(targets.set(handles.clone()).is_ok(), "it is set once");
    let clock = start_all(&handles).await;
    done.wait().await;
    let total = (processes * messages) as f64;
    print_metrics(&[("ns_per_message", per(clock.elapsed(), total))]);
}

async fn fan_in(call: &Call) {
    let (senders, messages) = (call.count("senders"), call.count("messages"));
    // Only the receiver counts itself: the gate of the senders, which receive nothing, opens unseen.
    let (mut done, unseen) = (Gate::<Tokio>::new(1), Gate::<Tokio>::new(senders));
    let targets: Targets = Box::leak(Box::default());
    let receiver = Peer {
        expected: senders * messages,
        received: 0,
        targets,
        send_share: |_: &[ActorRef<ToPeer>]| {},
        done: done.counter,
    };
    let receiver = Ractor::start(receiver).await;
    assert!(targets.set(vec![receiver]).is_ok(), "it is set once");
    let mut handles = Vec::with_capacity(senders);
    for _ in 0..senders {
        let sender = Peer {
            expected: 0,
            received: 0,
            targets,
            send_share: move |targets: &[ActorRef<ToPeer>]| {
                for number in 0..messages as u64 {
                    targets[0].cast(ToPeer::Number(number)).expect(ALIVE);
                }
            },
            done: unseen.counter,
        };
        handles.push(Ractor::start(sender).await);
    }
    let clock = start_all(&handles).await;
    done.wait().await;
    let total = (senders * messages) as f64;
    print_metrics(&[("ns_per_message", per(clock.elapsed(), total))]);
}

/// Starts the clock and then every process, after all have parked.
async fn start_all(handles: &[ActorRef<ToPeer>]) -> Instant {
    Tokio::pause(SETTLE).await;
    let clock = Instant::now();
    for handle in handles {
        handle.cast(ToPeer::Start).expect(ALIVE);
    }
    clock
}

/// A message to a player of `ping-pong`.
enum Ball {
    /// The address of the other player.
    Peer(ActorRef<Ball>),
    /// How many round trips are left.
    Left(u64),
}

struct Player {
    done: Count,
    serves: bool,
    peer: Option<ActorRef<Ball>>,
}

impl Behaviour<Ractor> for Player {
    type Message = Ball;

    fn handle(&mut self, _: &ActorRef<Ball>, ball: Ball) -> impl Future<Output = bool> + Send {
        match (ball, &self.peer) {
            (Ball::Peer(address), _) => self.peer = Some(address),
            (Ball::Left(0), _) if self.serves => self.done.count(),
            (Ball::Left(left), Some(peer)) => {
                let left = left - u64::from(self.serves);
                peer.cast(Ball::Left(left)).expect(ALIVE);
            }
            (Ball::Left(_), None) => unreachable!("the address comes before the ball"),
        }
        ready(true)
    }
}

async fn ping_pong(rounds: u64) {
    let mut done = Gate::<Tokio>::new(1);
    let player = |serves| {
        let (done, peer) = (done.counter, None);
        Ractor::start(Player { done, serves, peer })
    };
    let (ping, pong) = (player(true).await, player(false).await);
    ping.cast(Ball::Peer(pong.clone())).expect(ALIVE);
    pong.cast(Ball::Peer(ping.clone())).expect(ALIVE);
    Tokio::pause(SETTLE).await;
    let clock = Instant::now();
    ping.cast(Ball::Left(rounds)).expect(ALIVE);
    done.wait().await;
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}

/// A member of a group, which receives this many messages more.
struct Member(usize, Count);

impl Behaviour<Ractor> for Member {
    type Message = u64;

    fn handle(&mut self, _: &ActorRef<u64>, round: u64) -> impl Future<Output = bool> + Send {
        black_box(round);
        self.0 -= 1;
        if self.0 == 0 {
            self.1.count();
        }
        ready(true)
    }
}

async fn broadcast(members: usize, rounds: usize) {
    let mut done = Gate::<Tokio>::new(members);
    let mut cells: Vec<ActorCell> = Vec::with_capacity(members);
    for _ in 0..members {
        let member = Ractor::start(Member(rounds, done.counter)).await;
        cells.push(member.get_cell());
    }
    pg::join(GROUP.to_owned(), cells);
    Tokio::pause(SETTLE).await;
    let clock = Instant::now();
    for round in 0..rounds as u64 {
        for member in pg::get_members(&GROUP.to_owned()) {
            member.send_message(round).expect("the members receive");
        }
        tokio::task::yield_now().await;
    }
    done.wait().await;
    let total = (members * rounds) as f64;
    print_metrics(&[("ns_per_message", per(clock.elapsed(), total))]);
}
