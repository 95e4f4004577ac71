//! The visitors of a measured board: many connections, one thread, one epoll instance, requests that differ, and
//! answers of any length.
//!
//! Invariants: a connection has at most one request in flight; every answer is read to its end, and one that is not
//! right is counted as an error. A request that was due earlier than it could be sent has waited since it was due.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::sockopt::set_socket_linger;

/// A server that answers nothing for this long is given up: the first look at a version on the disk takes long.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// How long a wait is in which another request may become due.
const SHORT: Duration = Duration::from_micros(500);
/// How many events are taken from epoll at once.
const REPORTS: usize = 1024;
/// How much is read at once.
const PLACE: usize = 64 << 10;

/// All connections to one server.
pub struct Visitors {
    epoll: OwnedFd,
    visitors: Vec<Visitor>,
    reports: Vec<epoll::Event>,
    request: Vec<u8>,
    place: Vec<u8>,
}

/// What some of the visitors do.
pub struct Visit<'a> {
    /// Which of them.
    pub visitors: Range<usize>,
    /// Appends the next request.
    pub ask: &'a mut dyn FnMut(&mut Vec<u8>),
    /// Whether an answer may be right.
    pub accepts: fn(&[u8]) -> bool,
    /// How many requests per second they make together; `None`: each asks as soon as it is answered.
    pub per_second: Option<f64>,
}

/// The outcome of a [`Visit`].
#[derive(Debug, Default)]
pub struct Visited {
    /// How long each answer took.
    pub times: Vec<Duration>,
    /// How many answers were not right.
    pub errors: usize,
    /// The bytes of all answers.
    pub bytes: usize,
}

struct Visitor {
    stream: TcpStream,
    asked: Instant,
    /// Which visit asked; `None` if nothing is in flight.
    visit: Option<usize>,
    answer: Vec<u8>,
}

/// How far a visit is.
struct Course {
    begun: Instant,
    asked: usize,
    idle: Vec<usize>,
    visited: Visited,
}

impl Visitors {
    /// This many connections to a server.
    ///
    /// # Errors
    /// A sentence, if the system refuses.
    pub fn connect(address: SocketAddr, count: usize) -> Result<Self, String> {
        let refused = |error: io::Error| format!("A visitor cannot connect: {error}.");
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        let mut visitors = Vec::with_capacity(count);
        for at in 0..count {
            let visitor = Visitor::connect(address).map_err(refused)?;
            let (data, flags) = (epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN);
            epoll::add(&epoll, &visitor.stream, data, flags)
                .map_err(|error| refused(error.into()))?;
            visitors.push(visitor);
        }
        Ok(Self {
            epoll,
            visitors,
            reports: Vec::with_capacity(REPORTS),
            request: Vec::new(),
            place: vec![0; PLACE],
        })
    }

    /// One request on the first connection, and the whole answer.
    ///
    /// # Errors
    /// A sentence, if it is refused, or not answered.
    pub fn once(&mut self, request: &[u8]) -> Result<Vec<u8>, String> {
        self.send(0, (0, Instant::now()), request)?;
        loop {
            self.wait(TIME_LIMIT)?;
            self.reports.clear();
            if self.hear(0)?.is_some() {
                break;
            }
        }
        let visitor = &mut self.visitors[0];
        visitor.visit = None;
        let answer = std::mem::take(&mut visitor.answer);
        match answer.starts_with(b"HTTP/1.1 2") {
            true => Ok(answer),
            false => {
                let shown = String::from_utf8_lossy(&answer);
                Err(format!("The server refuses a request: {shown}"))
            }
        }
    }

    /// Visits the server, until the first visit has had this many answers; what the others have in flight then is
    /// waited for.
    ///
    /// # Errors
    /// A sentence, if a connection ends, or an answer cannot be understood or does not come.
    pub fn visit(
        &mut self,
        visits: &mut [Visit<'_>],
        requests: usize,
    ) -> Result<Vec<Visited>, String> {
        let begun = Instant::now();
        let mut courses: Vec<Course> = visits
            .iter()
            .map(|visit| Course::new(begun, visit))
            .collect();
        let is_paced = visits.iter().any(|visit| visit.per_second.is_some());
        let time_limit = if is_paced { SHORT } else { TIME_LIMIT };
        loop {
            let is_over = courses[0].visited.times.len() >= requests;
            let in_flight = courses.iter().any(Course::is_in_flight);
            if is_over && !in_flight {
                return Ok(courses.into_iter().map(|course| course.visited).collect());
            }
            for at in 0..visits.len() {
                let most = if at == 0 { requests } else { usize::MAX };
                if !is_over {
                    self.ask_what_is_due((at, most), &mut visits[at], &mut courses[at])?;
                }
            }
            self.wait(time_limit)?;
            self.note_answers(visits, &mut courses)?;
        }
    }

    /// Lets the visitors of the visit `at` ask what is due, at most `most` requests in all.
    fn ask_what_is_due(
        &mut self,
        (at, most): (usize, usize),
        visit: &mut Visit<'_>,
        course: &mut Course,
    ) -> Result<(), String> {
        while course.asked < most && !course.idle.is_empty() {
            let now = Instant::now();
            let due = course.due(visit.per_second).unwrap_or(now);
            if due > now {
                return Ok(());
            }
            let visitor = course.idle.pop().expect("one is idle");
            let mut request = std::mem::take(&mut self.request);
            request.clear();
            (visit.ask)(&mut request);
            self.send(visitor, (at, due), &request)?;
            self.request = request;
            course.asked += 1;
        }
        Ok(())
    }

    fn send(
        &mut self,
        at: usize,
        (visit, asked): (usize, Instant),
        request: &[u8],
    ) -> Result<(), String> {
        let visitor = &mut self.visitors[at];
        (visitor.visit, visitor.asked) = (Some(visit), asked);
        match visitor.stream.write(request) {
            Ok(written) if written == request.len() => Ok(()),
            Ok(_) => Err("A request did not fit into an empty socket.".to_owned()),
            Err(error) => Err(format!("A request cannot be sent: {error}.")),
        }
    }

    fn note_answers(&mut self, visits: &[Visit<'_>], courses: &mut [Course]) -> Result<(), String> {
        let mut reports = std::mem::take(&mut self.reports);
        for report in reports.drain(..) {
            let at = usize::try_from(report.data.u64()).expect("it was converted from a usize");
            let Some(time) = self.hear(at)? else { continue };
            let visitor = &mut self.visitors[at];
            let visit = visitor.visit.take().ok_or("An answer came unasked.")?;
            let visited = &mut courses[visit].visited;
            let is_right = visitor.answer.starts_with(b"HTTP/1.1 2")
                && (visits[visit].accepts)(&visitor.answer);
            visited.times.push(time);
            visited.errors += usize::from(!is_right);
            visited.bytes += visitor.answer.len();
            visitor.answer.clear();
            courses[visit].idle.push(at);
        }
        self.reports = reports;
        Ok(())
    }

    /// How long the answer took, if it is complete.
    fn hear(&mut self, at: usize) -> Result<Option<Duration>, String> {
        let visitor = &mut self.visitors[at];
        match visitor.stream.read(&mut self.place) {
            Ok(0) => return Err("The server has closed a connection.".to_owned()),
            Ok(count) => visitor.answer.extend_from_slice(&self.place[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(format!("An answer cannot be read: {error}.")),
        }
        let whole = length(&visitor.answer)?;
        Ok(match whole.map(|whole| visitor.answer.len().cmp(&whole)) {
            Some(std::cmp::Ordering::Equal) => Some(visitor.asked.elapsed()),
            Some(std::cmp::Ordering::Greater) => {
                return Err("An answer is longer than it says.".to_owned());
            }
            _ => None,
        })
    }

    fn wait(&mut self, time_limit: Duration) -> Result<(), String> {
        let time = Timespec {
            tv_sec: i64::try_from(time_limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time_limit.subsec_nanos()),
        };
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut self.reports), Some(&time)) {
                Ok(0) if time_limit == TIME_LIMIT => {
                    return Err("The server has stopped answering.".to_owned());
                }
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("Cannot wait for events: {error}.")),
            }
        }
    }
}

impl Course {
    fn new(begun: Instant, visit: &Visit<'_>) -> Self {
        Self {
            begun,
            asked: 0,
            idle: visit.visitors.clone().collect(),
            visited: Visited::default(),
        }
    }

    fn is_in_flight(&self) -> bool {
        self.visited.times.len() < self.asked
    }

    /// When the next request is due, if there is a rate.
    fn due(&self, per_second: Option<f64>) -> Option<Instant> {
        let seconds = self.asked as f64 / per_second?;
        Some(self.begun + Duration::from_secs_f64(seconds))
    }
}

impl Visitor {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        // The port is free again at once, for the next of many runs.
        set_socket_linger(&stream, Some(Duration::ZERO))?;
        Ok(Self {
            stream,
            asked: Instant::now(),
            visit: None,
            answer: Vec::new(),
        })
    }
}

/// The length of the answer that begins with these bytes, if its head is complete.
fn length(answer: &[u8]) -> Result<Option<usize>, String> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(head) = answer.windows(END.len()).position(|it| it == END) else {
        return Ok(None);
    };
    let lines = answer[..head].split(|byte| *byte == b'\n');
    let mut value = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_length = line[..colon].eq_ignore_ascii_case(b"content-length");
        let value = std::str::from_utf8(&line[colon + 1..]).ok()?;
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let body = value.next();
    let body = body.ok_or("An answer does not say how long it is (content-length).")?;
    Ok(Some(head + END.len() + body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A server that answers each request with its path, in two pieces; `/no` is refused.
    fn serve() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut request = [0; 64];
                    while let Ok(count @ 1..) = stream.read(&mut request) {
                        let text = String::from_utf8_lossy(&request[..count]).into_owned();
                        let path = text.split(' ').nth(1).unwrap().to_owned();
                        let status = if path == "/no" { "404 No" } else { "200 OK" };
                        let length = path.len();
                        let head = format!("HTTP/1.1 {status}\r\nContent-length: {length}\r\n\r\n");
                        stream.write_all(head.as_bytes())?;
                        thread::yield_now();
                        stream.write_all(path.as_bytes())?;
                    }
                    Ok::<_, io::Error>(())
                });
            }
        });
        address
    }

    #[test]
    fn answers_of_any_length_are_read_and_wrong_ones_counted() {
        let mut visitors = Visitors::connect(serve(), 4).unwrap();
        assert!(visitors.once(b"GET /tea x").unwrap().ends_with(b"/tea"));
        assert!(visitors.once(b"GET /no x").unwrap_err().contains("404"));
        let mut number = 0;
        let mut ask = |request: &mut Vec<u8>| {
            number += 1;
            let path = if number % 10 == 0 {
                "no".to_owned()
            } else {
                "a".repeat(number)
            };
            request.extend_from_slice(format!("GET /{path} x").as_bytes());
        };
        let mut others = |request: &mut Vec<u8>| request.extend_from_slice(b"GET /other x");
        let mut visits = [
            Visit {
                visitors: 0..3,
                ask: &mut ask,
                accepts: |answer| !answer.ends_with(b"/a"),
                per_second: None,
            },
            Visit {
                visitors: 3..4,
                ask: &mut others,
                accepts: |answer| answer.ends_with(b"/other"),
                per_second: Some(1e6),
            },
        ];
        let [first, second] = &visitors.visit(&mut visits, 30).unwrap()[..] else {
            panic!("two visits have two outcomes");
        };
        // Three were refused, and one was not accepted.
        assert_eq!((first.times.len(), first.errors), (30, 4));
        assert_eq!(second.errors, 0);
        assert!(!second.times.is_empty());
    }

    #[test]
    fn the_head_says_how_long_an_answer_is() {
        assert_eq!(
            length(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n"),
            Ok(None)
        );
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nab";
        assert_eq!(length(whole), Ok(Some(whole.len() + 3)));
        assert!(length(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nab").is_err());
    }
}
