//! Tokio: a task for each connection that echoes.

use std::net;

use common::fail;
use common::programs::dialogue::Dialogue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) fn serve(dialogue: Dialogue, listener: net::TcpListener, workers: usize) -> ! {
    if dialogue != Dialogue::Echo {
        fail("Tokio has no HTTP: measure hyper.");
    }
    crate::on_tokio(listener, workers, accept)
}

async fn accept(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(give_back(stream));
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
