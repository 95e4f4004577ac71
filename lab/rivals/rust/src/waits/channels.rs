//! The channels of all libraries, and how each selects.

use std::hint::black_box;
use std::sync::mpsc as of_std;

use common::{Call, Kind, bad_usage};
use flume::{RecvError, Selector};
use smol::future::or;
use tokio::sync::mpsc as of_tokio;

use super::{Channel, Ends, channel, footprint, select};
use crate::system::{Arrival, System};

const ALL_SENT: &str = "the receiver waits for all messages";
const KEPT: &str = "a sender is kept until the end";

/// Both ends of a channel of some library, and how each is used.
macro_rules! channel {
    ($name:ident, $put:ty, $take:ty, |$sender:ident, $value:ident| $send:expr, |$receiver:ident| $receive:expr) => {
        pub(crate) enum $name {}

        impl Channel for $name {
            type Put = $put;
            type Take = $take;

            async fn send_all($sender: $put, messages: usize) {
                for $value in 0..messages as u64 {
                    $send.expect(ALL_SENT);
                }
            }

            async fn receive_all(mut receiver: $take, messages: usize) {
                let $receiver = &mut receiver;
                for _ in 0..messages {
                    black_box($receive.expect(KEPT));
                }
            }
        }
    };
}

channel!(
    TokioBounded,
    of_tokio::Sender<u64>,
    of_tokio::Receiver<u64>,
    |s, v| s.send(v).await,
    |r| r.recv().await
);
channel!(
    TokioUnbounded,
    of_tokio::UnboundedSender<u64>,
    of_tokio::UnboundedReceiver<u64>,
    |s, v| s.send(v),
    |r| r.recv().await
);
channel!(
    AsyncChannel,
    async_channel::Sender<u64>,
    async_channel::Receiver<u64>,
    |s, v| s.send(v).await,
    |r| r.recv().await
);
channel!(
    FlumeAsync,
    flume::Sender<u64>,
    flume::Receiver<u64>,
    |s, v| s.send_async(v).await,
    |r| r.recv_async().await
);
channel!(
    Flume,
    flume::Sender<u64>,
    flume::Receiver<u64>,
    |s, v| s.send(v),
    |r| r.recv()
);
channel!(
    Crossbeam,
    crossbeam_channel::Sender<u64>,
    crossbeam_channel::Receiver<u64>,
    |s, v| s.send(v),
    |r| r.recv()
);
channel!(
    OfStd,
    StdSender,
    of_std::Receiver<u64>,
    |s, v| s.send(v),
    |r| r.recv()
);
channel!(
    OfMay,
    may::sync::mpsc::Sender<u64>,
    may::sync::mpsc::Receiver<u64>,
    |s, v| s.send(v),
    |r| r.recv()
);

/// A channel of which a message can be waited for beside others.
trait Selected: Channel {
    fn next(receiver: &mut Self::Take) -> impl Future<Output = impl Arrival<u64>> + Send;
}

macro_rules! selected {
    ($name:ident, |$receiver:ident| $receive:expr) => {
        impl Selected for $name {
            fn next($receiver: &mut Self::Take) -> impl Future<Output = impl Arrival<u64>> + Send {
                $receive
            }
        }
    };
}

selected!(TokioBounded, |r| r.recv());
selected!(TokioUnbounded, |r| r.recv());
selected!(AsyncChannel, |r| r.recv());
selected!(FlumeAsync, |r| r.recv_async());

/// The senders of std, one type because the compiler inlines what is called in one place.
#[derive(Clone)]
pub(crate) enum StdSender {
    Bounded(of_std::SyncSender<u64>),
    Unbounded(of_std::Sender<u64>),
}

impl StdSender {
    fn send(&self, value: u64) -> Result<(), of_std::SendError<u64>> {
        match self {
            Self::Bounded(sender) => sender.send(value),
            Self::Unbounded(sender) => sender.send(value),
        }
    }
}

/// `channel`, `select` and `footprint` of one channel; `from_any` selects.
async fn run<S: System, C: Channel, F>(
    call: &Call,
    make: impl Fn() -> Ends<C>,
    from_any: impl FnOnce(Vec<C::Take>, usize) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    match call.workload.as_str() {
        "channel" => channel::<S, C>(call, make()).await,
        "select" => select::<S, C, F>(call, make, from_any).await,
        "footprint" => footprint(call, make),
        _ => {}
    }
}

/// The kind that the call asks for, if it is about channels.
fn kind(call: &Call) -> Option<Kind> {
    match call.workload.as_str() {
        "channel" | "select" => Some(call.kind()),
        "footprint" => Some(call.word(
            "what",
            &[
                ("bounded", Kind::Bounded(1)),
                ("unbounded", Kind::Unbounded),
                ("rendezvous", Kind::Rendezvous),
            ],
        )),
        _ => None,
    }
}

/// The channels of tokio, if the workload is about them; it selects with its macro.
pub(crate) async fn tokio_channels<S: System>(call: &Call) {
    match kind(call) {
        Some(Kind::Bounded(room)) => {
            let make = || of_tokio::channel(room);
            run::<S, TokioBounded, _>(call, make, from_any_of_tokio::<TokioBounded>).await;
        }
        Some(Kind::Unbounded) => {
            let make = of_tokio::unbounded_channel;
            run::<S, TokioUnbounded, _>(call, make, from_any_of_tokio::<TokioUnbounded>).await;
        }
        Some(Kind::Rendezvous) => {
            bad_usage("Tokio has no channel without room: give another kind.")
        }
        None => {}
    }
}

/// Those of async-channel, which select with `or`.
pub(crate) async fn async_channels<S: System>(call: &Call) {
    let make = |kind| match kind {
        Kind::Bounded(room) => async_channel::bounded(room),
        Kind::Unbounded => async_channel::unbounded(),
        Kind::Rendezvous => {
            bad_usage("async-channel has no channel without room: give another kind.")
        }
    };
    if let Some(kind) = kind(call) {
        run::<S, AsyncChannel, _>(call, || make(kind), from_any_with_or::<AsyncChannel>).await;
    }
}

/// The futures of flume.
pub(crate) async fn flume_futures<S: System>(call: &Call) {
    if let Some(kind) = kind(call) {
        run::<S, FlumeAsync, _>(call, || of_flume(kind), from_any_with_or::<FlumeAsync>).await;
    }
}

/// The blocking calls of flume.
pub(crate) async fn flume_calls<S: System>(call: &Call) {
    if let Some(kind) = kind(call) {
        run::<S, Flume, _>(call, || of_flume(kind), from_any_of_flume).await;
    }
}

pub(crate) async fn crossbeam_channels<S: System>(call: &Call) {
    let make = |kind: Kind| {
        let room = kind.room();
        room.map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded)
    };
    if let Some(kind) = kind(call) {
        run::<S, Crossbeam, _>(call, || make(kind), from_any_of_crossbeam).await;
    }
}

/// Those of std, which cannot select.
pub(crate) async fn std_channels<S: System>(call: &Call) {
    let make = |kind: Kind| match kind.room() {
        Some(room) => {
            let (sender, receiver) = of_std::sync_channel(room);
            (StdSender::Bounded(sender), receiver)
        }
        None => {
            let (sender, receiver) = of_std::channel();
            (StdSender::Unbounded(sender), receiver)
        }
    };
    if let Some(kind) = kind(call) {
        run::<S, OfStd, _>(call, || make(kind), no_selection).await;
    }
}

/// Those of may, whose `select!` starts a coroutine for each branch of each selection.
pub(crate) async fn may_channels<S: System>(call: &Call) {
    match kind(call) {
        Some(Kind::Unbounded) => {
            run::<S, OfMay, _>(call, may::sync::mpsc::channel, no_selection).await;
        }
        Some(_) => bad_usage("The channels of may are unbounded: give kind=unbounded."),
        None => {}
    }
}

fn of_flume(kind: Kind) -> Ends<Flume> {
    kind.room().map_or_else(flume::unbounded, flume::bounded)
}

async fn no_selection<T>(_: Vec<T>, _: usize) {
    bad_usage("This library does not select, or not without a new unit for each branch.")
}

/// Two or eight receivers, as an array.
fn all<T, const N: usize>(receivers: Vec<T>) -> [T; N] {
    let all = receivers.try_into();
    all.unwrap_or_else(|_| unreachable!("there are two or eight channels"))
}

/// Creates the futures of the receivers anew for each message.
async fn from_any_of_tokio<C: Selected>(receivers: Vec<C::Take>, total: usize) {
    if receivers.len() == 2 {
        let [mut a, mut b] = all(receivers);
        for _ in 0..total {
            let value = tokio::select! {
                value = C::next(&mut a) => value,
                value = C::next(&mut b) => value,
            };
            black_box(value.message().expect(KEPT));
        }
        return;
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = all(receivers);
    for _ in 0..total {
        let value = tokio::select! {
            value = C::next(&mut a) => value,
            value = C::next(&mut b) => value,
            value = C::next(&mut c) => value,
            value = C::next(&mut d) => value,
            value = C::next(&mut e) => value,
            value = C::next(&mut f) => value,
            value = C::next(&mut g) => value,
            value = C::next(&mut h) => value,
        };
        black_box(value.message().expect(KEPT));
    }
}

/// `or` of futures-lite, nested where there are more than two channels, prefers the first one.
async fn from_any_with_or<C: Selected>(receivers: Vec<C::Take>, total: usize) {
    if receivers.len() == 2 {
        let [mut a, mut b] = all(receivers);
        for _ in 0..total {
            let value = or(C::next(&mut a), C::next(&mut b)).await;
            black_box(value.message().expect(KEPT));
        }
        return;
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = all(receivers);
    for _ in 0..total {
        let first = or(C::next(&mut a), C::next(&mut b));
        let second = or(C::next(&mut c), C::next(&mut d));
        let third = or(C::next(&mut e), C::next(&mut f));
        let fourth = or(C::next(&mut g), C::next(&mut h));
        let value = or(or(first, second), or(third, fourth)).await;
        black_box(value.message().expect(KEPT));
    }
}

async fn from_any_of_crossbeam(receivers: Vec<crossbeam_channel::Receiver<u64>>, total: usize) {
    use crossbeam_channel::select;
    if let [a, b] = &receivers[..] {
        for _ in 0..total {
            let value = select! { recv(a) -> value => value, recv(b) -> value => value };
            black_box(value.expect(KEPT));
        }
        return;
    }
    let [a, b, c, d, e, f, g, h] = all(receivers);
    for _ in 0..total {
        let value = select! {
            recv(a) -> value => value,
            recv(b) -> value => value,
            recv(c) -> value => value,
            recv(d) -> value => value,
            recv(e) -> value => value,
            recv(f) -> value => value,
            recv(g) -> value => value,
            recv(h) -> value => value,
        };
        black_box(value.expect(KEPT));
    }
}

/// flume's `Selector` is built anew for each message.
async fn from_any_of_flume(receivers: Vec<flume::Receiver<u64>>, total: usize) {
    for _ in 0..total {
        let all = Selector::new();
        let value: Result<u64, RecvError> = receivers
            .iter()
            .fold(all, |all, receiver| all.recv(receiver, |value| value))
            .wait();
        black_box(value.expect(KEPT));
    }
}
