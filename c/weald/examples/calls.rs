//! What `tests/counts/calls.c` does, with the crate itself: what a call of `libweald` costs beside it.

#![allow(clippy::unwrap_used, reason = "a failure is seen at once")]

use std::hint::black_box;

use weald::{
    Runtime, Wait,
    forest::Forest,
    process::{self, Inbox, monitor},
    sync::{Event, Mutex, channel, choose},
    thread,
};

type Message = Box<[u8]>;

fn hello() -> Message {
    Box::from(black_box(b"hello".as_slice()))
}

fn messages(inbox: &mut Inbox<Message>, n: usize) {
    let own = inbox.pid();
    for _ in 0..n {
        own.send(hello());
        drop(inbox.receive().wait());
    }
}

fn processes(n: usize) {
    for _ in 0..n {
        let spawned = process::spawn(async |_: Inbox<Message>| ()).unwrap();
        let pid = spawned.into_pid();
        let _down = monitor(&pid).wait();
    }
}

fn threads(n: usize) {
    for _ in 0..n {
        thread::spawn(|| ()).wait().unwrap();
    }
}

fn channels(n: usize) {
    let (sender, receiver) = channel::unbounded();
    for _ in 0..n {
        sender.send(hello()).wait().unwrap();
        drop(receiver.receive().wait());
    }
}

fn selects(n: usize) {
    let (first, second) = (channel::unbounded(), channel::unbounded());
    for i in 0..n {
        let sender = if i % 2 == 0 { &first.0 } else { &second.0 };
        sender.send(hello()).wait().unwrap();
        let events = [&first.1, &second.1].map(|it| it.receive().boxed());
        let _received = choose(Vec::from(events)).wait();
    }
}

fn locks(n: usize) {
    let mutex = Mutex::new(());
    for _ in 0..n {
        drop(black_box(&mutex).lock().wait());
    }
}

fn trees(commits: usize, reads: usize) {
    let tree = Forest::new().create("counts").wait().unwrap();
    let root = tree.view().tree().root().id();
    for _ in 0..commits {
        let mut edit = tree.edit();
        edit.put_attribute(root, "text", b"hello").unwrap();
        edit.commit().wait().unwrap();
    }
    let view = tree.snapshot();
    for _ in 0..reads {
        let node = view.tree().node(black_box(root)).unwrap();
        black_box(Message::from(node.get("text").unwrap()));
    }
}

fn counted(inbox: &mut Inbox<Message>, what: &str, n: usize) {
    match what {
        "messages" => messages(inbox, n),
        "processes" => processes(n),
        "threads" => threads(n),
        "channels" => channels(n),
        "selects" => selects(n),
        "locks" => locks(n),
        "reads" => trees(1, n),
        "commits" => trees(n, 1),
        _ => panic!("there is no such call"),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap();
    let n = arguments.next().unwrap().parse().unwrap();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let spawn = || process::spawn(async move |mut inbox| counted(&mut inbox, &what, n));
    let spawned = runtime.block_on(async { spawn() });
    runtime.block_on(spawned.unwrap()).unwrap();
}
