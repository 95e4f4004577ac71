//! Marks in a mailbox with urgent messages: what was refused is not looked at again, urgent or not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use tools::{Random, for_seeds, watch};
use weald_kernel::{Runtime, yield_now};
use weald_process::{Builder, Pid, Prioritized, PriorityInbox, PriorityMark, PriorityPid};

/// A kind, and a number.
type Message = (u32, u32);

/// Runs `test` as a process with urgent messages.
fn as_process<F, Fut>(seed: u64, test: F)
where
    F: FnOnce(PriorityInbox<Message>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    Runtime::test(seed).block_on(async {
        let (process, _pid) = Builder::new().spawn_priority(test).unwrap();
        process.await.unwrap();
    });
}

#[test]
fn an_answer_is_found_behind_any_queue_by_one_look() {
    let _watch = watch();
    for is_urgent in [false, true] {
        as_process(1, async move |mut inbox: PriorityInbox<Message>| {
            let pid = inbox.pid();
            for number in 0..5_000 {
                pid.send((0, number));
                pid.send_urgent((0, number));
            }
            let mut mark = inbox.mark();
            match is_urgent {
                true => pid.send_urgent((1, 7)),
                false => pid.send((1, 7)),
            }
            let mut looks = 0;
            let answer = inbox
                .receive_since(&mut mark, |(kind, _)| {
                    looks += 1;
                    *kind == 1
                })
                .await;
            assert_eq!((answer, looks, inbox.len()), ((1, 7), 1, 10_000));
            // The others are as they were.
            for number in (0..5_000).chain(0..5_000) {
                assert_eq!(inbox.receive().await, (0, number));
            }
        });
    }
}

#[test]
fn a_receive_with_a_mark_waits_for_later_messages() {
    let _watch = watch();
    for seed in 0..100 {
        as_process(seed, async |mut inbox: PriorityInbox<Message>| {
            let pid = inbox.pid();
            pid.send((1, 0));
            pid.send_urgent((1, 1));
            let mut mark = inbox.mark();
            assert_eq!(inbox.take_since(&mut mark, |_| true), None);
            let later: PriorityPid<Message> = pid.clone();
            let sender = weald_kernel::spawn(async move {
                for number in 2..50 {
                    later.send_urgent((0, number));
                    yield_now().await;
                    later.send((number % 2, number));
                    yield_now().await;
                }
            });
            // Each refused message is looked at once.
            let mut looks = 0;
            for number in (3..50).step_by(2) {
                let found = inbox.receive_since(&mut mark, |(kind, _)| {
                    looks += 1;
                    *kind == 1
                });
                assert_eq!(found.await, (1, number));
            }
            sender.await.unwrap();
            assert!(looks <= 96, "{looks} looks at 96 messages");
            assert_eq!(inbox.try_receive(), Some((1, 1)));
            assert_eq!(inbox.take_if(|(kind, _)| *kind == 1), Some((1, 0)));
        });
    }
}

/// A naive mailbox: all messages in the order of their arrival, and for each mark which of them it has passed.
#[derive(Default)]
struct Naive {
    messages: Vec<(u32, bool, u32)>,
    arrived: u32,
    passed: Vec<Vec<u32>>,
}

impl Naive {
    /// The places of urgent messages, and then of the others.
    fn order(&self) -> Vec<usize> {
        let places = 0..self.messages.len();
        let (mut urgent, others): (Vec<_>, Vec<_>) =
            places.partition(|place| self.messages[*place].1);
        urgent.extend(others);
        urgent
    }

    fn take(&mut self, mark: Option<usize>, wanted: impl Fn(u32) -> bool) -> Option<Message> {
        for place in self.order() {
            let (number, _, kind) = self.messages[place];
            let passed = mark.map(|mark| &mut self.passed[mark]);
            if passed
                .as_ref()
                .is_some_and(|passed| passed.contains(&number))
            {
                continue;
            }
            if wanted(kind) {
                self.messages.remove(place);
                return Some((kind, number));
            }
            if let Some(passed) = passed {
                passed.push(number);
            }
        }
        None
    }
}

async fn as_the_naive_one(mut random: Random, mut inbox: PriorityInbox<Message>) {
    let mut naive = Naive::default();
    let mut marks: Vec<PriorityMark> = Vec::new();
    let pid: Pid<Prioritized<Message>> = inbox.pid().pid().clone();
    for _ in 0..200 {
        let kind = u32::try_from(random.below(3)).unwrap();
        match random.below(12) {
            0..5 => {
                let (number, is_urgent) = (naive.arrived, random.below(3) == 0);
                naive.arrived += 1;
                naive.messages.push((number, is_urgent, kind));
                pid.send(match is_urgent {
                    true => Prioritized::urgent((kind, number)),
                    false => Prioritized::usual((kind, number)),
                });
            }
            5 if marks.len() < 4 => {
                let is_oldest = random.below(2) == 0;
                marks.push(match is_oldest {
                    true => PriorityMark::oldest(),
                    false => inbox.mark(),
                });
                let all = naive.messages.iter().map(|(number, ..)| *number);
                let passed = all.filter(|_| !is_oldest).collect();
                naive.passed.push(passed);
            }
            6 => assert_eq!(inbox.try_receive(), naive.take(None, |_| true)),
            7 => {
                let taken = inbox.take_if(|(other, _)| *other == kind);
                assert_eq!(taken, naive.take(None, |other| other == kind));
            }
            _ if !marks.is_empty() => {
                let mark = random.below(marks.len());
                let taken = inbox.take_since(&mut marks[mark], |(other, _)| *other == kind);
                assert_eq!(taken, naive.take(Some(mark), |other| other == kind));
            }
            _ => {}
        }
        assert_eq!(inbox.len(), naive.messages.len());
    }
}

#[test]
fn marks_are_as_in_a_naive_mailbox() {
    for_seeds(300, |random| {
        let seed = random.next();
        let own = Random(random.next());
        as_process(seed, move |inbox| as_the_naive_one(own, inbox));
    });
}
