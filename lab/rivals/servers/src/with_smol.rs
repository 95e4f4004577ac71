//! Smol: a task for each connection that echoes, on an executor with one thread for each worker.

use std::net;
use std::thread;

use common::fail;
use common::programs::dialogue::Dialogue;
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::TcpStream;
use smol::{Async, Executor, future};

pub(crate) fn serve(dialogue: Dialogue, listener: net::TcpListener, workers: usize) -> ! {
    if dialogue != Dialogue::Echo {
        fail("Smol has no HTTP: measure hyper.");
    }
    let executor: &'static Executor<'static> = Box::leak(Box::new(Executor::new()));
    for _ in 1..workers {
        thread::spawn(|| smol::block_on(executor.run(future::pending::<()>())));
    }
    smol::block_on(executor.run(accept(executor, listener)));
    fail("The server has ended.")
}

async fn accept(executor: &'static Executor<'static>, listener: net::TcpListener) {
    let Ok(listener) = Async::new(listener) else {
        fail("The listener cannot be watched.");
    };
    while let Ok((stream, _)) = listener.accept().await {
        executor.spawn(give_back(stream.into())).detach();
    }
}

async fn give_back(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut place = [0; 1024];
    loop {
        match stream.read(&mut place).await? {
            0 => return Ok(()),
            count => stream.write_all(&place[..count]).await?,
        }
    }
}
