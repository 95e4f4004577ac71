//! `many-to-many`, `fan-in` and `ping-pong`: processes that are parked before the clock starts
//! exchange small integers.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::{Xorshift, expected_counts, per, print_metrics, total_messages};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::gate::Gate;
use crate::start;

/// Long enough for processes that have been started to reach their receive.
const SETTLE: Duration = Duration::from_millis(50);

/// A message to a process.
enum Message {
    /// Send your share.
    Start,
    /// One small integer.
    Number(u64),
}

/// A process that sends its share to the targets that its picker chooses, and counts what it
/// receives.
struct Node<F> {
    messages: usize,
    expected: usize,
    targets: &'static OnceLock<Vec<ActorRef<Message>>>,
    picker: F,
    done: &'static Gate,
}

/// How a process spreads its share over the targets.
trait Picker: Send + Sync + 'static {
    fn send_all(&self, messages: usize, targets: &[ActorRef<Message>]);
}

/// Picks pseudo-random targets; the field is the index of the process.
struct Scatter(usize);

impl Picker for Scatter {
    fn send_all(&self, messages: usize, targets: &[ActorRef<Message>]) {
        let mut random = Xorshift::of_process(self.0);
        for number in 0..messages as u64 {
            let target = &targets[random.next_below(targets.len())];
            target
                .cast(Message::Number(number))
                .expect("every process lives until all are done");
        }
    }
}

/// Sends everything to the only target.
struct Gather;

impl Picker for Gather {
    fn send_all(&self, messages: usize, targets: &[ActorRef<Message>]) {
        for number in 0..messages as u64 {
            targets[0]
                .cast(Message::Number(number))
                .expect("the receiver waits for all");
        }
    }
}

impl<F: Picker> Actor for Node<F> {
    type Msg = Message;
    type State = usize;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<usize, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        received: &mut usize,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Start => {
                let targets = self
                    .targets
                    .get()
                    .expect("the start comes after the addresses");
                self.picker.send_all(self.messages, targets);
                if self.expected == 0 {
                    self.done.count();
                }
            }
            Message::Number(number) => {
                black_box(number);
                *received += 1;
                if *received == self.expected {
                    self.done.count();
                }
            }
        }
        Ok(())
    }
}

pub(crate) async fn many_to_many(processes: usize, messages: usize) {
    let done = Gate::leak(processes);
    let targets: &'static OnceLock<_> = Box::leak(Box::default());
    let mut handles = Vec::with_capacity(processes);
    for (index, expected) in expected_counts(processes, messages).into_iter().enumerate() {
        let picker = Scatter(index);
        handles.push(
            start(
                Node {
                    messages,
                    expected,
                    targets,
                    picker,
                    done,
                },
                (),
            )
            .await,
        );
    }
    assert!(
        targets.set(handles.clone()).is_ok(),
        "the addresses are set once"
    );
    let clock = start_all(&handles).await;
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(processes, messages)),
    )]);
}

pub(crate) async fn fan_in(senders: usize, messages: usize) {
    // Only the receiver counts itself: the gate of the senders, which receive nothing, opens
    // unseen.
    let (done, unseen) = (Gate::leak(1), Gate::leak(senders));
    let targets: &'static OnceLock<_> = Box::leak(Box::default());
    let expected = senders * messages;
    let receiver = Node {
        messages: 0,
        expected,
        targets,
        picker: Gather,
        done,
    };
    let receiver = start(receiver, ()).await;
    assert!(
        targets.set(vec![receiver]).is_ok(),
        "the address is set once"
    );
    let mut handles = Vec::with_capacity(senders);
    for _ in 0..senders {
        let sender = Node {
            messages,
            expected: 0,
            targets,
            picker: Gather,
            done: unseen,
        };
        handles.push(start(sender, ()).await);
    }
    let clock = start_all(&handles).await;
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(senders, messages)),
    )]);
}

/// Starts the clock and then every process, after all have parked.
async fn start_all(handles: &[ActorRef<Message>]) -> Instant {
    tokio::time::sleep(SETTLE).await;
    let clock = Instant::now();
    for handle in handles {
        handle
            .cast(Message::Start)
            .expect("the process waits for its start");
    }
    clock
}

/// One of the two processes of `ping-pong`.
struct Player {
    done: &'static Gate,
    serves: bool,
}

/// A message to a player.
enum Ball {
    /// The address of the other player.
    Peer(ActorRef<Ball>),
    /// How many round trips are left.
    Left(u64),
}

impl Actor for Player {
    type Msg = Ball;
    type State = Option<ActorRef<Ball>>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<Ball>,
        (): (),
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(None)
    }

    async fn handle(
        &self,
        _: ActorRef<Ball>,
        ball: Ball,
        peer: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match (ball, peer.as_ref()) {
            (Ball::Peer(address), _) => *peer = Some(address),
            (Ball::Left(0), _) if self.serves => self.done.count(),
            (Ball::Left(left), Some(peer)) => {
                peer.cast(Ball::Left(left - u64::from(self.serves)))?
            }
            (Ball::Left(_), None) => unreachable!("the address comes before the ball"),
        }
        Ok(())
    }
}

pub(crate) async fn ping_pong(rounds: u64) {
    let done = Gate::leak(1);
    let ping = start(Player { done, serves: true }, ()).await;
    let pong = start(
        Player {
            done,
            serves: false,
        },
        (),
    )
    .await;
    ping.cast(Ball::Peer(pong.clone()))
        .expect("ping waits for an address");
    pong.cast(Ball::Peer(ping.clone()))
        .expect("pong waits for an address");
    tokio::time::sleep(SETTLE).await;
    let clock = Instant::now();
    ping.cast(Ball::Left(rounds))
        .expect("ping waits for the start");
    done.wait().await;
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}
