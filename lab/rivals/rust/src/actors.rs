//! What the workloads of actors are written against, and those that both libraries run: `lifecycle`, `call` and
//! `call-behind-queue`. Both are on tokio's multi_thread runtime.
//!
//! Invariant: no process is supervised or named, and tracing is off, so that nothing is paid for that is not used.

mod on_kameo;
mod on_ractor;
mod traffic;

use std::time::{Duration, Instant};

use common::{Call, per, print_metrics, rss_bytes};

use crate::groups::PATIENCE;
use crate::system::{Counter, Gate, SETTLE, System};
use crate::systems::Tokio;

pub(crate) use on_kameo::Kameo;
pub(crate) use on_ractor::Ractor;
pub(crate) use traffic::run as traffic;

/// A library of actors.
pub(crate) trait Actors: Sized + 'static {
    type Address<B: Behaviour<Self>>: Clone + Send + Sync + 'static;
    /// A process that returns what it is asked.
    type Server: Send + Sync + 'static;

    fn start<B: Behaviour<Self>>(behaviour: B) -> impl Future<Output = Self::Address<B>> + Send;
    fn send<B: Behaviour<Self>>(
        to: &Self::Address<B>,
        message: B::Message,
    ) -> impl Future<Output = ()> + Send;
    /// Makes `to` learn of the end of `other`.
    fn link<B: Behaviour<Self>, C: Behaviour<Self>>(
        other: &Self::Address<B>,
        to: &Self::Address<C>,
    ) -> impl Future<Output = ()> + Send;
    fn start_server() -> impl Future<Output = Self::Server> + Send;
    fn ask(
        server: &Self::Server,
        value: u64,
        timeout: Option<Duration>,
    ) -> impl Future<Output = u64> + Send;
}

/// What an actor does.
pub(crate) trait Behaviour<A: Actors>: Sized + Send + Sync + 'static {
    type Message: Send + 'static;

    fn started(&mut self) {}
    /// Returns whether the actor goes on. One that awaits nothing returns a value that is ready, because an async block
    /// would move the message once more.
    fn handle(
        &mut self,
        me: &A::Address<Self>,
        message: Self::Message,
    ) -> impl Future<Output = bool> + Send;
    /// One that this one is linked to has ended.
    fn link_ended(&mut self) {}
    fn stopped(&mut self) {}
}

/// Runs the workload if it is one of these.
pub(crate) async fn run<A: Actors>(call: &Call) {
    match call.workload.as_str() {
        "lifecycle" => lifecycle::<A>(call.count("n")).await,
        "call" => {
            // Actors are servers.
            call.word("callee", &[("server", ())]);
            let timeout = call.is_yes("timeout").then_some(PATIENCE);
            calls::<A>(0, call.number("rounds", 1), (timeout, "ns_per_round_trip")).await;
        }
        "call-behind-queue" => {
            let waiting = call.number("waiting", 0);
            calls::<A>(waiting, call.number("rounds", 1), (None, "ns")).await;
        }
        _ => {}
    }
}

/// The message that ends a process.
struct Die;

/// A process that waits for its end.
struct Waiter;

impl<A: Actors> Behaviour<A> for Waiter {
    type Message = Die;

    async fn handle(&mut self, _: &A::Address<Self>, _: Die) -> bool {
        false
    }
}

/// A process that counts the ends of those that it has linked.
struct Watcher {
    linked: &'static Counter<Tokio>,
    ended: &'static Counter<Tokio>,
}

impl<A: Actors> Behaviour<A> for Watcher {
    /// The order to link these processes and to end them.
    type Message = Vec<A::Address<Waiter>>;

    async fn handle(&mut self, me: &A::Address<Self>, others: Self::Message) -> bool {
        for other in &others {
            A::link(other, me).await;
        }
        self.linked.count();
        for other in &others {
            A::send(other, Die).await;
        }
        true
    }

    fn link_ended(&mut self) {
        self.ended.count();
    }
}

async fn lifecycle<A: Actors>(n: usize) {
    let (mut linked, mut ended) = (Gate::<Tokio>::new(1), Gate::<Tokio>::new(n));
    let watcher = Watcher {
        linked: linked.counter,
        ended: ended.counter,
    };
    let watcher = A::start(watcher).await;
    let mut others = Vec::with_capacity(n);
    for _ in 0..n {
        others.push(A::start(Waiter).await);
    }
    Tokio::pause(SETTLE).await;
    let before = rss_bytes();
    let clock = Instant::now();
    A::send(&watcher, others).await;
    linked.wait().await;
    let grown = rss_bytes().saturating_sub(before);
    ended.wait().await;
    print_metrics(&[
        ("ns", per(clock.elapsed(), n as f64)),
        ("bytes_per_link", grown as f64 / n as f64),
    ]);
}

/// The caller's limit, and the name of what it prints.
type Limited = (Option<Duration>, &'static str);

struct Caller<A: Actors> {
    server: A::Server,
    rounds: u64,
    limited: Limited,
}

/// A message to a caller.
enum ToCaller {
    /// The order to make the calls.
    Call,
    /// One that comes behind it.
    Waits,
}

impl<A: Actors> Behaviour<A> for Caller<A> {
    type Message = ToCaller;

    async fn handle(&mut self, _: &A::Address<Self>, message: ToCaller) -> bool {
        if let ToCaller::Call = message {
            // Until the messages that are to wait have come.
            Tokio::pause(SETTLE * 20).await;
            let (timeout, metric) = self.limited;
            assert_eq!(A::ask(&self.server, 0, timeout).await, 0);
            let clock = Instant::now();
            for value in 0..self.rounds {
                assert_eq!(A::ask(&self.server, value, timeout).await, value);
            }
            print_metrics(&[(metric, per(clock.elapsed(), self.rounds as f64))]);
        }
        true
    }
}

async fn calls<A: Actors>(waiting: u64, rounds: u64, limited: Limited) {
    let server = A::start_server().await;
    let caller = Caller::<A> {
        server,
        rounds,
        limited,
    };
    let caller = A::start(caller).await;
    A::send(&caller, ToCaller::Call).await;
    for _ in 0..waiting {
        A::send(&caller, ToCaller::Waits).await;
    }
    // The caller prints and ends the program.
    std::future::pending::<()>().await;
}
