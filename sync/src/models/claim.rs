//! Models of the claim: choices that want each other's offers are made together, once.

#![allow(unsafe_code)]

use std::{sync::Arc, task::Waker};

use loom::{cell::UnsafeCell, thread};

use super::made_up::{Chosen, either, once, wait};
use crate::{
    channel,
    queue::{
        claim::{Claim, Won},
        offer::{OfferNode, Offers},
        spin_lock::SpinLock,
        ticket::Ticket,
    },
};

/// Each of two choices sends on one channel and receives from the other: they meet on exactly one. They come
/// to the channels in opposite order, so that each may hold its own claim and want the other's.
#[test]
fn two_choices_meet_on_one_channel() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let (other_sender, other_receiver) = channel::rendezvous();
        let partner =
            thread::spawn(move || wait(either(other_sender.send("theirs"), receiver.receive())));
        let mine = wait(either(sender.send("mine"), other_receiver.receive()));
        let theirs = partner.join().unwrap();
        let met_first = mine == Chosen::First(Ok(())) && theirs == Chosen::Second(Ok("mine"));
        let met_second = mine == Chosen::Second(Ok("theirs")) && theirs == Chosen::First(Ok(()));
        assert!(met_first || met_second, "{mine:?} and {theirs:?}");
    });
}

/// As above, but both give up after one poll: a value that one has sent is with the other, or still there.
#[test]
fn a_choice_that_gives_up_has_committed_or_not() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let (other_sender, other_receiver) = channel::rendezvous();
        // These keep the channels open.
        let handles = (receiver.clone(), other_sender.clone());
        let partner =
            thread::spawn(move || once(either(other_sender.send("theirs"), receiver.receive())));
        let mine = once(either(sender.send("mine"), other_receiver.receive()));
        let theirs = partner.join().unwrap();
        if mine == Some(Chosen::First(Ok(()))) {
            let is_there = || handles.0.try_receive() == Ok("mine");
            assert!(theirs == Some(Chosen::Second(Ok("mine"))) || is_there());
        }
        if theirs == Some(Chosen::First(Ok(()))) {
            let is_there = || other_receiver.try_receive() == Ok("theirs");
            assert!(mine == Some(Chosen::Second(Ok("theirs"))) || is_there());
        }
    });
}

/// Two choices that send and receive on the same channel meet each other, never themselves.
#[test]
fn choices_on_one_channel_do_not_meet_themselves() {
    loom::model(|| {
        let (sender, receiver) = channel::rendezvous();
        let (their_sender, their_receiver) = (sender.clone(), receiver.clone());
        let partner = thread::spawn(move || {
            wait(either(
                their_sender.send("theirs"),
                their_receiver.receive(),
            ))
        });
        let mine = wait(either(sender.send("mine"), receiver.receive()));
        match (mine, partner.join().unwrap()) {
            (Chosen::First(Ok(())), Chosen::Second(Ok(value))) => assert_eq!(value, "mine"),
            (Chosen::Second(Ok(value)), Chosen::First(Ok(()))) => assert_eq!(value, "theirs"),
            both => panic!("{both:?}"),
        }
    });
}

/// What a partner leaves in an offer before it wins the claim, the owner takes without the lock of the list once it has
/// found the claim won: nothing but the claim orders the two.
#[test]
fn an_owner_takes_what_was_left_without_the_lock() {
    loom::model(|| {
        let list = Arc::new(SpinLock::new(Offers::<UnsafeCell<u32>>::new()));
        let mut node = Box::pin(OfferNode::with_slot(UnsafeCell::new(0)));
        let mut claim = Claim::new(Waker::noop().clone());
        // SAFETY: *exclusive*: the claim is new.
        let (claim, held) = unsafe { claim.first() };
        let ticket = Ticket::new(claim, (0, 1), None);
        list.lock().leave(node.as_mut(), &ticket);
        drop(held);
        let partners = Arc::clone(&list);
        let partner = thread::spawn(move || {
            let mut offers = partners.lock();
            let mut accepted = offers.accept().expect("the wait has not ended");
            accepted.slot().with_mut(|slot| {
                // SAFETY: the partner holds the claim.
                unsafe { *slot = 1 }
            });
            assert!(accepted.win().is_some());
        });
        while claim.winner().is_none() {
            thread::yield_now();
        }
        // SAFETY: *routed*: the partner has won the claim for this node, the only one.
        let won = unsafe { Won::new(0) };
        // SAFETY: *left*.
        let left = unsafe { node.as_mut().left_value(won) };
        // SAFETY: *left*.
        assert_eq!(left.slot.with(|slot| unsafe { *slot }), 1);
        partner.join().unwrap();
    });
}
