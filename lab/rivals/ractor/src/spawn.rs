//! `spawn`: how long a process takes to start and to end, and how much memory it holds while it
//! waits.

use std::time::Instant;

use common::{per, print_metrics, rss_bytes};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::runtime::Handle;

use crate::gate::Gate;
use crate::start;

/// The message that ends a process.
struct Die;

/// A process that waits for its end.
struct Waiter {
    started: &'static Gate,
    ended: &'static Gate,
}

impl Actor for Waiter {
    type Msg = Die;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Die>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_start(&self, _: ActorRef<Die>, (): &mut ()) -> Result<(), ActorProcessingErr> {
        self.started.count();
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<Die>,
        _: Die,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        me.stop(None);
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Die>, (): &mut ()) -> Result<(), ActorProcessingErr> {
        self.ended.count();
        Ok(())
    }
}

pub(crate) async fn run(n: usize) {
    let (started, ended) = (Gate::leak(n), Gate::leak(n));
    let mut handles: Vec<Option<ActorRef<Die>>> = vec![None; n];
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for handle in &mut handles {
        *handle = Some(start(Waiter { started, ended }, ()).await);
    }
    started.wait().await;
    let spawning = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for handle in handles.iter().flatten() {
        handle
            .cast(Die)
            .expect("the process waits for this message");
    }
    ended.wait().await;
    let metrics = Handle::current().metrics();
    while metrics.num_alive_tasks() > 1 {
        tokio::task::yield_now().await;
    }
    let teardown = clock.elapsed();
    print_metrics(&[
        ("ns_per_spawn", per(spawning, n as f64)),
        ("ns_per_teardown", per(teardown, n as f64)),
        ("bytes_per_process", grown as f64 / n as f64),
    ]);
}
