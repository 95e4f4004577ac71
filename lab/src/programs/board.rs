//! The course of measuring a board: the same requests to every server, whatever it keeps its boards in.
//!
//! A server answers `serve-board workers=N`, and these addresses as docs/board.md has them: `GET` and
//! `POST /api/boards`, `GET /api/boards/{board}`, `POST /api/boards/{board}/messages`,
//! `PUT /api/boards/{board}/messages/{id}`, and the page `GET /b/{board}`. What must be there before is written through
//! them, too.

use std::time::{Duration, Instant};

use super::dialogue::Dialogue;
use super::measure::Figure;
use super::processors::{apart, has_others};
use super::served::{Served, allow_descriptors};
use super::slices::Slices;
use super::visitors::{Visit, Visited, Visitors};

/// How many messages the board that is read has.
const MESSAGES: usize = 10;
/// The readers beside a hot board, and how much is read and written per second.
const READERS: usize = 50;
const READS_PER_S: f64 = 1_000.0;
const WRITES_PER_S: f64 = 10_000.0;

/// How many messages the board that is searched has. Each has a word of its own, the least of which is no beginning of
/// another.
const SEARCHED: usize = 1_000;
const LEAST_WORD: usize = SEARCHED / 10;

/// The path of the board that is read, as JSON.
pub(super) const BENCH: &str = "/api/boards/bench";
/// The path of a search in the board that is searched.
const SEARCH: &str = "/api/boards/searched/search?q=number";

/// A server of boards, and how much is asked of it.
#[derive(Clone, Debug)]
pub struct BoardLoad {
    /// The server's command with its first arguments; see [`Served`].
    pub server: Vec<String>,
    /// Further `key=value` words for the board's server.
    pub words: Vec<String>,
    /// Its number of workers.
    pub workers: usize,
    /// How many connections there are.
    pub connections: usize,
    /// How many requests are measured.
    pub requests: usize,
    /// No further slice begins after this long.
    pub limit: Option<Duration>,
}

/// What appends the next request, and what says whether an answer may be right.
pub(super) type Asking<'a> = (&'a mut dyn FnMut(&mut Vec<u8>), fn(&[u8]) -> bool);

/// What is asked again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A board of ten messages, as JSON.
    Read,
    /// The same as a page.
    Page,
    /// A new message.
    Write,
    /// The one message of a thousand that has a word, as JSON.
    Search,
}

impl Ask {
    /// The value of the key `op` with this meaning.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "read" => Some(Self::Read),
            "page" => Some(Self::Page),
            "write" => Some(Self::Write),
            "search" => Some(Self::Search),
            _ => None,
        }
    }

    fn append(self, request: &mut Vec<u8>, number: usize) {
        match self {
            Self::Read => get(request, BENCH),
            Self::Page => get(request, "/b/bench"),
            Self::Write => post(request, &format!("{BENCH}/messages"), &message(number)),
            Self::Search => {
                let word = LEAST_WORD + number % (SEARCHED - LEAST_WORD);
                get(request, &format!("{SEARCH}{word}"));
            }
        }
    }

    /// Whether an answer may be right.
    fn accepts(self) -> fn(&[u8]) -> bool {
        match self {
            Self::Read | Self::Page | Self::Write => |_| true,
            // One message is found, which has a text.
            Self::Search => |answer| contains(answer, b"\"text\":"),
        }
    }
}

impl BoardLoad {
    /// The server, and connections to it.
    pub(super) fn start(&self, connections: usize) -> Result<(Served, Visitors), String> {
        self.start_with(connections, &self.words)
    }

    /// The same with other words.
    pub(super) fn start_with(
        &self,
        connections: usize,
        words: &[String],
    ) -> Result<(Served, Visitors), String> {
        allow_descriptors(connections)?;
        let own = ["serve-board".to_owned(), self.workers()];
        let words = [&own[..], words].concat();
        let served = apart(self.workers, || Served::start(&self.server, &words))?;
        let visitors = self.connect(&served, connections)?;
        Ok((served, visitors))
    }

    /// Connections to a server. They stay awake if there is a processor for that.
    fn connect(&self, served: &Served, connections: usize) -> Result<Visitors, String> {
        let mut visitors = Visitors::connect(served.address, connections)?;
        if has_others(self.workers) {
            visitors.stay_awake();
        }
        Ok(visitors)
    }

    fn workers(&self) -> String {
        format!("workers={}", self.workers)
    }

    /// What a read or a write costs, in turns with the empty handler of the same server.
    ///
    /// # Errors
    /// A sentence, if server or system fail.
    pub fn busy(&self, ask: Ask) -> Result<Vec<Figure>, String> {
        allow_descriptors(2 * self.connections)?;
        let (served, mut visitors) = self.start(self.connections)?;
        fill(&mut visitors, "bench", MESSAGES)?;
        check(&mut visitors)?;
        if ask == Ask::Search {
            fill(&mut visitors, "searched", SEARCHED)?;
        }
        let hello = [Dialogue::Hello.server().to_owned(), self.workers()];
        let hello = apart(self.workers, || Served::start(&self.server, &hello))?;
        let mut greeted = self.connect(&hello, self.connections)?;
        let mut number = 0;
        let mut of_board = |request: &mut Vec<u8>| {
            number += 1;
            ask.append(request, number);
        };
        let mut of_hello =
            |request: &mut Vec<u8>| request.extend_from_slice(Dialogue::Hello.request());
        let (mut board, mut empty) = (Sum::default(), Sum::default());
        let mut slices = Slices::of(self.requests, self.limit);
        while let Some(counts) = slices.next() {
            let hello = (&hello, &mut greeted);
            let of_empty = self.slice(hello, (&mut of_hello, |_| true), slices.each)?;
            let asked: Asking<'_> = (&mut of_board, ask.accepts());
            let of_board = self.slice((&served, &mut visitors), asked, slices.each)?;
            if counts {
                empty.add(of_empty);
                board.add(of_board);
            }
        }
        let mut figures = board.figures();
        figures.push(("bytes_per_answer", board.bytes_per_answer()));
        figures.push(("rss_bytes", served.resident()? as f64));
        // Processor time comes in steps of 10 ms, so a short run may see none.
        if !empty.taken.is_zero() {
            let ratio = board.cpu_per_request() / empty.cpu_per_request();
            figures.push(("hello_ratio", ratio));
        }
        Ok(figures)
    }

    /// All visitors ask as soon as they are answered.
    pub(super) fn slice(
        &self,
        (served, visitors): (&Served, &mut Visitors),
        (ask, accepts): Asking<'_>,
        requests: usize,
    ) -> Result<Sum, String> {
        let visits = &mut [Visit {
            visitors: 0..self.connections,
            ask,
            accepts,
            per_second: None,
        }];
        measure(served, || {
            Ok(visitors.visit(visits, requests)?.swap_remove(0))
        })
    }

    /// How long reads of one board take while another takes many writes, beside the same without them. Both come at a
    /// fixed rate, so that neither only waits for the other's share of the processors.
    ///
    /// # Errors
    /// A sentence, if server or system fail.
    pub fn beside_hot(&self) -> Result<Vec<Figure>, String> {
        let (served, mut visitors) = self.start(READERS + self.connections)?;
        fill(&mut visitors, "bench", MESSAGES)?;
        fill(&mut visitors, "hot", 1)?;
        check(&mut visitors)?;
        let mut read = |request: &mut Vec<u8>| Ask::Read.append(request, 0);
        let mut reading = Visit {
            visitors: 0..READERS,
            ask: &mut read,
            accepts: |_| true,
            per_second: Some(READS_PER_S),
        };
        visitors.visit(std::slice::from_mut(&mut reading), self.requests / 10)?;
        let mut write = |request: &mut Vec<u8>| {
            post(request, "/api/boards/hot/messages", &message(0));
        };
        // Each writer once: a server may close a connection that asks nothing, and most would have to connect again
        // under the load.
        let mut greeting = Visit {
            visitors: READERS..READERS + self.connections,
            ask: &mut write,
            accepts: |_| true,
            per_second: None,
        };
        visitors.visit(std::slice::from_mut(&mut greeting), self.connections)?;
        let calm = measure(&served, || {
            let visits = std::slice::from_mut(&mut reading);
            Ok(visitors.visit(visits, self.requests)?.swap_remove(0))
        })?;
        let mut number = 0;
        let mut write = |request: &mut Vec<u8>| {
            number += 1;
            post(request, "/api/boards/hot/messages", &message(number));
        };
        let writing = Visit {
            visitors: READERS..READERS + self.connections,
            ask: &mut write,
            accepts: |_| true,
            per_second: Some(WRITES_PER_S),
        };
        let clock = Instant::now();
        let both = visitors.visit(&mut [reading, writing], self.requests)?;
        let elapsed = clock.elapsed().as_secs_f64();
        let [mut beside, hot] =
            <[Visited; 2]>::try_from(both).map_err(|_| "Two visits were made.")?;
        beside.times.sort_unstable();
        let (before, p99) = (at(&calm.sorted(), 990), at(&beside.times, 990));
        Ok(vec![
            ("p99_us", p99),
            ("p99_ratio", p99 / before),
            ("p50_us", at(&beside.times, 500)),
            ("p999_us", at(&beside.times, 999)),
            ("writes_per_s", hot.times.len() as f64 / elapsed),
            ("errors", (calm.errors + beside.errors + hot.errors) as f64),
        ])
    }
}

/// The outcome of some requests, and their cost.
#[derive(Debug, Default)]
pub(super) struct Sum {
    times: Vec<Duration>,
    pub(super) errors: usize,
    bytes: usize,
    taken: Duration,
    elapsed: Duration,
}

impl Sum {
    pub(super) fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.taken += other.taken;
        self.elapsed += other.elapsed;
    }

    /// The processor time of the server.
    pub(super) fn cpu_per_request(&self) -> f64 {
        self.taken.as_secs_f64() / self.times.len() as f64
    }

    pub(super) fn sorted(&self) -> Vec<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        times
    }

    pub(super) fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }

    fn bytes_per_answer(&self) -> f64 {
        self.bytes as f64 / self.times.len() as f64
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let times = self.sorted();
        vec![
            ("cpu_s_per_million", 1e6 * self.cpu_per_request()),
            ("requests_per_s", self.rate()),
            ("p50_us", at(&times, 500)),
            ("p99_us", at(&times, 990)),
            ("p999_us", at(&times, 999)),
            ("errors", self.errors as f64),
        ]
    }
}

/// The time in microseconds that this many of 1,000 sorted times do not exceed.
pub(super) fn at(times: &[Duration], of_thousand: usize) -> f64 {
    let time = times
        .get(times.len() * of_thousand / 1_000)
        .or(times.last());
    time.map_or(0.0, |time| 1e6 * time.as_secs_f64())
}

/// What a visit costs the server.
pub(super) fn measure(
    served: &Served,
    visit: impl FnOnce() -> Result<Visited, String>,
) -> Result<Sum, String> {
    let before = served.processor_time()?;
    let clock = Instant::now();
    let visited = visit()?;
    let elapsed = clock.elapsed();
    Ok(Sum {
        times: visited.times,
        errors: visited.errors,
        bytes: visited.bytes,
        taken: served.processor_time()?.saturating_sub(before),
        elapsed,
    })
}

/// Creates a board, and writes this many messages.
pub(super) fn fill(visitors: &mut Visitors, board: &str, messages: usize) -> Result<(), String> {
    let mut request = Vec::new();
    post(
        &mut request,
        "/api/boards",
        &format!("{{\"title\":\"{board}\"}}"),
    );
    visitors.once(&request)?;
    let path = format!("/api/boards/{board}/messages");
    for number in 0..messages {
        request.clear();
        post(&mut request, &path, &message(number));
        visitors.once(&request)?;
    }
    Ok(())
}

/// Whether a first answer of each kind is what it should be; later there is no time to look. The page is another
/// board's affair, but it must have every message.
fn check(visitors: &mut Visitors) -> Result<(), String> {
    let mut request = Vec::new();
    post(&mut request, "/api/boards", "{\"title\":\"other\"}");
    visitors.once(&request)?;
    for path in ["/api/boards", BENCH, "/b/bench"] {
        request.clear();
        get(&mut request, path);
        let answer = visitors.once(&request)?;
        let text = String::from_utf8_lossy(&answer);
        let has_all = match path {
            "/api/boards" => text.contains("\"bench\"") && text.contains("\"other\""),
            // The page may write the text in another way, but nobody escapes a word.
            _ => (0..MESSAGES).all(|number| text.contains(&format!("number{number}."))),
        };
        if !has_all {
            return Err(format!(
                "The answer to {path} is not what it should be: {text}"
            ));
        }
    }
    edit(visitors)
}

/// Edits a message, and looks whether it says something else.
fn edit(visitors: &mut Visitors) -> Result<(), String> {
    let key = "authorization: Bearer the-key-of-the-bench\r\n";
    let mut request = Vec::new();
    send(
        &mut request,
        ("POST", "/api/boards/other/messages"),
        key,
        &message(0),
    );
    let answer = visitors.once(&request)?;
    let text = String::from_utf8_lossy(&answer);
    let id = text.rsplit_once("\"id\":").map_or("", |(_, rest)| rest);
    let id = id.split([',', '}']).next().unwrap_or_default();
    let path = format!("/api/boards/other/messages/{id}");
    let edited = "{\"author\":\"Ada\",\"title\":\"Edited\",\"text\":\"something else\"}";
    request.clear();
    send(
        &mut request,
        ("PUT", &path),
        &format!("{key}if-match: *\r\n"),
        edited,
    );
    visitors.once(&request)?;
    request.clear();
    get(&mut request, "/api/boards/other");
    let answer = visitors.once(&request)?;
    let text = String::from_utf8_lossy(&answer);
    match text.contains("something else") && !text.contains("number0.") {
        true => Ok(()),
        false => Err(format!("The message was not edited: {text}")),
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

/// A message of a hundred and some bytes.
pub(super) fn message(number: usize) -> String {
    format!(
        "{{\"author\":\"Ada\",\"title\":\"Topic {number}\",\"text\":\"This is the message with the number{number}. \
         It has two sentences, and a word with an & in it.\"}}"
    )
}

pub(super) fn get(request: &mut Vec<u8>, path: &str) {
    request.extend_from_slice(b"GET ");
    request.extend_from_slice(path.as_bytes());
    request.extend_from_slice(b" HTTP/1.1\r\nhost: localhost\r\n\r\n");
}

pub(super) fn post(request: &mut Vec<u8>, path: &str, body: &str) {
    send(request, ("POST", path), "", body);
}

fn send(request: &mut Vec<u8>, (method, path): (&str, &str), headers: &str, body: &str) {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    request.extend_from_slice(text.as_bytes());
}
