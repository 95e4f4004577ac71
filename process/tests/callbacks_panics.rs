//! Closures whose destructors panic: in a cancel, at the owner's end, at the end of a loop, at shutdown. The panics
//! harm no other code, and are reported.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{sync::mpsc, time::Duration};

use tools::{Drops, Token, on_each, runtime, until, watch};
use weald_kernel::sleep;
use weald_process::{
    self as process, Inbox,
    callback::{self, Next, Owner, When, once, rounds},
};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

/// Panics when it is dropped, unless that would end the program.
struct Bomb(#[expect(dead_code, reason = "it counts its drop")] Token);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a destructor of the closure panics");
        }
    }
}

#[test]
fn a_cancel_survives_the_destructor_of_the_closure() {
    on_each(|runtime| {
        let drops = Drops::default();
        let handle = runtime.block_on(async {
            let bomb = Bomb(drops.token());
            once(Owner::runtime(), When::Ready, move || drop(bomb)).detach();
            let bomb = Bomb(drops.token());
            callback::after(HOUR, move || drop(bomb))
        });
        assert!(handle.cancel());
        until(|| drops.count() == 2);
    });
}

#[test]
fn the_end_of_an_owner_reaches_every_closure() {
    on_each(|runtime| {
        let drops = Drops::default();
        let tokens = drops.clone();
        runtime.block_on(async {
            let owner = process::spawn(async move |_: Inbox<()>| {
                for _ in 0..20 {
                    let bomb = Bomb(tokens.token());
                    callback::after(HOUR, move || drop(bomb)).detach();
                }
            });
            owner.unwrap().await.unwrap();
        });
        // The join may return a moment before the last closure of the owner is dropped.
        until(|| drops.count() == 20);
        assert_eq!(drops.made(), 20);
    });
}

#[test]
fn a_loop_that_is_over_drops_its_closure_and_its_neighbours_keep_running() {
    on_each(|runtime| {
        let drops = Drops::default();
        let (sender, ran) = mpsc::channel();
        runtime.block_on(async {
            let bomb = Bomb(drops.token());
            let over = rounds(Owner::runtime(), When::Ready, move || {
                let _bomb = &bomb;
                Next::Ended
            });
            over.detach();
            once(Owner::runtime(), When::Ready, move || {
                sender.send(()).unwrap();
            })
            .detach();
        });
        ran.recv().unwrap();
        until(|| drops.count() == 1);
    });
}

#[test]
fn a_payload_whose_destructor_panics_too_ends_its_callback_alone() {
    on_each(|runtime| {
        let drops = Drops::default();
        let token = drops.token();
        runtime.block_on(async {
            let owner = process::spawn(async move |_: Inbox<()>| {
                let (sender, panics) = mpsc::channel();
                Owner::current().on_panic(move |panic| sender.send(panic).unwrap());
                let bomb = Bomb(token);
                callback::spawn(move || std::panic::panic_any(bomb)).detach();
                let (sender, ran) = mpsc::channel();
                callback::after(MS, move || sender.send(()).unwrap()).detach();
                let (mut is_reported, mut has_run) = (false, false);
                while !is_reported || !has_run {
                    is_reported |= panics.try_recv().is_ok();
                    has_run |= ran.try_recv().is_ok();
                    sleep(MS).await;
                }
            });
            owner.unwrap().await.unwrap();
        });
        // The payload is dropped, and its destructor's panic ends there.
        until(|| drops.count() == 1);
    });
}

#[test]
fn a_shutdown_drops_every_closure() {
    let _watch = watch();
    for workers in [1, 2] {
        let (runtime, drops) = (runtime(workers), Drops::default());
        runtime.block_on(async {
            for n in 0..40 {
                let bomb = Bomb(drops.token());
                let when = match n % 2 {
                    0 => When::At(weald_kernel::now() + HOUR),
                    _ => When::Ready,
                };
                once(Owner::runtime(), when, move || drop(bomb)).detach();
            }
        });
        // Those that it has not dropped by its deadline are dropped later.
        runtime.shutdown(Duration::ZERO);
        until(|| drops.count() == 40);
    }
}
