//! Children of every shape of work under one supervisor: each is started again when it crashes, and ended at the
//! shutdown.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use children::{HOUR, Log, MS, on_seeds};
use tools::{Latch, on_each};
use weald_kernel::{DEFAULT_STACK, Spawn, SpawnError, Wait, spawn, yield_now};
use weald_process::{
    self as process, Answer, ChildSpec, ExitReason, Inbox, Reply, Server, ServerScope, Step,
    Strategy, Supervisor, SupervisorPid, Unit,
    callback::{self, Owner},
    monitor,
};

const IDS: [&str; 6] = ["process", "thread", "job", "owner", "server", "supervisor"];

/// What is shared by the starts of the children.
#[derive(Clone, Default)]
struct Stage {
    log: Log,
    /// By child: what makes its present start crash.
    crashes: Arc<Mutex<BTreeMap<&'static str, Latch>>>,
}

/// One start of a child: notes when it begins and when it is dropped.
struct Life {
    stage: Stage,
    id: &'static str,
    crash: Latch,
}

impl Stage {
    fn begin(&self, id: &'static str) -> Life {
        let crash = Latch::default();
        self.crashes.lock().unwrap().insert(id, crash.clone());
        self.log.note(format!("+{id}"));
        Life {
            stage: self.clone(),
            id,
            crash,
        }
    }

    fn crash(&self, id: &str) {
        let latch = self.crashes.lock().unwrap()[id].clone();
        latch.open();
    }
}

impl Life {
    async fn live(self) {
        self.crash.clone().await;
        panic!("on purpose")
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.stage.log.note(format!("-{}", self.id));
    }
}

struct Lives(Life);
struct Crash;

impl Server for Lives {
    type Info = ();

    async fn begin(&mut self, scope: &mut ServerScope<Lives>) -> Step {
        let (server, crash) = (scope.server(), self.0.crash.clone());
        // A job that asks the server to crash; if the server ends otherwise, nobody opens the latch.
        drop(spawn(async move {
            crash.await;
            server.request(Crash).await
        }));
        Step::Receive
    }
}

impl Answer<Crash> for Lives {
    type Value = ();

    async fn answer(&mut self, _: Crash, _reply: Reply<()>, _: &mut ServerScope<Lives>) -> Step {
        panic!("on purpose")
    }
}

/// A child of this shape.
fn child(id: &'static str, stage: &Stage) -> ChildSpec {
    let stage = stage.clone();
    match id {
        "process" => ChildSpec::process(id, move |_: Inbox<()>| stage.begin(id).live()),
        "thread" => ChildSpec::new(id, move |_| {
            let life = stage.begin(id);
            Spawn::new().spawn_fiber(DEFAULT_STACK, move || -> () {
                let life = life;
                life.crash.clone().wait();
                panic!("on purpose")
            })
        }),
        "job" => ChildSpec::new(id, move |_| {
            Ok::<_, SpawnError>(spawn(stage.begin(id).live()))
        }),
        // What lives is a callback, which ends with the job that owns it.
        "owner" => ChildSpec::new(id, move |_| {
            let life = stage.begin(id);
            Ok::<_, SpawnError>(spawn(async move {
                let crash = life.crash.clone();
                callback::every(MS, move || assert!(life.id == "owner")).detach();
                let owner = process::AsUnit::as_unit(&Owner::current());
                assert_eq!(
                    owner.map(|unit| unit.number()),
                    Unit::current().map(|unit| unit.number())
                );
                crash.await;
                panic!("on purpose")
            }))
        }),
        "server" => ChildSpec::server(id, move || Lives(stage.begin(id))),
        _ => ChildSpec::supervisor(id, move || {
            let stage = stage.clone();
            let only = ChildSpec::process("only", move |_: Inbox<()>| stage.begin(id).live());
            // It gives up at the first crash.
            Supervisor::new(Strategy::OneForOne)
                .intensity(0, HOUR)
                .child(only)
        }),
    }
}

/// The unit of a child, as soon as it has one that is not `former`.
async fn unit(supervisor: &SupervisorPid, id: &str, former: Option<&Unit>) -> Unit {
    loop {
        let children = supervisor.children().await.unwrap();
        let child = children.into_iter().find(|child| child.id == id).unwrap();
        let number = former.map(Unit::number);
        if let Some(unit) = child.unit.filter(|unit| Some(unit.number()) != number) {
            return unit;
        }
        yield_now().await;
    }
}

async fn each_crashes_and_all_end() {
    let stage = Stage::default();
    let supervisor = Supervisor::new(Strategy::OneForOne).intensity(usize::MAX, HOUR);
    let children = IDS.map(|id| child(id, &stage));
    let supervisor = children.into_iter().fold(supervisor, Supervisor::child);
    let supervisor = supervisor.start().await.unwrap();
    tools::until_yielding(|| stage.crashes.lock().unwrap().len() == IDS.len()).await;
    assert_eq!(stage.log.take().len(), IDS.len());
    for _ in 0..2 {
        for id in IDS {
            let former = unit(&supervisor, id, None).await;
            let down = monitor(&former);
            stage.crash(id);
            match down.await.reason {
                ExitReason::Crash(crash) => assert_eq!(crash.message(), "on purpose"),
                reason => assert_eq!((id, reason), ("supervisor", ExitReason::Shutdown)),
            }
            unit(&supervisor, id, Some(&former)).await;
            assert_eq!(stage.log.take(), [format!("-{id}"), format!("+{id}")]);
        }
    }
    let children = supervisor.children().await.unwrap();
    supervisor.stop().await;
    let ends = IDS.iter().rev().map(|id| format!("-{id}"));
    assert_eq!(stage.log.take(), ends.collect::<Vec<_>>(), "the last first");
    assert!(
        children
            .iter()
            .all(|child| child.unit.as_ref().unwrap().has_ended())
    );
}

#[test]
fn a_child_of_any_shape_is_started_again_when_it_crashes_and_ended_at_the_shutdown() {
    on_seeds(each_crashes_and_all_end);
    on_each(|runtime| runtime.block_on(each_crashes_and_all_end()));
}
