//! Services that compute: all workers are busy, and other clients are served in the meantime.

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

use super::{Client, HELLO, run, start};

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
