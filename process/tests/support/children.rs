//! Children that note what happens to them, for the tests of supervisors.

#![allow(dead_code, reason = "each test file uses only some of it")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use weald_kernel::sleep;
use weald_process::{ChildSpec, Inbox, Name, Strategy, Supervisor, SupervisorPid, monitor};

use crate::tools::each_seed;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// What happens to the children of a test, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

pub(crate) enum Order {
    Return,
    Crash,
}

/// A child that notes its starts and its end, and obeys.
pub(crate) fn child(id: &'static str, log: &Log) -> ChildSpec {
    let log = log.clone();
    ChildSpec::process(id, move |mut inbox: Inbox<Order>| {
        let life = Life::begin(id, &log);
        Name::of(id).register(&inbox.pid()).unwrap();
        async move {
            let _life = life;
            match inbox.receive().await {
                Order::Return => {}
                Order::Crash => panic!("on purpose"),
            }
        }
    })
}

/// One start of a child: noted when it begins and when it is dropped.
pub(crate) struct Life(Log, &'static str);

impl Life {
    pub(crate) fn begin(id: &'static str, log: &Log) -> Life {
        log.note(format!("+{id}"));
        Life(log.clone(), id)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.note(format!("-{}", self.1));
    }
}

pub(crate) fn on_seeds(test: impl AsyncFn()) {
    each_seed(100, test);
}

/// Ends the child `id`, and waits until the supervisor has dealt with it.
pub(crate) async fn order(id: &str, order: Order) {
    let pid = Name::of(id.to_owned()).whereis().unwrap();
    let down = monitor(&pid);
    pid.send(order);
    down.await;
    sleep(10 * MS).await;
}

pub(crate) async fn supervisor(strategy: Strategy, log: &Log) -> SupervisorPid {
    let supervisor = Supervisor::new(strategy).intensity(5, HOUR);
    let children = ["a", "b", "c"].map(|id| child(id, log));
    let supervisor = children.into_iter().fold(supervisor, Supervisor::child);
    supervisor.start().await.unwrap()
}
