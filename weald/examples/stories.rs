//! The stories of ARCHITECTURE.md, each told a number of times: `cargo xtask paths` counts the functions that one more
//! takes.
//!
//! `cargo run -p weald --example stories -- message 1000`
//!
//! Nothing here is about speed: each story is as short as it can be told, and the same functions run each time.

use std::{
    env,
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use weald::{
    Runtime,
    forest::Forest,
    net::UnixStream,
    process::{self, Inbox, callback},
    sync::oneshot,
    thread,
};

type Told = Result<(), Box<dyn Error + Send + Sync>>;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [story, times] = arguments.as_slice() else {
        return Err("the name of a story and how often it is told".into());
    };
    let (story, times) = (story.clone(), times.parse()?);
    // Only a steal needs a second worker.
    let workers = if story == "steal" { 2 } else { 1 };
    // Nobody is stuck, however busy the machine is.
    let builder = Runtime::builder().stuck_after(Duration::from_secs(60));
    let runtime = builder.workers(workers).build()?;
    runtime.block_on(async move { weald::spawn(async move { tell(&story, times).await }).await? })
}

async fn tell(story: &str, times: u32) -> Told {
    match story {
        "yield" => {
            yields(times).await;
            Ok(())
        }
        "message" => messages(times).await,
        "wait" => waits(times).await,
        "steal" => {
            steals(times);
            Ok(())
        }
        "readiness" => readiness(times).await,
        "callback" => callbacks(times).await,
        "commit" => commits(times).await,
        _ => Err(format!("no story is called {story}").into()),
    }
}

/// A part of the others: a unit that yields lets the unit that it woke run.
async fn yields(times: u32) {
    for _ in 0..times {
        weald::yield_now().await;
    }
}

/// A message to a process that waits for it.
async fn messages(times: u32) -> Told {
    let receiver = process::spawn(async move |mut inbox: Inbox<u32>| {
        for _ in 0..times {
            inbox.receive().await;
        }
    })?;
    weald::yield_now().await;
    for number in 0..times {
        receiver.pid().send(number);
        weald::yield_now().await;
    }
    receiver.await?;
    Ok(())
}

/// A thread waits, and is woken.
async fn waits(times: u32) -> Told {
    let waiter = thread::Builder::new().spawn(move || (0..times).for_each(|_| thread::park()))?;
    weald::yield_now().await;
    for _ in 0..times {
        waiter.thread().unpark();
        weald::yield_now().await;
    }
    waiter.await?;
    Ok(())
}

/// A half of a fork that another worker takes, and that its forker waits for.
fn steals(times: u32) {
    for _ in 0..times {
        let (begun, left) = (AtomicBool::new(false), AtomicBool::new(false));
        weald::join(
            || {
                while !begun.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                left.store(true, Ordering::Release);
            },
            || {
                begun.store(true, Ordering::Release);
                while !left.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                // Long enough that the other half has ended, and its thread has looked for this one.
                (0..500).for_each(|_| std::hint::spin_loop());
            },
        );
    }
}

/// A descriptor becomes ready while the worker sleeps.
async fn readiness(times: u32) -> Told {
    let (here, there) = UnixStream::pair()?;
    let echo = weald::spawn(async move {
        let mut byte = [0];
        for _ in 0..times {
            there.read_exact(&mut byte).await?;
            there.write_all(&byte).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let mut byte = [0];
    for _ in 0..times {
        here.write_all(&byte).await?;
        here.read_exact(&mut byte).await?;
    }
    echo.await??;
    Ok(())
}

/// A callback that runs in its turn.
async fn callbacks(times: u32) -> Told {
    for _ in 0..times {
        let (sender, mut called) = oneshot::channel();
        callback::spawn(move || {
            let _sent = sender.send(());
        })
        .detach();
        called.receive().await?;
    }
    Ok(())
}

/// A commit of one change to a tree in memory.
async fn commits(times: u32) -> Told {
    let tree = Forest::new().create("story").await?;
    for number in 0..times {
        let mut edit = tree.edit();
        edit.put_attribute(edit.root(), "number", number.to_string())?;
        edit.commit().await?;
    }
    Ok(())
}
