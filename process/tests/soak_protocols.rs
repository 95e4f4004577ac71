//! Processes that spawn, link, kill, call and name each other at random, against a naive model. On the test runtime
//! every command is carried out before the next one, so the model knows the outcome; where commands race, what must
//! hold in the end is checked: each end is told once, each call has an outcome, no name stays, nothing leaks.
//!
//! `WEALD_SOAK=<seconds>` makes the race long.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/protocol.rs"]
mod protocol;
#[path = "support/protocol_model.rs"]
mod protocol_model;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use protocol::{Command, Message, NAMES, Outcome, World, ask, name, random_command};
use protocol_model::Model;
use tools::{Random, for_seeds, runtime, soak, until};
use weald_kernel::{Runtime, sleep, yield_now};
use weald_process::{Pid, registered};

/// How many commands a run has.
const COMMANDS: u32 = 80;

#[test]
fn one_command_at_a_time_is_as_in_the_model() {
    for_seeds(300, |random| {
        let world = World::default();
        Runtime::test(random.next()).block_on(one_by_one(random, &world));
        assert_eq!(world.drops.count(), world.drops.made(), "a leak");
    });
}

async fn one_by_one(random: &mut Random, world: &World) {
    let mut model = Model::new();
    let mut commands = Vec::new();
    for number in 0..COMMANDS {
        // A few at the beginning, and later some for those that have died out.
        if number < 3 || random.below(10) == 0 {
            world.spawn(false, None);
            model.spawn();
        }
        let (own, command) = (random.below(world.len()), random_command(random, number));
        commands.push((own, command));
        world.pid(own).send(Message::Do(number, command));
        let outcome = model.obey(own, number, command);
        // Until nothing can run: time does not pass before. Longer than a call waits.
        sleep(Duration::from_millis(10)).await;
        assert_eq!(world.ends(), model.ended, "{commands:?}");
        assert_eq!(names(world), model.names, "{commands:?}");
        // A caller that ends with its callee may learn the outcome or not.
        let outcomes = world.take_outcomes();
        match outcome {
            Some(_) if outcomes.is_empty() && model.ended.contains_key(&own) => {}
            Some(outcome) => assert_eq!(outcomes, [(number, outcome)], "{commands:?}"),
            None => assert_eq!(outcomes, [], "{commands:?}"),
        }
    }
    end_all(world).await;
    assert!(registered().is_empty(), "{commands:?}");
}

/// Which process has which name, by its index.
fn names(world: &World) -> Vec<Option<usize>> {
    let holder = |number: usize| name(number).whereis().ok();
    let holders = (0..NAMES).map(holder);
    holders
        .map(|holder| holder.map(|pid| world.index(pid.id())))
        .collect()
}

/// Kills all until there is no new one, and waits for their ends. Each is told once.
async fn end_all(world: &World) {
    let mut ended = 0;
    while ended < world.len() {
        let pids: Vec<Pid<_>> = (ended..world.len()).map(|own| world.pid(own)).collect();
        pids.iter().for_each(Pid::kill);
        for pid in pids {
            world.end_of(ended).await;
            assert!(!pid.is_alive());
            ended += 1;
        }
    }
}

/// Commands that race. Returns when all processes have ended.
async fn racing(random: &mut Random, world: &World) {
    let mut calls = Vec::new();
    for number in 0..COMMANDS {
        if number < 4 {
            world.spawn(false, None);
        }
        let (own, command) = (random.below(world.len()), random_command(random, number));
        match command {
            // From outside, and without a deadline: it ends when the callee does.
            Command::Call(n, how) if random.below(2) == 0 => {
                let token = world.drops.token();
                let call = ask(world.pid(n), (number, how), None, token);
                calls.push((number, weald_kernel::spawn(call)));
            }
            command => world.pid(own).send(Message::Do(number, command)),
        }
        if random.below(4) == 0 {
            yield_now().await;
        }
    }
    // Half of the runs end in the middle of everything.
    if random.below(2) == 0 {
        sleep(Duration::from_millis(3)).await;
    }
    end_all(world).await;
    for (number, call) in calls {
        check_call(number, call.await.unwrap());
    }
    assert_eq!(world.ends().len(), world.len());
    for (number, outcome) in world.take_outcomes() {
        match outcome {
            Outcome::TimedOut => {}
            outcome => check_call(number, outcome),
        }
    }
    assert!(registered().is_empty());
}

fn check_call(number: u32, outcome: Outcome) {
    match outcome {
        Outcome::Answer(answer) => assert_eq!(answer, number),
        Outcome::TimedOut => panic!("a call without a deadline timed out"),
        Outcome::NoReply | Outcome::Died(_) => {}
    }
}

#[test]
fn racing_commands_lose_no_end_and_no_call() {
    for_seeds(300, |random| {
        let world = World::default();
        Runtime::test(random.next()).block_on(racing(random, &world));
        assert_eq!(world.drops.count(), world.drops.made(), "a leak");
    });
}

fn round(random: &mut Random) {
    let world = World::default();
    Runtime::test(random.next()).block_on(one_by_one(random, &world));
    let runtime = runtime(1 + random.below(4));
    for _ in 0..10 {
        let world = World::default();
        runtime.block_on(racing(random, &world));
        until(|| runtime.metrics().processes == 0);
        until(|| world.drops.count() == world.drops.made());
    }
    runtime.shutdown(Duration::from_secs(30));
}

#[test]
fn soak_protocols_of_processes() {
    soak(round);
}
