//! The ring: processes that pass a token to the next one, round after round. The end of one ends all: they are linked.
//!
//! `cargo run -p weald-process --example ring`

use std::error::Error;

use weald_kernel::Runtime;
use weald_process::{self as process, ExitReason, Inbox, Pid, link, monitor};

const PROCESSES: usize = 1_000;
const ROUNDS: usize = 100;

/// How often the token is still passed on.
struct Token(usize);

/// Passes the token on until it is used up.
async fn pass(mut inbox: Inbox<Token>, next: Pid<Token>) {
    link(&next);
    loop {
        match inbox.receive().await {
            Token(0) => process::exit(ExitReason::Shutdown),
            Token(left) => next.send(Token(left - 1)),
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    // The first one learns its successor, the last one, when that exists.
    let (sender, mut receiver) = weald_sync::oneshot::channel();
    let first = process::spawn(async move |inbox: Inbox<Token>| {
        if let Ok(next) = receiver.receive().await {
            pass(inbox, next).await;
        }
    })?
    .into_pid();
    let mut next = first.clone();
    for _ in 1..PROCESSES {
        let after = next;
        next = process::spawn(move |inbox| pass(inbox, after))?.into_pid();
    }
    let down = monitor(&first);
    let _ended = sender.send(next);
    first.send(Token(PROCESSES * ROUNDS));
    println!("{}", down.await);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    Runtime::builder().build()?.block_on(run())
}

#[test]
fn the_token_goes_round() {
    Runtime::test(1).block_on(run()).unwrap();
}
