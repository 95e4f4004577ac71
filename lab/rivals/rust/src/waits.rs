//! The workloads of what units wait with: `channel`, `select`, `lock`, `condvar`, `barrier` and `footprint`.

mod channels;
mod locks;

use std::hint::black_box;
use std::sync::Arc;

use common::{Call, bad_usage, fail, per, print_metrics, rss_bytes};

use crate::system::{System, Team};

pub(crate) use channels::*;
pub(crate) use locks::*;

/// A kind of channel of some library, between senders and one receiver of integers.
pub(crate) trait Channel: 'static {
    type Put: Clone + Send + 'static;
    type Take: Send + 'static;

    /// The loop is the channel's own: a future round each message would cost as much as some of the channels do.
    fn send_all(sender: Self::Put, messages: usize) -> impl Future<Output = ()> + Send;
    fn receive_all(receiver: Self::Take, messages: usize) -> impl Future<Output = ()> + Send;
}

/// Both ends of a channel.
pub(crate) type Ends<C> = (<C as Channel>::Put, <C as Channel>::Take);

/// A counter behind a mutex.
pub(crate) trait Lock: Default + Send + Sync + 'static {
    /// Locks, gives way if `YIELD`, counts, and unlocks, so many times; returns the last count.
    fn count<const YIELD: bool>(self: Arc<Self>, rounds: usize)
    -> impl Future<Output = u64> + Send;
}

/// Whose turn it is, behind a mutex, and what signals a change.
pub(crate) trait Turns: Default + Send + Sync + 'static {
    /// Waits for the turn of `me` and passes it on, again and again.
    fn take(&self, me: usize, rounds: usize) -> impl Future<Output = ()> + Send;
}

/// Where units meet.
pub(crate) trait Meeting: Send + Sync + 'static {
    fn of(units: usize) -> Self;
    fn wait(&self) -> impl Future<Output = ()> + Send;
}

pub(crate) async fn channel<S: System, C: Channel>(call: &Call, (sender, receiver): Ends<C>) {
    let (senders, messages) = (call.count("senders"), call.count("messages"));
    let mut team = Team::<S>::of(senders + 1);
    team.add(C::receive_all(receiver, senders * messages));
    for _ in 0..senders {
        team.add(C::send_all(sender.clone(), messages));
    }
    let elapsed = team.run().await;
    let total = (senders * messages) as f64;
    print_metrics(&[("ns_per_message", per(elapsed, total))]);
}

/// One unit receives from whichever of two or eight channels has a message; `from_any` is given the receivers and the
/// number of messages.
pub(crate) async fn select<S: System, C: Channel, F>(
    call: &Call,
    make: impl Fn() -> Ends<C>,
    from_any: impl FnOnce(Vec<C::Take>, usize) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (branches, messages) = (call.count("branches"), call.count("messages"));
    if branches != 2 && branches != 8 {
        bad_usage("The key `branches` takes `2` or `8`.");
    }
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..branches).map(|_| make()).unzip();
    let mut team = Team::<S>::of(branches + 1);
    team.add(from_any(receivers, branches * messages));
    for sender in &senders {
        team.add(C::send_all(sender.clone(), messages));
    }
    let elapsed = team.run().await;
    drop(senders);
    let total = (branches * messages) as f64;
    print_metrics(&[("ns_per_message", per(elapsed, total))]);
}

/// Units lock a mutex, count, and unlock it.
pub(crate) async fn lock<S: System, L: Lock>(units: usize, rounds: usize, gives_way: bool) {
    let lock = Arc::new(L::default());
    let mut team = Team::<S>::of(units);
    for _ in 0..units {
        let lock = Arc::clone(&lock);
        if gives_way {
            team.add(lock.count::<true>(rounds));
        } else {
            team.add(lock.count::<false>(rounds));
        }
    }
    let elapsed = team.run().await;
    if lock.count::<false>(1).await != (units * rounds + 1) as u64 {
        fail("The lock let two in at once: the count is wrong.");
    }
    print_metrics(&[("ns", per(elapsed, (units * rounds) as f64))]);
}

/// Two units take turns.
pub(crate) async fn condvar<S: System, T: Turns>(rounds: usize) {
    let turns = Arc::new(T::default());
    let mut team = Team::<S>::of(2);
    for me in 0..2 {
        let turns = Arc::clone(&turns);
        team.add(async move { turns.take(me, rounds).await });
    }
    let elapsed = team.run().await;
    print_metrics(&[("ns", per(elapsed, rounds as f64))]);
}

/// Units meet again and again.
pub(crate) async fn barrier<S: System, M: Meeting>(units: usize, rounds: usize) {
    let meeting = Arc::new(M::of(units));
    let mut team = Team::<S>::of(units);
    for _ in 0..units {
        let meeting = Arc::clone(&meeting);
        team.add(async move {
            for _ in 0..rounds {
                meeting.wait().await;
            }
        });
    }
    let elapsed = team.run().await;
    print_metrics(&[("ns", per(elapsed, rounds as f64))]);
}

/// The workloads of locks, and the conditions and barriers that belong to them.
pub(crate) async fn locks<S: System, L: Lock, T: Turns, M: Meeting>(call: &Call) {
    match call.workload.as_str() {
        "lock" => {
            let gives_way = call.word("inside", &[("nothing", false), ("yield", true)]);
            lock::<S, L>(call.count("units"), call.count("rounds"), gives_way).await;
        }
        "condvar" => condvar::<S, T>(call.count("rounds")).await,
        "barrier" => barrier::<S, M>(call.count("units"), call.count("rounds")).await,
        // What threads wait with is measured with the same code.
        "thread" => match call.text("what") {
            "lock" => lock::<S, L>(1, call.count("n"), false).await,
            "lock-contended" => lock::<S, L>(call.count("threads"), call.count("n"), false).await,
            "condvar" => condvar::<S, T>(call.count("n")).await,
            "barrier" => barrier::<S, M>(call.count("threads"), call.count("n")).await,
            _ => {}
        },
        _ => {}
    }
}

/// Whether the `footprint` of a mutex is asked for, and not that of a channel.
pub(crate) fn is_of_mutex(call: &Call) -> bool {
    call.workload == "footprint" && call.text("what") == "mutex"
}

/// Creates things, prints how much memory each took, and ends the program.
pub(crate) fn footprint<T>(call: &Call, mut make: impl FnMut() -> T) -> ! {
    let n = call.count("n");
    let mut things = Vec::with_capacity(n);
    let before = rss_bytes();
    for _ in 0..n {
        // Hidden from the compiler, or it would take zeroed pages that nothing has touched.
        things.push(black_box(make()));
    }
    let grown = rss_bytes().saturating_sub(before);
    black_box(&things);
    print_metrics(&[("bytes_per_object", grown as f64 / n as f64)])
}
