//! The unconditional wait: one wait for each signal, in order, and waits that are dropped.

use weald_sync::{Event, Uncond, Wait, always, choose};

use crate::hand::waiting;

#[test]
fn each_signal_ends_one_wait_the_longest_first() {
    let ready = Uncond::new();
    let first = waiting(ready.wait().into_future());
    let mut second = waiting(ready.wait().into_future());
    ready.signal();
    first.woken();
    second.still_waits();
    ready.signal();
    second.woken();
}

#[test]
fn signals_before_their_waits_are_counted() {
    let ready = Uncond::named("ready");
    ready.signal();
    ready.signal();
    ready.wait().wait();
    ready.wait().wait();
    waiting(ready.wait().into_future()).still_waits();
}

#[test]
fn a_wait_that_is_dropped_leaves_its_signal_to_the_next_one() {
    let ready = Uncond::new();
    let first = waiting(ready.wait().into_future());
    let second = waiting(ready.wait().into_future());
    ready.signal();
    drop(first);
    second.woken();
}

#[test]
fn a_choice_that_another_event_ends_uses_up_no_signal() {
    let ready = Uncond::new();
    ready.signal();
    loop {
        let is_signalled = choose((ready.wait().wrap(|()| true), always(false))).wait();
        let has_signal = format!("{ready:?}").contains('1');
        assert_eq!(has_signal, !is_signalled);
        if !has_signal {
            break;
        }
    }
}
