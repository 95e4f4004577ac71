//! The visitors of a measured board: many connections, one thread, one epoll instance, requests that differ, and
//! answers of any length.
//!
//! Invariants: a connection has at most one request in flight; every answer is read to its end, and one that is not
//! right is counted as an error. A request with a rate is asked when it is due, for which a timer wakes this thread: a
//! wait of epoll is rounded up to a millisecond, which would be counted as the server's. One that was due earlier than
//! it could be sent has waited since it was due. The visitors of a visit take turns. One whose connection the server
//! closes after a while without a request connects again, as any client does; also if its next request crosses the
//! close. It sends that again, and the time runs on.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::sockopt::set_socket_linger;

use super::alarm::{Alarm, timespec};

/// A server that answers nothing for this long is given up: the first look at a version on the disk takes long.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// A server may close a connection on which nothing was asked since its last answer for this long; sooner it is an
/// error, or a server that keeps no connection open would be measured as if it did.
const KEPT: Duration = Duration::from_secs(5);
/// How many events are taken from epoll at once.
const REPORTS: usize = 1024;
/// How much is read at once.
const PLACE: usize = 64 << 10;
/// How long visitors that stay awake look for an answer before they sleep.
const AWAKE: Duration = Duration::from_micros(200);
/// What tells that the timer has ended, in place of a visitor.
const ALARM: u64 = u64::MAX;

/// All connections to one server.
pub struct Visitors {
    address: SocketAddr,
    epoll: OwnedFd,
    /// Ends when the next request is due.
    alarm: Alarm,
    visitors: Vec<Visitor>,
    /// Whether they look for answers for a while before they sleep.
    stay_awake: bool,
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
    /// When the last request was due, or when it connected.
    asked: Instant,
    /// When the last answer was complete, or when it connected.
    quiet_since: Instant,
    /// Which visit asked; `None` if nothing is in flight.
    visit: Option<usize>,
    /// The request in flight, if it may have crossed a close that is no error; else empty.
    crossing: Vec<u8>,
    answer: Vec<u8>,
}

/// How far a visit is.
struct Course {
    begun: Instant,
    asked: usize,
    /// The one that has waited longest comes first.
    idle: VecDeque<usize>,
    visited: Visited,
}

impl Visitors {
    /// This many connections to a server.
    ///
    /// # Errors
    /// A sentence, if the system refuses.
    pub fn connect(address: SocketAddr, count: usize) -> Result<Self, String> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let epoll = epoll.map_err(|error| format!("Cannot create an epoll instance: {error}."))?;
        let alarm = Alarm::new(&epoll, ALARM);
        let alarm = alarm.map_err(|error| format!("Cannot create a timer: {error}."))?;
        let visitors = (0..count).map(|at| Visitor::connect(address, &epoll, at));
        Ok(Self {
            address,
            visitors: visitors.collect::<Result<_, _>>()?,
            epoll,
            alarm,
            stay_awake: false,
            reports: Vec::with_capacity(REPORTS),
            request: Vec::new(),
            place: vec![0; PLACE],
        })
    }

    /// The visitors look for answers without sleeping, while they ask as soon as they are answered. Else a server that
    /// takes longer for an answer finds them asleep more often, and its processor time has the time to wake them. A
    /// processor must be free for that.
    pub fn stay_awake(&mut self) {
        self.stay_awake = true;
    }

    /// One request on the first connection, and the whole answer.
    ///
    /// # Errors
    /// A sentence, if it is refused, or not answered.
    pub fn once(&mut self, request: &[u8]) -> Result<Vec<u8>, String> {
        self.send(0, (0, Instant::now()), request)?;
        let mut is_answered = false;
        while !is_answered {
            self.wait(TIME_LIMIT)?;
            let mut reports = std::mem::take(&mut self.reports);
            for report in reports.drain(..) {
                // Of the others, at most their ends are heard.
                is_answered |= self.hear(index(&report))?.is_some();
            }
            self.reports = reports;
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
        self.hear_ends()?;
        let begun = Instant::now();
        let mut courses: Vec<Course> = visits
            .iter()
            .map(|visit| Course::new(begun, visit))
            .collect();
        loop {
            let is_over = courses[0].visited.times.len() >= requests;
            let in_flight = courses.iter().any(Course::is_in_flight);
            if is_over && !in_flight {
                return Ok(courses.into_iter().map(|course| course.visited).collect());
            }
            let mut next: Option<Instant> = None;
            for at in 0..visits.len() {
                let most = if at == 0 { requests } else { usize::MAX };
                if !is_over {
                    let due =
                        self.ask_what_is_due((at, most), &mut visits[at], &mut courses[at])?;
                    next = next.into_iter().chain(due).min();
                }
            }
            match next {
                Some(due) => {
                    let set = self.alarm.set(due);
                    set.map_err(|error| format!("Cannot set a timer: {error}."))?;
                    self.wait(TIME_LIMIT)?;
                }
                None => self.look()?,
            }
            self.note_answers(visits, &mut courses)?;
        }
    }

    /// Hears which connections the server has closed while nobody visited it: else the next requests would.
    fn hear_ends(&mut self) -> Result<(), String> {
        loop {
            self.wait(Duration::ZERO)?;
            if self.reports.is_empty() {
                return Ok(());
            }
            self.note_answers(&[], &mut [])?;
        }
    }

    /// Lets the visitors of the visit `at` ask what is due, at most `most` requests in all. Returns when the next one
    /// is due, if one that is idle waits for that.
    fn ask_what_is_due(
        &mut self,
        (at, most): (usize, usize),
        visit: &mut Visit<'_>,
        course: &mut Course,
    ) -> Result<Option<Instant>, String> {
        while course.asked < most && !course.idle.is_empty() {
            let now = Instant::now();
            let due = course.due(visit.per_second).unwrap_or(now);
            if due > now {
                return Ok(Some(due));
            }
            let visitor = course.idle.pop_front().expect("one is idle");
            let mut request = std::mem::take(&mut self.request);
            request.clear();
            (visit.ask)(&mut request);
            self.send(visitor, (at, due), &request)?;
            self.request = request;
            course.asked += 1;
        }
        Ok(None)
    }

    fn send(
        &mut self,
        at: usize,
        (visit, asked): (usize, Instant),
        request: &[u8],
    ) -> Result<(), String> {
        let visitor = &mut self.visitors[at];
        (visitor.visit, visitor.asked) = (Some(visit), asked);
        visitor.crossing.clear();
        if visitor.is_quiet() {
            visitor.crossing.extend_from_slice(request);
        }
        match visitor.stream.write(request) {
            Ok(written) if written == request.len() => Ok(()),
            Ok(_) => Err("A request did not fit into an empty socket.".to_owned()),
            Err(_closed) if visitor.may_be_closed() => self.connect_again(at),
            Err(error) => Err(format!("A request cannot be sent: {error}.")),
        }
    }

    /// In place of a connection that the server has closed. A request that has crossed the close is sent again: once,
    /// because the new connection was not quiet before it.
    fn connect_again(&mut self, at: usize) -> Result<(), String> {
        let new = Visitor::connect(self.address, &self.epoll, at)?;
        let old = std::mem::replace(&mut self.visitors[at], new);
        match old.visit {
            Some(visit) => self.send(at, (visit, old.asked), &old.crossing),
            None => Ok(()),
        }
    }

    fn note_answers(&mut self, visits: &[Visit<'_>], courses: &mut [Course]) -> Result<(), String> {
        let mut reports = std::mem::take(&mut self.reports);
        for report in reports.drain(..) {
            let at = index(&report);
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
            courses[visit].idle.push_back(at);
        }
        self.reports = reports;
        Ok(())
    }

    /// How long the answer took, if it is complete. Connects again, if the server may have closed the connection.
    fn hear(&mut self, at: usize) -> Result<Option<Duration>, String> {
        let visitor = &mut self.visitors[at];
        match visitor.stream.read(&mut self.place) {
            Ok(count @ 1..) => visitor.answer.extend_from_slice(&self.place[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            _end if visitor.may_be_closed() => {
                self.connect_again(at)?;
                return Ok(None);
            }
            Ok(_) => return Err(visitor.closed()),
            Err(error) => return Err(format!("An answer cannot be read: {error}.")),
        }
        let whole = length(&visitor.answer)?;
        Ok(match whole.map(|whole| visitor.answer.len().cmp(&whole)) {
            Some(std::cmp::Ordering::Equal) => {
                visitor.quiet_since = Instant::now();
                Some(visitor.quiet_since.duration_since(visitor.asked))
            }
            Some(std::cmp::Ordering::Greater) => {
                return Err("An answer is longer than it says.".to_owned());
            }
            _ => None,
        })
    }

    /// Waits for what comes next, at first without sleeping, if that was asked for.
    fn look(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        while self.stay_awake && begun.elapsed() < AWAKE {
            self.wait(Duration::ZERO)?;
            if !self.reports.is_empty() {
                return Ok(());
            }
        }
        self.wait(TIME_LIMIT)
    }

    fn wait(&mut self, time_limit: Duration) -> Result<(), String> {
        let time = timespec(time_limit);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut self.reports), Some(&time)) {
                Ok(0) if time_limit == TIME_LIMIT => {
                    return Err("The server has stopped answering.".to_owned());
                }
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("Cannot wait for events: {error}.")),
            }
        }
        self.reports.retain(|report| report.data.u64() != ALARM);
        Ok(())
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
    /// The visitor with this index.
    fn connect(address: SocketAddr, epoll: &OwnedFd, at: usize) -> Result<Self, String> {
        let connect = || {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            // The port is free again at once, for the next of many runs.
            set_socket_linger(&stream, Some(Duration::ZERO))?;
            let data = epoll::EventData::new_u64(at as u64);
            epoll::add(epoll, &stream, data, epoll::EventFlags::IN)?;
            Ok(stream)
        };
        let stream =
            connect().map_err(|error: io::Error| format!("A visitor cannot connect: {error}."))?;
        let now = Instant::now();
        Ok(Self {
            stream,
            asked: now,
            quiet_since: now,
            visit: None,
            crossing: Vec::new(),
            answer: Vec::new(),
        })
    }

    /// Whether nothing was asked for as long as a server must keep the connection.
    fn is_quiet(&self) -> bool {
        self.quiet_since.elapsed() >= KEPT
    }

    /// Whether a server that has closed the connection does what servers do. A request in flight does not make it
    /// quiet, however long the answer takes, and a server that has begun an answer has not closed before the request.
    fn may_be_closed(&self) -> bool {
        self.answer.is_empty()
            && match self.visit {
                Some(_) => !self.crossing.is_empty(),
                None => self.is_quiet(),
            }
    }

    /// What is said of a connection that should be open.
    fn closed(&self) -> String {
        match self.visit {
            Some(_) => format!(
                "The server has closed a connection {:.1} s after a request was due, when {} bytes of the answer had \
                 come.",
                self.asked.elapsed().as_secs_f64(),
                self.answer.len(),
            ),
            None => format!(
                "The server has closed a connection on which nothing was asked for only {:.1} s.",
                self.quiet_since.elapsed().as_secs_f64(),
            ),
        }
    }
}

/// Which visitor an event is about.
fn index(report: &epoll::Event) -> usize {
    usize::try_from(report.data.u64()).expect("it was converted from a usize")
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
mod tests;
