//! When nacks become ready, case by case.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    rc::Rc,
    sync::mpsc,
    thread,
};

use weald_sync::{
    Event, Nack, Wait, always, channel, choose, guard, never, of_future, select, with_nack,
};

use crate::hand::hand;

/// The nack of an event that was opened.
#[derive(Clone, Default)]
struct Slot(Rc<RefCell<Option<Nack>>>);

impl Slot {
    fn event<E: Event>(&self, event: E) -> impl Event<Output = E::Output> + use<E> {
        let slot = self.clone();
        with_nack(move |nack| {
            *slot.0.borrow_mut() = Some(nack);
            event
        })
    }

    fn nack(&self) -> Nack {
        self.0.borrow().clone().expect("the guard ran")
    }

    /// Whether the nack is ready, by its flag and as an event.
    fn is_enabled(&self) -> bool {
        let flag = self.nack().is_enabled();
        assert_eq!(flag, self.nack().try_sync().is_some());
        flag
    }
}

#[test]
fn chosen_at_once_no_nack() {
    let slot = Slot::default();
    slot.event(always(1)).sync().wait();
    assert!(!slot.is_enabled());
}

#[test]
fn chosen_by_a_partner_no_nack() {
    let (slot, (sender, receiver)) = (Slot::default(), channel::rendezvous());
    let mut wait = hand(choose((slot.event(receiver.receive()), never())));
    assert!(wait.is_pending());
    assert!(!slot.is_enabled());
    sender.try_send(1).unwrap();
    assert_eq!(wait.ready(), Ok(1));
    drop(wait);
    assert!(!slot.is_enabled());
}

#[test]
fn another_chosen_at_once_nack() {
    let slot = Slot::default();
    choose((slot.event(never()), always(1))).wait();
    assert!(slot.is_enabled());
}

#[test]
fn another_chosen_by_a_partner_nack() {
    let slot = Slot::default();
    let ((sender, receiver), (_other, from_other)) = (channel::rendezvous(), channel::rendezvous());
    let mut wait = hand(choose((
        slot.event(from_other.receive()),
        receiver.receive(),
    )));
    assert!(wait.is_pending());
    let mut nack = hand(slot.nack());
    assert!(nack.is_pending());
    sender.try_send(1).unwrap();
    assert_eq!(wait.ready(), Ok(1));
    assert_eq!(nack.wakes(), 1);
    nack.ready();
    assert!(slot.is_enabled());
}

#[test]
fn a_nack_stays_ready() {
    let slot = Slot::default();
    choose((slot.event(never()), always(1))).wait();
    let nack = slot.nack();
    for _ in 0..3 {
        nack.clone().wait();
        choose((nack.clone(), never())).wait();
    }
}

#[test]
fn nested_the_inner_chosen_no_nack() {
    let (outer, inner) = (Slot::default(), Slot::default());
    let nest = outer.event(choose((inner.event(always(1)), never())));
    choose((nest, never())).wait();
    assert_eq!((outer.is_enabled(), inner.is_enabled()), (false, false));
}

#[test]
fn nested_a_sibling_within_chosen_only_the_inner_nack() {
    let (outer, inner) = (Slot::default(), Slot::default());
    let nest = outer.event(choose((inner.event(never()), always(1))));
    choose((nest, never())).wait();
    assert_eq!((outer.is_enabled(), inner.is_enabled()), (false, true));
}

#[test]
fn nested_one_outside_chosen_both_nacks() {
    let (outer, inner) = (Slot::default(), Slot::default());
    let nest = outer.event(choose((inner.event(never()), never())));
    choose((nest, always(1))).wait();
    assert_eq!((outer.is_enabled(), inner.is_enabled()), (true, true));
}

#[test]
fn lists_and_boxes_behave_the_same() {
    for chosen in 0..4 {
        let slots: Vec<Slot> = (0..4).map(|_| Slot::default()).collect();
        let event = |n: usize| {
            let ready = if n == chosen {
                vec![always(n)]
            } else {
                Vec::new()
            };
            slots[n].event(choose(ready))
        };
        let list = choose((
            choose(vec![event(0), event(1)]),
            choose([event(2), event(3)]),
        ));
        assert_eq!(list.wait(), chosen);
        for (n, slot) in slots.iter().enumerate() {
            assert_eq!(slot.is_enabled(), n != chosen);
        }
    }
}

#[test]
fn a_nack_is_ready_before_the_function_of_a_wrap_runs() {
    let slot = Slot::default();
    let event = choose((
        slot.event(never()),
        always(()).wrap(|()| assert!(slot.is_enabled())),
    ));
    event.wait();
}

#[test]
fn a_panic_after_the_choice_concerns_losers_only() {
    let (loser, chosen) = (Slot::default(), Slot::default());
    let event = choose((
        loser.event(never()),
        chosen.event(always(()).wrap(|()| panic!("after the choice"))),
    ));
    catch_unwind(AssertUnwindSafe(|| event.wait())).unwrap_err();
    assert_eq!((loser.is_enabled(), chosen.is_enabled()), (true, false));
}

#[test]
fn a_later_guard_panics_nack() {
    let slot = Slot::default();
    let opening = || {
        choose((
            slot.event(always(1)),
            guard(|| -> weald_sync::Never<i32> { panic!("a guard") }),
        ))
        .wait()
    };
    catch_unwind(AssertUnwindSafe(opening)).unwrap_err();
    assert!(slot.is_enabled());
    let slot = Slot::default();
    let event = |n| {
        let slot = slot.clone();
        with_nack(move |nack| {
            assert!(n == 0, "a guard");
            *slot.0.borrow_mut() = Some(nack);
            always(n)
        })
    };
    catch_unwind(AssertUnwindSafe(|| choose(vec![event(0), event(1)]).wait())).unwrap_err();
    assert!(slot.is_enabled());
    *slot.0.borrow_mut() = None;
    catch_unwind(AssertUnwindSafe(|| choose([event(0), event(1)]).wait())).unwrap_err();
    assert!(slot.is_enabled());
}

#[test]
fn its_own_guard_panics_nack() {
    let slot = Slot::default();
    let own = slot.clone();
    let event = with_nack(move |nack| -> weald_sync::Never<()> {
        *own.0.borrow_mut() = Some(nack);
        panic!("its own guard")
    });
    catch_unwind(AssertUnwindSafe(|| event.wait())).unwrap_err();
    assert!(slot.is_enabled());
    let event = slot.event(guard(|| -> weald_sync::Never<()> {
        panic!("the guard within")
    }));
    catch_unwind(AssertUnwindSafe(|| event.sync().wait())).unwrap_err();
    assert!(slot.is_enabled());
}

#[test]
fn dropped_before_the_first_poll_nack() {
    let slot = Slot::default();
    let wait = choose((slot.event(always(1)), never())).sync();
    assert!(!slot.is_enabled());
    drop(wait);
    assert!(slot.is_enabled());
}

#[test]
fn cancelled_while_it_waits_nack() {
    let (slot, (_sender, receiver)) = (Slot::default(), channel::rendezvous::<u32>());
    let mut wait = hand(choose((slot.event(receiver.receive()), never())));
    assert!(wait.is_pending());
    assert!(!slot.is_enabled());
    drop(wait);
    assert!(slot.is_enabled());
    assert_eq!(receiver.waiting(), 0);
}

#[test]
fn cancelled_when_a_partner_had_chosen_it_nack() {
    let (slot, (sender, receiver)) = (Slot::default(), channel::rendezvous());
    let mut wait = hand(choose((slot.event(receiver.receive()), never())));
    assert!(wait.is_pending());
    sender.try_send(1).unwrap();
    drop(wait);
    assert!(slot.is_enabled());
    assert_eq!(receiver.try_receive(), Ok(1), "the value was given back");
}

#[test]
fn a_poll_that_finds_nothing_ready_nack() {
    let slot = Slot::default();
    assert_eq!(slot.event(never::<u32>()).try_sync(), None);
    assert!(slot.is_enabled());
    let slot = Slot::default();
    select! {
        () = slot.event(never()) => unreachable!(),
        else => {}
    }
    assert!(slot.is_enabled());
}

#[test]
fn a_future_of_the_choice_panics_nack() {
    let (slot, (_sender, receiver)) = (Slot::default(), channel::rendezvous::<u32>());
    let mut polls = 0;
    let future = std::future::poll_fn(|_| {
        polls += 1;
        assert!(polls < 2, "the second poll");
        std::task::Poll::Pending
    });
    let mut wait = hand(choose((slot.event(receiver.receive()), of_future(future))));
    assert!(wait.is_pending());
    catch_unwind(AssertUnwindSafe(|| wait.poll())).unwrap_err();
    drop(wait);
    assert!(slot.is_enabled());
    assert_eq!(receiver.waiting(), 0);
}

#[test]
fn a_thread_that_unwinds_while_it_syncs_nack() {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let slow = with_nack(move |nack| {
            sender.send(nack).unwrap();
            never::<()>()
        });
        let mut wait = pin!(choose((slow, never())).sync());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        panic!("killed")
    });
    receiver.recv().unwrap().wait();
    thread.join().unwrap_err();
}

#[test]
fn a_server_learns_that_its_client_gave_up() {
    // Reppy's example: a request whose client takes another offer is taken back.
    let (requests, incoming) = channel::unbounded::<(channel::Sender<u32>, Nack)>();
    let server = thread::spawn(move || {
        let mut given_up = 0;
        for (reply, nack) in incoming.iter() {
            select! {
                wait;
                sent = reply.send(1) => given_up += u32::from(sent.is_err()),
                () = nack => given_up += 1,
            }
        }
        given_up
    });
    for round in 0..100 {
        let request = with_nack(|nack| {
            let (reply, replies) = channel::rendezvous();
            requests.try_send((reply, nack)).unwrap();
            guard(move || {
                let replies = replies;
                of_future(async move { replies.receive().await.unwrap() })
            })
        });
        match round % 2 {
            0 => assert_eq!(choose((request, never())).wait(), 1),
            // The reply may also be chosen, if it is already there.
            _ => drop(choose((request, never())).sync()),
        }
    }
    drop(requests);
    assert_eq!(server.join().unwrap(), 50);
}
