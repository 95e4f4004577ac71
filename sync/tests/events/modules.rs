//! CML's modules: mailbox, multicast channel, remote call.

use std::thread;

use weald_sync::{
    Wait, always,
    channel::Closed,
    choose,
    cml::{self, Mailbox, Multicast},
    never, select,
};

use crate::hand::hand;

#[test]
fn a_mailbox_is_first_in_first_out() {
    let mailbox = Mailbox::new();
    (0..100).for_each(|n| mailbox.send(n));
    assert_eq!(mailbox.len(), 100);
    assert!((0..100).all(|n| mailbox.receive().wait() == n));
    assert!(mailbox.is_empty());
    assert!(mailbox.same_mailbox(&mailbox.clone()));
    assert!(!mailbox.same_mailbox(&Mailbox::new()));
}

#[test]
fn a_mailbox_wakes_a_waiter() {
    let mailbox = Mailbox::new();
    let mut wait = hand(choose((mailbox.receive(), never())));
    assert!(wait.is_pending());
    mailbox.send(1);
    assert_eq!(wait.wakes(), 1);
    assert_eq!(wait.ready(), 1);
}

#[test]
fn each_port_gets_what_is_sent_after_its_creation() {
    let channel = Multicast::new();
    channel.send(0);
    let mut ports = Vec::new();
    for n in 1..=5 {
        ports.push(channel.port());
        channel.send(n);
    }
    for (at, port) in (1..).zip(&mut ports) {
        let mut read = Vec::new();
        while let Some(message) = port.try_receive() {
            read.push(message.unwrap());
        }
        assert_eq!(read, (at..=5).collect::<Vec<_>>());
    }
}

#[test]
fn a_copy_of_a_port_reads_on_its_own() {
    let channel = Multicast::new();
    let mut port = channel.port();
    channel.send(1);
    channel.send(2);
    assert_eq!(port.receive().wait(), Ok(1));
    let mut copy = port.clone();
    channel.send(3);
    assert_eq!(
        [port.receive().wait(), port.receive().wait()],
        [Ok(2), Ok(3)]
    );
    assert_eq!(
        [copy.receive().wait(), copy.receive().wait()],
        [Ok(2), Ok(3)]
    );
}

#[test]
fn a_message_wakes_all_ports() {
    let channel = Multicast::new();
    let (mut one, mut two) = (channel.port(), channel.port());
    let (mut one, mut two) = (hand(one.receive()), hand(two.receive()));
    assert!(one.is_pending() && two.is_pending());
    channel.send(1);
    assert_eq!((one.wakes(), two.wakes()), (1, 1));
    assert_eq!((one.ready(), two.ready()), (Ok(1), Ok(1)));
}

#[test]
fn a_message_that_is_not_chosen_stays() {
    let channel = Multicast::new();
    let mut port = channel.port();
    let mut next = 0;
    for n in 0..100 {
        channel.send(n);
        if let Ok(read) = choose((port.receive(), always(Err(Closed)))).wait() {
            assert_eq!(read, next);
            next += 1;
        }
    }
    assert!(next > 0, "the port is chosen sometimes");
    channel.send(100);
    assert_eq!(port.receive().wait(), Ok(next));
}

#[test]
fn ports_learn_of_the_end_when_they_have_read_everything() {
    let channel = Multicast::new();
    let (mut port, mut waits) = (channel.port(), channel.port());
    channel.clone().send(1);
    assert_eq!(waits.receive().wait(), Ok(1));
    let mut waits = hand(waits.receive());
    assert!(waits.is_pending());
    drop(channel);
    assert_eq!(waits.ready(), Err(Closed));
    assert_eq!(port.receive().wait(), Ok(1));
    assert_eq!(port.receive().wait(), Err(Closed));
    assert_eq!(port.try_receive(), Some(Err(Closed)));
}

#[test]
fn a_long_chain_is_freed_without_recursion() {
    const LENGTH: u32 = if cfg!(miri) { 200 } else { 1_000_000 };
    let channel = Multicast::new();
    let port = channel.port();
    (0..LENGTH).for_each(|n| channel.send(n));
    drop(port);
    let port = channel.port();
    (0..LENGTH).for_each(|n| channel.send(n));
    drop(channel);
    drop(port);
}

#[test]
fn a_server_serves_two_kinds_of_calls() {
    let ((add, adds), (get, gets)) = (cml::rpc::<u32, ()>(), cml::rpc::<(), u32>());
    let server = thread::spawn(move || {
        let mut sum = 0;
        loop {
            let is_over = select! {
                wait;
                served = adds.entry(|n| sum += n) => served.is_err(),
                request = gets.receive() => match request {
                    Ok(request) => { request.reply(sum); false }
                    Err(Closed) => true,
                },
            };
            if is_over {
                return;
            }
        }
    });
    for n in 1..=10 {
        Box::pin(add.call(n)).wait().unwrap();
        assert_eq!(Box::pin(get.call(())).wait(), Ok(n * (n + 1) / 2));
    }
    drop(add);
    server.join().unwrap();
}

#[test]
fn a_call_without_a_server_fails() {
    let (client, server) = cml::rpc::<u32, u32>();
    let mut call = hand(client.call(1));
    assert!(call.is_pending());
    let request = server.receive().wait().unwrap();
    assert_eq!(request.argument, 1);
    assert!(call.is_pending());
    drop(request);
    assert_eq!(call.ready(), Err(Closed), "dropped without a reply");
    drop(server);
    assert_eq!(hand(client.call(2)).ready(), Err(Closed));
}
