//! In a crowd of connections each gives up its buffers right after an answer, has none while it waits in quarantine,
//! and is served like any other. The program is told when they have.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    convert::Infallible,
    future::IntoFuture,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weald_http::{Listen, RequestBody};
use weald_kernel::Runtime;
use weald_net::TcpListener;
use weald_sync::{Event, oneshot};

/// More than are few.
const CLIENTS: usize = 2_000;
/// What all of a connection may take while everybody is asked.
const MOST_BYTES: usize = 2_048;
/// The tests count bytes and connections of the program, so one runs after the other.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Counts what it accepts.
struct Counted {
    listener: TcpListener,
    accepted: Arc<AtomicUsize>,
}

impl Listen for Counted {
    type Transport = std::net::TcpStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(weald_net::TcpStream, Option<SocketAddr>)>, Branch: Send> + Send
    {
        self.listener.next().wrap(|accepted| {
            self.accepted.fetch_add(1, Ordering::SeqCst);
            accepted
        })
    }
}

/// Answers with the body of the request.
async fn echo(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(body)))
}

fn ask(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
}

/// Reads until the answers end with `end`.
fn hear(client: &mut TcpStream, end: &str) -> String {
    let mut heard = Vec::new();
    let mut part = [0; 4096];
    while !heard.ends_with(end.as_bytes()) {
        let count = client.read(&mut part).unwrap();
        assert!(count > 0, "the end came after {heard:?}");
        heard.extend_from_slice(&part[..count]);
    }
    String::from_utf8(heard).unwrap()
}

/// Its target, longer than `/`, is a part of the buffer into which it was read.
const GET: &str = "GET /path HTTP/1.1\r\nhost: x\r\n\r\n";

fn allow_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let wanted = 4 * CLIENTS as u64;
    let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

#[test]
fn buffers_are_few_when_everybody_is_asked_at_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _watch = tools::watch();
    allow_descriptors();
    // On a busy machine a connection may look stuck, and the requests of all others would wait, with their buffers, to
    // be handled elsewhere.
    let runtime = Runtime::builder()
        .workers(2)
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (end, mut ending) = oneshot::channel::<Infallible>();
    let (freed, is_freed) = std::sync::mpsc::channel();
    let (address, server) = runtime.block_on({
        let accepted = accepted.clone();
        async move {
            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = listener.local_addr().unwrap();
            let until = async move { ending.receive().await.is_ok() };
            let server = weald_http::serve(Counted { listener, accepted }, tower::service_fn(echo));
            let server = server.until(until).on_buffers_freed(move || {
                let _nobody_waits = freed.send(());
            });
            (address, weald_kernel::spawn(server.into_future()))
        }
    });
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    tools::until(|| accepted.load(Ordering::SeqCst) == CLIENTS);

    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    for client in &mut clients {
        ask(client, GET);
    }
    for client in &mut clients {
        hear(client, "\r\n\r\n");
    }
    let each = (PEAK.load(Ordering::Relaxed) - before) / CLIENTS;
    assert!(each <= MOST_BYTES, "{each} bytes for each connection");
    is_freed
        .recv()
        .expect("the program is told that buffers were given back");

    requests_in_pieces(&mut clients[0]);
    many_at_once(&mut clients[1]);
    a_long_pipeline(&mut clients[1]);
    drop(clients);
    drop(end);
    let drained = runtime.block_on(server).unwrap().unwrap();
    assert!(drained.not_stopped.is_empty());
}

/// The requests of one route block, and all others of that route wait in quarantine until the first ones are released.
#[test]
fn connections_in_quarantine_have_no_buffers() {
    const BLOCKS: &str = "GET /blocks HTTP/1.1\r\nhost: x\r\n\r\n";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _watch = tools::watch();
    allow_descriptors();
    // Far fewer threads than requests. Once all have blocked, the route stays suspect; until then it may be cleared for
    // a moment, and cost some of the threads that are left for workers.
    let builder = Runtime::builder().workers(2).spare_threads(64);
    let runtime = builder.build().unwrap();
    let lock = Arc::new(RwLock::new(()));
    let service = tower::service_fn({
        let lock = lock.clone();
        move |request: Request<RequestBody>| {
            if request.uri().path() == "/blocks" {
                drop(lock.read().unwrap());
            }
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())))
        }
    });
    let address = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        weald_kernel::spawn(weald_http::serve(listener, service).into_future()).detach();
        address
    });
    let mut clients = Vec::new();
    // The first half is served while there is no crowd yet, and does not give up its buffers at once.
    for half in [CLIENTS / 2, CLIENTS] {
        let served = clients.len();
        clients.resize_with(half, || TcpStream::connect(address).unwrap());
        clients[served..]
            .iter_mut()
            .for_each(|client| ask(client, GET));
        for client in &mut clients[served..] {
            hear(client, "\r\n\r\n");
        }
    }

    let closed = lock.write().unwrap();
    let (first, others) = clients.split_at_mut(8);
    first.iter_mut().for_each(|client| ask(client, BLOCKS));
    tools::until(|| runtime.metrics().detached >= 2);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    others.iter_mut().for_each(|client| ask(client, BLOCKS));
    tools::until(|| runtime.metrics().runnable >= CLIENTS / 2);
    drop(closed);
    for client in &mut clients {
        hear(client, "\r\n\r\n");
    }
    let each = (PEAK.load(Ordering::Relaxed) - before) / CLIENTS;
    assert!(each <= MOST_BYTES, "{each} bytes for each connection");
}

/// Streams of events that are quiet have no buffers either, and still tell of the next event.
#[test]
fn streams_of_events_have_no_buffers() {
    const EVENTS: &str = "GET /events HTTP/1.1\r\nhost: x\r\n\r\n";
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _watch = tools::watch();
    allow_descriptors();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (give, given) = weald_sync::channel::unbounded::<()>();
    let given = Arc::new(given);
    let service = tower::service_fn(move |_request: Request<RequestBody>| {
        let events =
            futures_util::stream::unfold((given.clone(), true), |(given, is_first)| async move {
                if !is_first {
                    given.receive().await.ok()?;
                }
                let frame = http_body::Frame::data(Bytes::from_static(b"data: x\n\n"));
                Some((Ok::<_, Infallible>(frame), (given, false)))
            });
        // A stream has its body in one more block.
        let events = Box::pin(events);
        let response = Response::builder().header("content-type", "text/event-stream");
        let response = response.body(http_body_util::StreamBody::new(events));
        std::future::ready(Ok::<_, Infallible>(response.unwrap()))
    });
    let address = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        weald_kernel::spawn(weald_http::serve(listener, service).into_future()).detach();
        address
    });
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let before = LIVE.load(Ordering::Relaxed);
    for client in &mut clients {
        ask(client, EVENTS);
        hear(client, "data: x\n\n\r\n");
    }
    let is_small = || LIVE.load(Ordering::Relaxed).saturating_sub(before) / CLIENTS <= MOST_BYTES;
    tools::until(is_small);
    clients.iter().for_each(|_| give.try_send(()).unwrap());
    for client in &mut clients {
        hear(client, "data: x\n\n\r\n");
    }
}

/// A large body is in memory once, however many clients do not read it.
#[test]
fn clients_that_do_not_read_hold_little_of_a_large_response() {
    const READERS: usize = 20;
    const MOST: usize = 256 << 10;
    static LARGE: [u8; 32 << 20] = [0; 32 << 20];
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _watch = tools::watch();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let address = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let service = tower::service_fn(|_request: Request<RequestBody>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(&LARGE))))
        });
        weald_kernel::spawn(weald_http::serve(listener, service).into_future()).detach();
        address
    });
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut clients: Vec<_> = (0..READERS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    clients.iter_mut().for_each(|client| ask(client, GET));
    // The buffers of the others are full long before.
    let mut part = [0; 4096];
    for _ in 0..LARGE.len() / part.len() {
        clients[0].read_exact(&mut part).unwrap();
    }
    let each = (PEAK.load(Ordering::Relaxed) - before) / READERS;
    assert!(each <= MOST, "{each} bytes for each connection");
}

/// What follows an answer at once, or in part, is not lost with the buffers.
fn requests_in_pieces(client: &mut TcpStream) {
    let post = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n";
    ask(client, &format!("{post}firstPOST / HT"));
    hear(client, "first");
    ask(client, "TP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nse");
    ask(client, "cond");
    hear(client, "second");
    ask(client, &format!("{GET}{post}third{GET}{post}later"));
    let heard = hear(client, "later");
    assert_eq!(heard.matches("200 OK").count(), 4, "{heard}");
    assert!(heard.contains("third"), "{heard}");
}

/// More requests at once than hyper's first buffer holds: large ones, which make it read much, and then small ones.
fn many_at_once(client: &mut TcpStream) {
    let pad = "x".repeat(3_000);
    let large = format!("GET / HTTP/1.1\r\nhost: x\r\npad: {pad}\r\n\r\n");
    let last = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nlast";
    for _ in 0..10 {
        ask(client, &(large.repeat(16) + &GET.repeat(400) + last));
        let heard = hear(client, "last");
        assert_eq!(heard.matches("200 OK").count(), 417);
    }
}

/// More requests at once than the buffers hold: the bytes that hyper has and those that it has not yet read stay in
/// order.
fn a_long_pipeline(client: &mut TcpStream) {
    const REQUESTS: usize = 3_000;
    let mut writer = client.try_clone().unwrap();
    let asking = std::thread::spawn(move || writer.write_all(GET.repeat(REQUESTS).as_bytes()));
    let mut answers = BufReader::new(client).lines().map(Result::unwrap);
    let answered = answers
        .by_ref()
        .filter(|line| line.starts_with("HTTP/1.1"))
        .take_while(|line| line == "HTTP/1.1 200 OK");
    assert_eq!(answered.take(REQUESTS).count(), REQUESTS);
    asking.join().unwrap().unwrap();
}
