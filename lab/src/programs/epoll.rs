//! A server without a library: each worker is a thread with an epoll instance of its own, which answers with
//! ready-made bytes. It is a lower bound and not a server: whatever has arrived counts as a whole request.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::dialogue::{Dialogue, plain_answer};

/// Marks an event as one of the listener.
const LISTENER: u64 = u64::MAX;

/// Serves on this many threads; returns only with the error that ended one of them.
///
/// # Errors
/// What the system said.
///
/// # Panics
/// If a thread panicked.
pub fn serve(dialogue: Dialogue, listener: TcpListener, workers: usize) -> io::Result<()> {
    let listener = Arc::new(listener);
    let threads: Vec<_> = (0..workers)
        .map(|_| {
            let listener = Arc::clone(&listener);
            thread::spawn(move || work(dialogue, &listener))
        })
        .collect();
    threads
        .into_iter()
        .try_for_each(|thread| thread.join().expect("a worker of the server panicked"))
}

fn work(dialogue: Dialogue, listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let of_listener = EventFlags::IN | EventFlags::EXCLUSIVE;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), of_listener)?;
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut reports = Vec::with_capacity(1024);
    loop {
        match epoll::wait(&epoll, spare_capacity(&mut reports), None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        for report in reports.drain(..) {
            if report.data.u64() == LISTENER {
                if let Ok((stream, _)) = listener.accept() {
                    let at = free.pop().unwrap_or(streams.len());
                    watch(&epoll, &stream, at)?;
                    if at == streams.len() {
                        streams.push(None);
                    }
                    streams[at] = Some(stream);
                }
                continue;
            }
            let at = usize::try_from(report.data.u64()).expect("it was converted from a usize");
            let answered = streams[at].as_mut().map(|stream| answer(stream, dialogue));
            if let Some(Err(_) | Ok(0)) = answered {
                streams[at] = None;
                free.push(at);
            }
        }
    }
}

fn watch(epoll: &OwnedFd, stream: &TcpStream, at: usize) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    epoll::add(
        epoll,
        stream.as_fd(),
        EventData::new_u64(at as u64),
        EventFlags::IN,
    )?;
    Ok(())
}

/// Answers what has arrived; returns how much that was.
fn answer(stream: &mut TcpStream, dialogue: Dialogue) -> io::Result<usize> {
    let mut place = [0; 1024];
    let count = stream.read(&mut place)?;
    if count > 0 {
        match dialogue {
            Dialogue::Echo => stream.write_all(&place[..count])?,
            Dialogue::Hello => stream.write_all(plain_answer())?,
        }
    }
    Ok(count)
}
