//! Wakers that panic, with a payload whose destructor panics too: the threads of a journal live on, and wake the
//! others.

use std::task::{Context, Poll, Waker};

use weald_forest::journal::{Appended, Durability, Journal, Later, Level};
use weald_journal::{SimulatedDisk, Work};

use crate::records::{append, must_append, open};
use crate::wakers;

fn poll<T>(later: &mut Later<'static, T>, waker: &Waker) -> Poll<T> {
    later.as_mut().poll(&mut Context::from_waker(waker))
}

#[test]
fn a_waker_that_panics_ends_no_thread_and_keeps_nobody_asleep() {
    let (hostile, (sound, is_told)) = (wakers::hostile(), wakers::sound());
    let journal = open(&SimulatedDisk::new()).unwrap();
    while journal.work(Work::Prepare) || journal.work(Work::Write) || journal.work(Work::Sync) {}
    let position = must_append(&journal, 1, 100);
    for (level, work) in [(Level::Buffered, Work::Write), (Level::Durable, Work::Sync)] {
        let mut waits = [&hostile, &sound].map(|waker| {
            let mut wait = journal.when_reached(position, level);
            assert_eq!(poll(&mut wait, waker), Poll::Pending);
            wait
        });
        assert!(journal.work(work));
        assert_eq!(is_told.try_iter().count(), 1, "{level:?}");
        for wait in &mut waits {
            assert_eq!(poll(wait, &sound), Poll::Ready(Durability::Reached));
        }
    }
    // Records that wait for room.
    let mut number = 2;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        if let Ok(Appended::Sent(answer)) = append(&journal, number, 1000) {
            answers.push(answer);
        }
        number += 1;
    }
    for (answer, waker) in answers.iter_mut().zip([&hostile, &sound]) {
        assert!(poll(answer, waker).is_pending());
    }
    while journal.work(Work::Prepare) || journal.work(Work::Write) {}
    assert_eq!(is_told.try_iter().count(), 1);
    for answer in &mut answers {
        assert!(matches!(poll(answer, &sound), Poll::Ready(Ok(_))));
    }
}
