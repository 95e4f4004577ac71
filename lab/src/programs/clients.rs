//! The clients of a measured server: many connections, one thread, one epoll instance.
//!
//! Invariant: a connection has at most one request in flight, and every answer is checked, and is as long as the first
//! one. So a server cannot gain by answering wrongly, and more connections mean more requests at once.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::sockopt::set_socket_linger;

use super::dialogue::Dialogue;

/// A server that answers nothing for this long is given up.
const TIME_LIMIT: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};
/// How many clients connect before their first answers are awaited: fewer than a server's backlog.
const AT_ONCE: usize = 100;
/// How many events are taken from epoll at once.
const REPORTS: usize = 1024;

type Reports = Vec<epoll::Event>;

/// All connections to one server.
pub struct Clients {
    expected: Expected,
    epoll: OwnedFd,
    clients: Vec<Client>,
    reports: Reports,
}

/// What every answer must be.
#[derive(Clone, Copy)]
struct Expected {
    dialogue: Dialogue,
    length: usize,
}

struct Client {
    stream: TcpStream,
    asked: Instant,
    /// The beginning of an answer that arrived in pieces.
    begun: Vec<u8>,
}

impl Clients {
    /// No clients yet, for this dialogue, with answers of this length.
    ///
    /// # Errors
    /// A sentence, if the system has no descriptors left.
    pub fn new(dialogue: Dialogue, length: usize) -> Result<Self, String> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        Ok(Self {
            expected: Expected { dialogue, length },
            epoll: epoll.map_err(|error| format!("Cannot create an epoll instance: {error}."))?,
            clients: Vec::new(),
            reports: Vec::with_capacity(REPORTS),
        })
    }

    /// The answer to one request, on a connection of its own.
    ///
    /// # Errors
    /// A sentence, if the system or the server refuses.
    pub fn ask_once(address: SocketAddr, dialogue: Dialogue) -> Result<Vec<u8>, String> {
        let ask = || {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            stream.write_all(dialogue.request())?;
            let mut answer = Vec::new();
            while !dialogue.has_ended(&answer) {
                let mut place = [0; 4096];
                match stream.read(&mut place)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    count => answer.extend_from_slice(&place[..count]),
                }
            }
            Ok(answer)
        };
        ask().map_err(|error: io::Error| format!("A first request was not answered: {error}."))
    }

    /// Connects until there are `count` clients; each new one has been answered once.
    ///
    /// # Errors
    /// A sentence, if the system or the server refuses.
    pub fn connect(&mut self, address: SocketAddr, count: usize) -> Result<(), String> {
        while self.clients.len() < count {
            let first = self.clients.len();
            let last = count.min(first + AT_ONCE);
            self.join(address, last)?;
            self.talk(first..last, last - first)?;
        }
        Ok(())
    }

    /// Connects until there are `count` clients. The new ones have asked nothing yet.
    ///
    /// # Errors
    /// A sentence, if the system refuses.
    pub fn join(&mut self, address: SocketAddr, count: usize) -> Result<(), String> {
        let refused = |error: io::Error| format!("A client cannot connect: {error}.");
        for at in self.clients.len()..count {
            let client = Client::connect(address).map_err(refused)?;
            let (data, flags) = (epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN);
            let watched = epoll::add(&self.epoll, &client.stream, data, flags);
            watched.map_err(|error| refused(error.into()))?;
            self.clients.push(client);
        }
        Ok(())
    }

    /// Some of the clients make `requests` requests together, each sending its next one as soon as it is
    /// answered. Returns how long each answer took.
    ///
    /// # Errors
    /// A sentence, if a connection ends, or an answer is wrong or does not come.
    pub fn talk(
        &mut self,
        clients: Range<usize>,
        requests: usize,
    ) -> Result<Vec<Duration>, String> {
        let mut times = Vec::with_capacity(requests);
        let mut asked = 0;
        for at in clients.take(requests) {
            self.clients[at].ask(self.expected.dialogue)?;
            asked += 1;
        }
        while times.len() < requests {
            let mut reports = self.wait()?;
            for report in reports.drain(..) {
                let client = &mut self.clients[place(report.data)];
                if let Some(time) = client.hear(self.expected)? {
                    times.push(time);
                    if asked < requests {
                        client.ask(self.expected.dialogue)?;
                        asked += 1;
                    }
                }
            }
            self.reports = reports;
        }
        Ok(times)
    }

    fn wait(&mut self) -> Result<Reports, String> {
        let mut reports = std::mem::take(&mut self.reports);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut reports), Some(&TIME_LIMIT)) {
                Ok(0) => return Err("The server has stopped answering.".to_owned()),
                Ok(_) => return Ok(reports),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("Cannot wait for events: {error}.")),
            }
        }
    }
}

/// The index of the client that an event is about.
fn place(data: epoll::EventData) -> usize {
    usize::try_from(data.u64()).expect("it was converted from a usize")
}

impl Client {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        // The port is free again at once, for the next of many runs.
        set_socket_linger(&stream, Some(Duration::ZERO))?;
        Ok(Self {
            stream,
            asked: Instant::now(),
            begun: Vec::new(),
        })
    }

    fn ask(&mut self, dialogue: Dialogue) -> Result<(), String> {
        self.asked = Instant::now();
        match self.stream.write(dialogue.request()) {
            Ok(written) if written == dialogue.request().len() => Ok(()),
            Ok(_) => Err("A request did not fit into an empty socket.".to_owned()),
            Err(error) => Err(format!("A request cannot be sent: {error}.")),
        }
    }

    /// How long the answer took, if it is complete.
    fn hear(&mut self, expected: Expected) -> Result<Option<Duration>, String> {
        let mut place = [0; 4096];
        let heard = match self.stream.read(&mut place) {
            Ok(0) => {
                let seconds = self.asked.elapsed().as_secs_f64();
                return Err(format!(
                    "The server has closed a connection {seconds:.1} s after its last request."
                ));
            }
            Ok(count) => &place[..count],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(format!("An answer cannot be read: {error}.")),
        };
        let mut joined = std::mem::take(&mut self.begun);
        let answer = match joined.is_empty() {
            true => heard,
            false => {
                joined.extend_from_slice(heard);
                &joined
            }
        };
        if answer.len() < expected.length {
            self.begun = answer.to_vec();
            return Ok(None);
        }
        if answer.len() > expected.length || !expected.dialogue.accepts(answer) {
            let shown = String::from_utf8_lossy(answer);
            return Err(format!(
                "The server's answer is not what it should be: {shown:?}"
            ));
        }
        Ok(Some(self.asked.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A server that answers each request on each connection with the next of these pieces, and closes the
    /// connection after the last one.
    fn serve(pieces: &'static [&'static [u8]]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    for answer in pieces {
                        let mut request = [0; 64];
                        stream.read_exact(&mut request)?;
                        for byte in answer.chunks(40) {
                            stream.write_all(byte)?;
                            stream.flush()?;
                            thread::yield_now();
                        }
                    }
                    Ok::<_, io::Error>(())
                });
            }
        });
        address
    }

    const RIGHT: &[u8] = b"An echo gives back what was said, to the last of sixty-four.####";
    const WRONG: &[u8] = b"An echo gives back what was said, to the last of sixty-three.###";

    #[test]
    fn every_request_is_answered_and_timed() {
        let address = serve(&[RIGHT; 10]);
        let mut clients = Clients::new(Dialogue::Echo, RIGHT.len()).unwrap();
        clients.connect(address, 3).unwrap();
        assert_eq!(clients.talk(0..3, 9).unwrap().len(), 9);
        assert_eq!(clients.talk(0..3, 1).unwrap().len(), 1);
        assert_eq!(clients.talk(0..0, 0).unwrap().len(), 0);
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        let address = serve(&[RIGHT, WRONG]);
        let mut clients = Clients::new(Dialogue::Echo, RIGHT.len()).unwrap();
        clients.connect(address, 1).unwrap();
        let sentence = clients.talk(0..1, 1).unwrap_err();
        assert!(sentence.contains("sixty-three"), "{sentence}");
    }

    #[test]
    fn a_connection_that_ends_is_an_error() {
        let address = serve(&[RIGHT, RIGHT]);
        let mut clients = Clients::new(Dialogue::Echo, RIGHT.len()).unwrap();
        clients.connect(address, 1).unwrap();
        let sentence = clients.talk(0..1, 3).unwrap_err();
        assert!(sentence.starts_with("The server has closed") || sentence.starts_with("A request"));
    }
}
