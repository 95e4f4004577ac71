//! A random population of processes that send, spawn, crash and kill; `WEALD_SOAK=<seconds>`
//! makes it long.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::time::Duration;

use tools::{Drops, Random, Token, runtime, soak, until};
use weald_kernel::{Wait, block_in_place, sleep, yield_now};
use weald_process::{self as process, ExitReason, Inbox, Pid};

enum Message {
    /// To be dropped.
    Load(#[expect(dead_code, reason = "only its drop counts")] Token),
    /// The pids of some others.
    Meet(Vec<Pid<Message>>),
    /// Send it back.
    Ping(Pid<Message>, Token),
}

async fn live(mut inbox: Inbox<Message>, mut random: Random, drops: Drops) {
    let _token = drops.token();
    let mut known: Vec<Pid<Message>> = vec![inbox.pid()];
    for _ in 0..random.below(60) {
        let other = known[random.below(known.len())].clone();
        match random.below(14) {
            0..3 => other.send(Message::Load(drops.token())),
            3 => other.send(Message::Ping(inbox.pid(), drops.token())),
            4 => other.send(Message::Meet(known.clone())),
            5 => yield_now().await,
            6 => sleep(Duration::from_millis(random.below(3) as u64)).await,
            7 => {
                let (own, drops) = (Random(random.next()), drops.clone());
                // A population that dies out: fewer children than deaths.
                if random.below(3) == 0 {
                    let child = process::spawn(move |inbox| boxed(inbox, own, drops));
                    known.extend(child.map(process::Process::into_pid));
                }
            }
            8 if random.below(8) == 0 => std::panic::resume_unwind(Box::new("on purpose")),
            9 if random.below(4) == 0 => other.kill(),
            10 => block_in_place(std::thread::yield_now),
            11 => {
                let wanted = |message: &Message| matches!(message, Message::Ping(..));
                let time = Duration::from_millis(random.below(3) as u64);
                if let Ok(Message::Ping(from, token)) = inbox.receive_if(wanted).after(time).await {
                    from.send(Message::Load(token));
                }
            }
            12 => drop(inbox.receive().after(Duration::from_millis(1)).wait()),
            _ => match inbox.receive().after(Duration::from_millis(1)).await {
                Ok(Message::Meet(pids)) => known.extend(pids.into_iter().take(5)),
                Ok(Message::Ping(from, token)) => from.send(Message::Load(token)),
                Ok(Message::Load(_)) | Err(_) => {}
            },
        }
    }
}

/// As [`live`]; boxed, because a process spawns others of its kind.
fn boxed(
    inbox: Inbox<Message>,
    random: Random,
    drops: Drops,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(live(inbox, random, drops))
}

fn round(random: &mut Random) {
    let runtime = runtime(1 + random.below(4));
    let drops = Drops::default();
    let roots: Vec<_> = runtime.block_on(async {
        (0..20 + random.below(50))
            .map(|_| {
                let (own, drops) = (Random(random.next()), drops.clone());
                process::spawn(move |inbox| boxed(inbox, own, drops)).unwrap()
            })
            .collect()
    });
    let pids: Vec<_> = roots.iter().map(|root| root.pid().clone()).collect();
    for pid in &pids {
        pid.send(Message::Meet(pids.clone()));
    }
    for root in roots {
        match runtime.block_on(root) {
            Ok(()) | Err(ExitReason::Killed) => {}
            Err(ExitReason::Crash(crash)) => assert_eq!(crash.message(), "on purpose"),
            Err(other) => panic!("{other}"),
        }
    }
    until(|| runtime.metrics().processes == 0);
    assert!(pids.iter().all(|pid| !pid.is_alive()));
    drop(pids);
    runtime.shutdown(Duration::from_secs(30));
    until(|| drops.count() == drops.made());
}

#[test]
fn soak_a_population_of_processes() {
    soak(round);
}
