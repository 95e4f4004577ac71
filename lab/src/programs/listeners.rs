//! Many readers of one stream of server-sent events, on one thread: how long an event takes to reach all of them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::sockopt::set_socket_linger;

/// A server that sends nothing for this long is given up.
const TIME_LIMIT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};
/// How many connect before their first bytes are awaited: fewer than a server's backlog.
const AT_ONCE: usize = 100;
/// What an event has once.
const EVENT: &[u8] = b"\nevent: ";
/// What a stream begins with, before there is an event.
const BEGINNING: &[u8] = b"retry: ";

/// Connections that have asked for events.
pub struct Listeners {
    epoll: OwnedFd,
    listeners: Vec<EventReader>,
}

struct EventReader {
    stream: TcpStream,
    /// What came that is not counted yet.
    heard: Vec<u8>,
    has_begun: bool,
    events: usize,
}

impl Listeners {
    /// This many readers of the stream at `path`, each of which has its first bytes.
    ///
    /// # Errors
    /// A sentence, if the system or the server refuses.
    pub fn join(address: SocketAddr, path: &str, count: usize) -> Result<Self, String> {
        let refused = |error: io::Error| format!("A reader of events cannot connect: {error}.");
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        let listeners = Vec::with_capacity(count);
        let mut all = Self { epoll, listeners };
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        while all.listeners.len() < count {
            let first = all.listeners.len();
            for at in first..count.min(first + AT_ONCE) {
                let listener = EventReader::connect(address, &request).map_err(refused)?;
                let (data, flags) = (epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN);
                epoll::add(&all.epoll, &listener.stream, data, flags)
                    .map_err(|error| refused(error.into()))?;
                all.listeners.push(listener);
            }
            let mut waiting = all.listeners.len() - first;
            let mut refusal = None;
            all.listen(|listener| {
                if !listener.has_begun && contains(&listener.heard, BEGINNING) {
                    listener.has_begun = true;
                    waiting -= 1;
                }
                refusal = listener.refusal();
                waiting > 0 && refusal.is_none()
            })?;
            if let Some(status) = refusal {
                return Err(format!("The server refuses a reader of events: {status}."));
            }
        }
        Ok(all)
    }

    /// Waits until each has heard of this many events since the first, and returns when the last one had.
    ///
    /// # Errors
    /// A sentence, if a stream ends, has more events than that, or the events do not come.
    pub fn hear(&mut self, events: usize) -> Result<Instant, String> {
        self.listeners.iter_mut().for_each(EventReader::count);
        let all = self.listeners.iter();
        let mut waiting = all.clone().filter(|it| it.events < events).count();
        let mut is_doubled = all.clone().any(|it| it.events > events);
        if waiting > 0 && !is_doubled {
            self.listen(|listener| {
                let before = listener.events;
                listener.count();
                is_doubled |= listener.events > events;
                waiting -= usize::from(before < events && listener.events >= events);
                waiting > 0 && !is_doubled
            })?;
        }
        match is_doubled {
            false => Ok(Instant::now()),
            true => Err("A reader has heard of a message twice.".to_owned()),
        }
    }

    /// Reads what comes, until `goes_on` says no.
    fn listen(&mut self, mut goes_on: impl FnMut(&mut EventReader) -> bool) -> Result<(), String> {
        let mut place = [0; 4096];
        let mut reports: Vec<epoll::Event> = Vec::with_capacity(1024);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut reports), Some(&TIME_LIMIT)) {
                Ok(0) => return Err("The server has stopped sending events.".to_owned()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("Cannot wait for events: {error}.")),
            }
            for report in reports.drain(..) {
                let at = usize::try_from(report.data.u64()).expect("it was converted from a usize");
                let listener = &mut self.listeners[at];
                match listener.stream.read(&mut place) {
                    Ok(0) => return Err("The server has ended a stream of events.".to_owned()),
                    Ok(count) => listener.heard.extend_from_slice(&place[..count]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(format!("A stream cannot be read: {error}.")),
                }
                if !goes_on(listener) {
                    return Ok(());
                }
            }
        }
    }
}

impl EventReader {
    fn connect(address: SocketAddr, request: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(request.as_bytes())?;
        stream.set_nonblocking(true)?;
        set_socket_linger(&stream, Some(Duration::ZERO))?;
        Ok(Self {
            stream,
            heard: Vec::new(),
            has_begun: false,
            events: 0,
        })
    }

    /// The status line, if it has come and is no success.
    fn refusal(&self) -> Option<String> {
        let line = self.heard.split(|byte| *byte == b'\r').next()?;
        let is_refused =
            !self.has_begun && line.len() < self.heard.len() && !line.starts_with(b"HTTP/1.1 200 ");
        is_refused.then(|| String::from_utf8_lossy(line).into_owned())
    }

    /// Counts the events that came, and keeps what may be the beginning of the next one.
    fn count(&mut self) {
        let found: Vec<usize> = (0..self.heard.len())
            .filter(|at| self.heard[*at..].starts_with(EVENT))
            .collect();
        self.events += found.len();
        let counted = found.last().map_or(0, |last| last + EVENT.len());
        let kept = counted.max(self.heard.len().saturating_sub(EVENT.len() - 1));
        self.heard.drain(..kept);
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server whose streams have this many events, in pieces of this many bytes.
    fn serve(events: usize, piece: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let streams: Vec<_> = listener.incoming().take(3).map(Result::unwrap).collect();
            let event = "id: 1\nevent: change\ndata: {}\n\n".repeat(events);
            let text = format!("HTTP/1.1 200 OK\r\n\r\nretry: 2000\n\n{event}");
            for piece in text.as_bytes().chunks(piece) {
                for mut stream in &streams {
                    stream.write_all(piece).unwrap();
                }
            }
            // They stay open until the last one has closed.
            for mut stream in streams {
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        address
    }

    #[test]
    fn each_event_is_heard_once() {
        let mut listeners = Listeners::join(serve(2, 7), "/", 3).unwrap();
        assert!(listeners.hear(2).is_ok());
    }

    #[test]
    fn an_event_that_comes_twice_is_an_error() {
        let mut listeners = Listeners::join(serve(2, 1000), "/", 3).unwrap();
        let sentence = listeners.hear(1).unwrap_err();
        assert!(sentence.contains("twice"), "{sentence}");
    }

    #[test]
    fn a_refused_reader_is_an_error_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .write_all(b"HTTP/1.1 429 Too Many Requests\r\n\r\n")
                .unwrap();
            // It stays open, as a connection that may have a next request.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let sentence = Listeners::join(address, "/", 1).err().unwrap();
        assert!(sentence.contains("429 Too Many"), "{sentence}");
    }
}
