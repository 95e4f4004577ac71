//! `stall-requests` for hyper on tokio: the answers to 32 clients, beside others whose requests are handled by code
//! that blocks, computes or panics.
//!
//! The same course as Weald's own. A handler that panics ends its connection here, so its client connects again.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{Call, OFFENCE, compute_for, fail};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How many other clients there are.
const OTHERS: usize = 32;

pub(crate) fn run(call: &'static Call) -> Vec<(&'static str, f64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(call.workers)
        .enable_all()
        .build();
    let runtime = runtime.unwrap_or_else(|_| fail("The runtime cannot start: give fewer workers."));
    let measured = runtime.block_on(async { tokio::spawn(measure(call)).await });
    // The threads of handlers that block are not waited for.
    runtime.shutdown_background();
    match measured {
        Ok(Ok(figures)) => figures,
        Ok(Err(error)) => fail(&format!("A client failed: {error}.")),
        Err(error) => fail(&format!("A task failed: {error}.")),
    }
}

async fn measure(call: &Call) -> io::Result<Vec<(&'static str, f64)>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(crate::with_hyper::accept(listener, handle));
    let length = Duration::from_secs(call.number("seconds", 1));
    let mut spent = length / 5;
    let calm = others(address, spent).await?;
    let mut times = calm.clone();
    let offences = [
        ("none", None),
        ("blocks", Some("/blocks")),
        ("computes", Some("/computes")),
        ("panics", Some("/panics")),
    ];
    let path = call.word("offender", &offences);
    if let Some(path) = path {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..call.number("offenders", 0) {
            tokio::spawn(offend(address, path, Arc::clone(&stop)));
        }
        spent = length;
        times = others(address, length).await?;
        stop.store(true, Ordering::Relaxed);
    }
    let (p99, calm) = (p99(&times), p99(&calm));
    let mut figures = vec![
        ("p99_us", 1e6 * p99),
        ("requests_per_s", times.len() as f64 / spent.as_secs_f64()),
    ];
    if path.is_some() {
        figures.push(("p99_ratio", p99 / calm));
    }
    Ok(figures)
}

fn p99(sorted: &[Duration]) -> f64 {
    let at = (sorted.len() * 99 / 100).min(sorted.len().saturating_sub(1));
    match sorted.get(at) {
        Some(time) => time.as_secs_f64(),
        None => fail("No request was answered."),
    }
}

/// The other clients ask for this long; how long each answer took, in order.
async fn others(address: SocketAddr, length: Duration) -> io::Result<Vec<Duration>> {
    let end = Instant::now() + length;
    let clients: Vec<_> = (0..OTHERS)
        .map(|_| tokio::spawn(ask_until(address, end)))
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.map_err(io::Error::other)??);
    }
    times.sort_unstable();
    Ok(times)
}

async fn ask_until(address: SocketAddr, end: Instant) -> io::Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut stream = connect(address).await?;
    while Instant::now() < end {
        let begun = Instant::now();
        ask(&mut stream, "/").await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn offend(address: SocketAddr, path: &str, stop: Arc<AtomicBool>) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let mut stream = connect(address).await?;
        while !stop.load(Ordering::Relaxed) && ask(&mut stream, path).await.is_ok() {}
    }
    Ok(())
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Asks for `path`, and waits for the end of the head of the answer; no answer has a body.
async fn ask(stream: &mut TcpStream, path: &str) -> io::Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let (mut answer, mut length) = ([0; 1024], 0);
    while !answer[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut answer[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
    }
    Ok(())
}

/// Handles the requests of offenders and others.
fn handle(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/blocks" => std::thread::sleep(OFFENCE),
        "/computes" => compute_for(OFFENCE),
        "/panics" => panic!("the handler of an offender panics"),
        _ => {}
    }
    Response::new(Full::default())
}
