//! Order: messages from one sender to one process arrive once each, in the order in which they were sent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::thread;

use tools::{for_seeds, on_each, runtime};
use weald_kernel::{block_in_place, spawn, yield_now};
use weald_process::{self as process, Inbox, Pid};

/// A message: its sender and its number.
type Numbered = (usize, u64);

/// Receives `count` messages from each of `senders` senders, and checks their order for each sender.
async fn checks_order(mut inbox: Inbox<Numbered>, senders: usize, count: u64, selects: bool) {
    let mut next = vec![0; senders];
    for round in 0..senders as u64 * count {
        let unfinished = next.iter().position(|next| *next < count).unwrap();
        let (sender, number) = match selects && round % 3 == 0 {
            true => inbox.receive_if(|message| message.0 == unfinished).await,
            false => inbox.receive().await,
        };
        assert_eq!(number, next[sender], "from sender {sender}");
        next[sender] += 1;
    }
    assert!(next.iter().all(|next| *next == count));
    assert!(inbox.try_receive().is_none());
}

/// Sends `count` messages, with pauses of different kinds.
async fn sends(pid: Pid<Numbered>, sender: usize, count: u64, mut random: tools::Random) {
    for number in 0..count {
        pid.send((sender, number));
        match random.below(40) {
            0..5 => yield_now().await,
            5 => block_in_place(thread::yield_now),
            6 => spawn(async {}).await.unwrap(),
            _ => {}
        }
    }
}

#[test]
fn each_senders_messages_keep_their_order() {
    for_seeds(8, |random| {
        let runtime = runtime(1 + random.below(4));
        let (jobs, threads, count) = (1 + random.below(5), random.below(3), 2_000);
        let senders = jobs + threads;
        let selects = random.below(2) == 0;
        let receiver = runtime.block_on(async {
            process::spawn(move |inbox| checks_order(inbox, senders, count, selects)).unwrap()
        });
        let sending: Vec<_> = (0..jobs)
            .map(|n| {
                let random = tools::Random(random.next());
                runtime.spawn(sends(receiver.pid().clone(), n, count, random))
            })
            .collect();
        thread::scope(|scope| {
            for n in jobs..senders {
                let pid = receiver.pid().clone();
                scope.spawn(move || (0..count).for_each(|number| pid.send((n, number))));
            }
        });
        for job in sending {
            runtime.block_on(job).unwrap();
        }
        assert_eq!(runtime.block_on(receiver), Ok(()));
    });
}

#[test]
fn a_token_goes_round_a_ring_of_processes() {
    on_each(|runtime| {
        let hops = runtime.block_on(async {
            let size = 100;
            let (ends, end) = std::sync::mpsc::channel();
            let mut next: Option<Pid<u64>> = None;
            let mut first_inbox = None;
            let first = process::spawn(|inbox: Inbox<u64>| {
                first_inbox = Some(inbox);
                std::future::pending::<()>()
            })
            .unwrap();
            for _ in 1..size {
                let to = next.clone().unwrap_or_else(|| first.pid().clone());
                let process = process::spawn(async move |mut inbox: Inbox<u64>| {
                    loop {
                        let hops = inbox.receive().await;
                        to.send(hops + 1);
                    }
                });
                next = Some(process.unwrap().into_pid());
            }
            let next = next.unwrap();
            let mut inbox = first_inbox.unwrap();
            let driver = spawn(async move {
                next.send(1);
                for _ in 0..50 {
                    let hops = inbox.receive().await;
                    next.send(hops + 1);
                }
                ends.send(inbox.receive().await).unwrap();
            });
            driver.await.unwrap();
            end.recv().unwrap()
        });
        assert_eq!(hops, 51 * 100);
    });
}

#[test]
fn a_process_may_send_to_itself() {
    on_each(|runtime| {
        let sum = runtime.block_on(async {
            process::spawn(async |mut inbox: Inbox<u64>| {
                let own = inbox.pid();
                own.send(100);
                let mut sum = 0;
                loop {
                    match inbox.receive().await {
                        0 => return sum,
                        n => {
                            sum += n;
                            own.send(n - 1);
                        }
                    }
                }
            })
            .unwrap()
            .await
        });
        assert_eq!(sum, Ok(5_050));
    });
}

#[test]
fn every_message_arrives_however_receiver_and_senders_race() {
    // One message at a time, so that the receiver parks again and again while it is being sent to.
    for_seeds(4, |random| {
        let runtime = runtime(1 + random.below(4));
        let pairs: Vec<_> = (0..4)
            .map(|_| {
                runtime.block_on(async {
                    let echo = process::spawn(async |mut inbox: Inbox<(u32, Pid<u32>)>| {
                        loop {
                            let (n, from) = inbox.receive().await;
                            from.send(n);
                        }
                    })
                    .unwrap()
                    .into_pid();
                    process::spawn(async move |mut inbox: Inbox<u32>| {
                        for n in 0..2_000 {
                            echo.send((n, inbox.pid()));
                            assert_eq!(inbox.receive().await, n);
                        }
                        echo.kill();
                    })
                    .unwrap()
                })
            })
            .collect();
        for pair in pairs {
            assert_eq!(runtime.block_on(pair), Ok(()));
        }
    });
}
