//! Services that compute or block: all workers are busy, and other clients are served in the meantime.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use weald_http::RequestBody;
use weald_kernel::Runtime;

use super::{Client, HELLO, run, start};
use crate::{blocker::Blocker, tools};

/// A word of letters for a number.
fn word(number: usize) -> String {
    let digits = number.to_string();
    let letters = digits.bytes().map(|digit| char::from(digit - b'0' + b'k'));
    letters.collect()
}

/// Each request of a burst is of another path, as of a route `/users/{name}`. There are far fewer threads than
/// requests, so if each held up a worker, nobody would be served. In the last case they are of many families, so that
/// all requests are suspect that the server does not know well.
#[test]
fn others_are_served_while_paths_of_one_family_block() {
    for [path, more] in [["/users/", ""], ["/", ""], ["/", "/cart"]] {
        let _watch = tools::watch();
        let runtime = Runtime::builder().workers(1).spare_threads(16).build();
        runtime.unwrap().block_on(async {
            let blocker = Blocker::default();
            let blocks = blocker.clone();
            let service = tower::service_fn(move |request: Request<RequestBody>| {
                let blocker = blocks.clone();
                async move {
                    if request.uri().path() != "/orders/bob" {
                        blocker.block();
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done."))))
                }
            });
            let server = start(service, |server| server);
            let mut busy = Vec::new();
            for number in 0..60 {
                let client = Client::connect(server.address).await;
                let path = format!(" {path}{}{more} ", word(number));
                client.send(&HELLO.replace(" / ", &path)).await;
                busy.push(client);
            }
            tools::until_yielding(|| blocker.begun() >= 8).await;
            for _ in 0..20 {
                let job = weald_kernel::spawn(weald_kernel::yield_now());
                job.await.unwrap();
                if more.is_empty() {
                    let mut another = Client::connect(server.address).await;
                    another.send(&HELLO.replace(" / ", " /orders/bob ")).await;
                    another.until("done.").await;
                }
            }
            assert!(blocker.begun() <= 18, "{} have a thread", blocker.begun());
            blocker.open();
            for mut client in busy {
                client.until("done.").await;
            }
            assert!(server.end().await.not_stopped.is_empty());
        });
    }
}

#[test]
fn others_are_served_while_all_workers_compute() {
    for workers in [1, 2] {
        run(workers, async move {
            let enough = Arc::new(AtomicBool::new(false));
            let enough_there = enough.clone();
            let service = tower::service_fn(move |request: Request<RequestBody>| {
                let enough = enough_there.clone();
                async move {
                    let computes = request.uri().path() == "/compute";
                    while computes && !enough.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done."))))
                }
            });
            let server = start(service, |server| server);
            let mut kept = Client::connect(server.address).await;
            kept.send(HELLO).await;
            kept.until("done.").await;
            let mut busy = Vec::new();
            for _ in 0..=workers {
                let client = Client::connect(server.address).await;
                client.send(&HELLO.replace(" / ", " /compute ")).await;
                busy.push(client);
            }
            for _ in 0..20 {
                kept.send(HELLO).await;
                kept.until("done.").await;
                let mut another = Client::connect(server.address).await;
                another.send(HELLO).await;
                another.until("done.").await;
            }
            enough.store(true, Ordering::Relaxed);
            for mut client in busy {
                client.until("done.").await;
            }
            drop(kept);
            assert!(server.end().await.not_stopped.is_empty());
        });
    }
}
