//! Supervisors under kills: for each strategy hundreds of schedules of the test runtime, with kills at random waits of
//! the children, and one at every wait of the supervisor. A seed that fails is printed; `WEALD_SEED` runs it again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/children.rs"]
mod children;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use children::{HOUR, Life, Log, MS, Order, child};
use tools::{Random, for_seeds, watch};
use weald_kernel::{Kills, Runtime, Seeds, SpawnError, sleep, yield_now};
use weald_process::{
    self as process, Builder, ChildSpec, Inbox, Name, Ready, Strategy, Supervisor, SupervisorPid,
    monitor, registered,
};

const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// What the children did, as a model that knows the rules of the strategy.
struct Model {
    strategy: Strategy,
    /// By child: how often it started, and whether it runs.
    starts: [usize; IDS.len()],
    runs: [bool; IDS.len()],
}

impl Model {
    fn new(strategy: Strategy) -> Model {
        Model {
            strategy,
            starts: [0; IDS.len()],
            runs: [false; IDS.len()],
        }
    }

    /// Sees what the children have noted.
    fn follow(&mut self, log: &Log) {
        log.take().iter().for_each(|what| self.see(what));
    }

    fn see(&mut self, what: &str) {
        let (sign, id) = what.split_at(1);
        let place = IDS.iter().position(|known| *known == id).unwrap();
        let runs = sign == "+";
        assert_ne!(
            self.runs[place], runs,
            "{what}: of each child one runs at a time"
        );
        self.runs[place] = runs;
        if runs {
            self.starts[place] += 1;
            let behind = self.runs[place + 1..].contains(&true);
            assert!(
                self.strategy == Strategy::OneForOne || !behind,
                "{what}: those behind it end before it starts"
            );
        }
    }

    /// After the last kill, when the supervisor has nothing left to do.
    fn finish(&self, kills: usize) {
        assert_eq!(self.runs, [true; IDS.len()], "all run again");
        let starts = self.starts;
        match self.strategy {
            Strategy::OneForOne => {
                assert_eq!(
                    starts.iter().sum::<usize>(),
                    IDS.len() + kills,
                    "{starts:?}"
                );
            }
            Strategy::OneForAll => {
                assert!(starts.iter().all(|n| *n == starts[0]), "{starts:?}");
            }
            Strategy::RestForOne => assert!(starts.is_sorted(), "{starts:?}"),
        }
        assert!(kills == 0 || starts.iter().sum::<usize>() > IDS.len());
    }
}

const STRATEGIES: [Strategy; 3] = [
    Strategy::OneForOne,
    Strategy::OneForAll,
    Strategy::RestForOne,
];

/// A supervisor without children, which never gives up.
fn patient(strategy: Strategy) -> Supervisor {
    Supervisor::new(strategy).intensity(usize::MAX, HOUR)
}

async fn supervisor(strategy: Strategy, log: &Log) -> SupervisorPid {
    let supervisor = patient(strategy);
    let children = IDS.map(|id| child(id, log));
    let supervisor = children.into_iter().fold(supervisor, Supervisor::child);
    supervisor.start().await.unwrap()
}

/// Kills children at random moments, even while others are being started again.
async fn kill_at_random(strategy: Strategy, random: &mut Random) {
    let log = Log::default();
    let supervisor = supervisor(strategy, &log).await;
    let kills = random.below(8);
    for _ in 0..kills {
        for _ in 0..random.below(20) {
            yield_now().await;
        }
        let victim = Name::<Order>::of(IDS[random.below(IDS.len())]);
        let victim = victim.registered().await.unwrap();
        let down = monitor(&victim);
        victim.kill();
        down.await;
    }
    sleep(10 * MS).await;
    let mut model = Model::new(strategy);
    model.follow(&log);
    // A child that the supervisor was ending when it was killed makes no restart of its own.
    let kills = match strategy {
        Strategy::OneForOne => kills,
        _ => usize::from(kills > 0),
    };
    model.finish(kills);
    supervisor.stop().await;
    model.follow(&log);
    assert_eq!(model.runs, [false; IDS.len()]);
}

fn on_seeds(strategy: Strategy) {
    for_seeds(300, |random| {
        let seed = random.next();
        Runtime::test(seed).block_on(kill_at_random(strategy, random));
    });
}

#[test]
fn one_for_one_holds_its_rule_under_kills() {
    on_seeds(Strategy::OneForOne);
}

#[test]
fn one_for_all_holds_its_rule_under_kills() {
    on_seeds(Strategy::OneForAll);
}

#[test]
fn rest_for_one_holds_its_rule_under_kills() {
    on_seeds(Strategy::RestForOne);
}

#[test]
fn a_supervisor_that_is_killed_at_any_wait_leaves_nobody() {
    let watch = watch();
    for strategy in STRATEGIES {
        let kills = Seeds::new(4).kill_at_every_wait(async |kills| {
            watch.again();
            let log = Log::default();
            let supervisor = supervisor(strategy, &log).await;
            // So it is killed before, while, and after it starts others again.
            kills.target(&supervisor);
            Name::<Order>::of("b").whereis().unwrap().kill();
            let down = monitor(&supervisor);
            sleep(10 * MS).await;
            if !kills.has_killed() {
                return supervisor.stop().await;
            }
            down.await;
            sleep(10 * MS).await;
            assert!(registered().is_empty(), "{strategy:?}: {:?}", registered());
        });
        assert!(kills > 50, "{kills}");
    }
}

/// A child that waits before it is ready, and after that, and may be killed at each of these waits.
fn waiting_child(id: &'static str, log: &Log, kills: &Kills) -> ChildSpec {
    let (log, kills) = (log.clone(), kills.clone());
    let spec = ChildSpec::new(id, move |starting| {
        let ready = starting.ready();
        let life = Life::begin(id, &log);
        let builder = Builder::new().link();
        let process = builder.spawn(|inbox: Inbox<Order>| {
            Name::of(id).register(&inbox.pid()).unwrap();
            kills.cover(wait(inbox, ready, life))
        })?;
        Ok::<_, SpawnError>(process.into_pid())
    });
    spec.ready_within(HOUR)
}

async fn wait(mut inbox: Inbox<Order>, ready: Ready, _life: Life) {
    yield_now().await;
    sleep(MS).await;
    ready.say();
    yield_now().await;
    inbox.receive().await;
}

/// A child or somebody who asks the supervisor for something is killed at any wait, even while the supervisor starts
/// that child for the first time, or again because another one has crashed.
#[test]
fn a_child_that_is_killed_at_any_wait_is_started_again_or_has_failed_to_start() {
    let watch = watch();
    for strategy in STRATEGIES {
        let kills = Seeds::new(4).kill_at_every_wait(async |kills| {
            watch.again();
            let log = Log::default();
            let supervisor = patient(strategy).child(child("a", &log));
            let supervisor = supervisor.child(waiting_child("b", &log, &kills));
            let started = supervisor.child(child("c", &log)).start().await;
            let mut model = Model::new(strategy);
            let Ok(supervisor) = started else {
                assert!(kills.has_killed());
                model.follow(&log);
                return assert_eq!(model.runs, [false; IDS.len()]);
            };
            Name::<Order>::of("a").whereis().unwrap().kill();
            let asked = supervisor.clone();
            let asks = process::spawn(|_: Inbox<()>| {
                kills.cover(async move {
                    asked.start_child(child("d", &Log::default())).await?;
                    asked.terminate_child("d").await?;
                    asked.delete_child("d").await
                })
            });
            let asked = asks.unwrap().await;
            assert!(asked.is_err() <= kills.has_killed(), "{asked:?}");
            sleep(10 * MS).await;
            model.follow(&log);
            assert_eq!(model.runs, [true, true, true, false]);
            let states = supervisor.children().await.unwrap();
            assert!(states[..3].iter().all(|child| child.unit.is_some()));
            supervisor.stop().await;
            model.follow(&log);
            assert_eq!(model.runs, [false; IDS.len()]);
            assert!(registered().is_empty(), "{:?}", registered());
        });
        assert!(kills > 10, "{kills}");
    }
}
