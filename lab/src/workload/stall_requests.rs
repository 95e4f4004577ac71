//! `stall-requests`: do the handlers of some requests stop the requests of others? A tick is another client's request.
//!
//! Server and clients are in one runtime. The other clients ask, each on a connection of its own, as soon as they are
//! answered. First there are no offenders, for a fifth of the time, and then each offender is a client whose requests
//! are handled by code that blocks or computes for 300 ms, or panics at once.

use std::convert::Infallible;
use std::future::{IntoFuture, Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;
use weald::net::{TcpListener, TcpStream};
use weald::process::Inbox;

use super::definition::Workload;
use super::host::alone;
use super::offender::{OFFENCE, block, compute};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::quantile::quantile;

/// How many other clients there are.
const OTHERS: usize = 32;

pub(super) const WORKLOAD: Workload = Workload {
    name: "stall-requests",
    question: "Do requests whose handlers block, compute or panic stop the requests of others?",
    keys: &["offenders", "offender", "seconds"],
    optional: &[],
    metrics: &["p99_us", "requests_per_s"],
    explaining: &["p99_ratio"],
    remark: "32 other clients ask without a pause. Each offender is a client whose requests block or compute for \
             300 ms, or panic; p99_us and requests_per_s are of the others. Clients and server share the workers.",
    run,
};

/// What the handlers of the offenders do: the path of their requests.
fn path(offender: &str) -> Result<Option<&'static str>, Error> {
    match offender {
        "none" => Ok(None),
        "blocks" => Ok(Some("/blocks")),
        "computes" => Ok(Some("/computes")),
        "panics" => Ok(Some("/panics")),
        other => Err(Error::Usage(format!(
            "offender={other} is none of: none, blocks, computes, panics."
        ))),
    }
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let path = path(params.text("offender")?)?;
    let offenders = params.number("offenders")?;
    let length = Duration::from_secs(params.count("seconds")? as u64);
    alone(
        params,
        OTHERS + offenders,
        move |inbox: Inbox<()>| async move {
            drop(inbox);
            measure(path, offenders, length).await
        },
    )
}

async fn measure(
    path: Option<&'static str>,
    offenders: usize,
    length: Duration,
) -> Result<Vec<Metric>, Error> {
    let failed = |error: std::io::Error| Error::workload(format!("The server failed: {error}."));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let server = weald::spawn(weald::http::serve(listener, Shop).into_future());
    let calm = others(address, length / 5).await?;
    let mut times = calm.clone();
    let mut metrics = Vec::new();
    let mut spent = length / 5;
    if let Some(path) = path {
        let stop = Arc::new(AtomicBool::new(false));
        let offend = |_| weald::spawn(offend(address, path, Arc::clone(&stop)));
        let offending: Vec<_> = (0..offenders).map(offend).collect();
        times = others(address, length).await?;
        spent = length;
        stop.store(true, Ordering::Relaxed);
        for offender in offending {
            offender.await.map_err(|error| job_failed(&error))??;
        }
    }
    server.cancel();
    let (p99, calm) = (p99(&times)?, p99(&calm)?);
    metrics.push(Metric::new("p99_us", 1e6 * p99));
    let rate = times.len() as f64 / spent.as_secs_f64();
    metrics.push(Metric::new("requests_per_s", rate));
    if path.is_some() {
        metrics.push(Metric::new("p99_ratio", p99 / calm));
    }
    Ok(metrics)
}

fn p99(sorted: &[Duration]) -> Result<f64, Error> {
    let p99 = quantile(sorted, 0.99).map(|p99| p99.as_secs_f64());
    p99.ok_or_else(|| Error::workload("No request was answered."))
}

fn job_failed(error: &weald::JoinError) -> Error {
    Error::workload(format!("A job of the workload failed: {error}."))
}

/// The other clients ask for this long; how long each answer took, in order.
async fn others(address: SocketAddr, length: Duration) -> Result<Vec<Duration>, Error> {
    let end = Instant::now() + length;
    let clients: Vec<_> = (0..OTHERS)
        .map(|_| weald::spawn(ask_until(address, end)))
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.map_err(|error| job_failed(&error))??);
    }
    times.sort_unstable();
    Ok(times)
}

async fn ask_until(address: SocketAddr, end: Instant) -> Result<Vec<Duration>, Error> {
    let mut times = Vec::new();
    let stream = connect(address).await?;
    while Instant::now() < end {
        let begun = Instant::now();
        ask(&stream, "/").await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn offend(
    address: SocketAddr,
    path: &'static str,
    stop: Arc<AtomicBool>,
) -> Result<(), Error> {
    let stream = connect(address).await?;
    while !stop.load(Ordering::Relaxed) {
        ask(&stream, path).await?;
    }
    Ok(())
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Error> {
    let connected = TcpStream::connect(address).await;
    connected.map_err(|error| Error::workload(format!("A client cannot connect: {error}.")))
}

/// Asks for `path`, and waits for the end of the head of the answer; no answer has a body.
async fn ask(stream: &TcpStream, path: &str) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::workload(format!("A client failed: {error}."));
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let (mut answer, mut length) = ([0; 1024], 0);
    while !answer[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut answer[length..]).await.map_err(failed)? {
            0 => return Err(Error::workload("The server has closed a connection.")),
            count => length += count,
        }
    }
    Ok(())
}

/// Handles the requests of offenders and others.
#[derive(Clone, Copy)]
struct Shop;

impl<B> Service<Request<B>> for Shop {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match request.uri().path() {
            "/blocks" => block(OFFENCE),
            "/computes" => compute(OFFENCE),
            "/panics" => panic!("the handler of an offender panics"),
            _ => {}
        }
        ready(Ok(Response::new(Full::default())))
    }
}
