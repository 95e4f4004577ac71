//! `ring`: tokens go round a ring of processes, each of which knows only its neighbour.

use std::time::Instant;

use common::{per, print_metrics};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::gate::Gate;
use crate::start;

/// A message to a process of the ring.
enum Message {
    /// The address of the neighbour, for the last process.
    Neighbour(ActorRef<Message>),
    /// A token with the number of hops that it has left.
    Token(u64),
}

/// A process of the ring; its state is the address of its neighbour.
struct Node {
    started: &'static Gate,
    arrived: &'static Gate,
}

impl Actor for Node {
    type Msg = Message;
    type State = Option<ActorRef<Message>>;
    type Arguments = Option<ActorRef<Message>>;

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        neighbour: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        if neighbour.is_some() {
            self.started.count();
        }
        Ok(neighbour)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        neighbour: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Neighbour(first) => {
                *neighbour = Some(first);
                self.started.count();
            }
            Message::Token(0) => self.arrived.count(),
            Message::Token(hops) => {
                let neighbour = neighbour.as_ref().expect("tokens come after the neighbour");
                neighbour.cast(Message::Token(hops - 1))?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn run(n: usize, m: u64, tokens: usize) {
    let (started, arrived) = (Gate::leak(n), Gate::leak(tokens));
    let mut handles = Vec::with_capacity(n);
    let setup = Instant::now();
    // The ring is built backwards: the last process is started first and gets the first one's
    // address at the end.
    handles.push(start(Node { started, arrived }, None).await);
    for index in 1..n {
        let neighbour = Some(handles[index - 1].clone());
        handles.push(start(Node { started, arrived }, neighbour).await);
    }
    let first = handles[n - 1].clone();
    handles[0]
        .cast(Message::Neighbour(first))
        .expect("the last process waits for its neighbour");
    started.wait().await;

    let hops = n as u64 * m;
    let clock = Instant::now();
    for token in 0..tokens {
        let handle = &handles[token * n / tokens];
        handle
            .cast(Message::Token(hops))
            .expect("the process waits for tokens");
    }
    arrived.wait().await;
    let running = clock.elapsed();
    print_metrics(&[
        ("ns_per_hop", per(running, hops as f64 * tokens as f64)),
        ("ms_with_setup", setup.elapsed().as_secs_f64() * 1e3),
    ]);
}
