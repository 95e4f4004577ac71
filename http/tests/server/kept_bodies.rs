//! Bodies that outlive their requests, and are dropped or polled while the next one is waited for.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;
use weald_kernel::spawn;

use super::{Client, run, start};
use crate::tools::until_yielding;

/// What the service kept, and how much of another body had come when its reader last had to wait.
#[derive(Clone, Default)]
struct Shop {
    kept: Arc<Mutex<Option<RequestBody>>>,
    had: Arc<AtomicUsize>,
}

impl Shop {
    /// Keeps a body of three bytes after its end; counts those of any other one, in a job of its own.
    async fn serve(
        self,
        request: Request<RequestBody>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let mut body = request.into_body();
        if body.size_hint().exact() == Some(3) {
            drop(body.frame().await.unwrap().unwrap());
            *self.kept.lock().unwrap() = Some(body);
            return Ok(Response::new(Full::new("kept.".into())));
        }
        let reading = async move {
            let mut count = 0;
            while let Some(frame) = poll_fn(|cx| noted(&mut body, cx, (count, &self.had))).await {
                count += frame.into_data().unwrap().len();
            }
            count
        };
        let count = spawn(reading).await.unwrap();
        Ok(Response::new(Full::new(format!("{count}.").into())))
    }

    /// A client whose second body is waited for, while the first one still exists.
    async fn client(&self, set: Duration) -> (Client, super::Running) {
        let shop = self.clone();
        let service = tower::service_fn(move |request| shop.clone().serve(request));
        let server = start(service, |server| server.body_timeout(set));
        let mut client = Client::connect(server.address).await;
        client
            .send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc")
            .await;
        client.until("kept.").await;
        client
            .send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc")
            .await;
        until_yielding(|| self.had.load(Ordering::SeqCst) == 3).await;
        (client, server)
    }
}

/// The next frame, after `count` bytes; a wait for it is noted when the body knows of it.
fn noted(
    body: &mut RequestBody,
    cx: &mut Context<'_>,
    (count, had): (usize, &AtomicUsize),
) -> Poll<Option<Frame<Bytes>>> {
    let frame = Pin::new(body).poll_frame(cx);
    if frame.is_pending() {
        had.store(count, Ordering::SeqCst);
    }
    frame.map(|frame| frame.map(Result::unwrap))
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn one_that_is_dropped_late_leaves_the_next_ones_reader_alone() {
    run(2, async {
        let shop = Shop::default();
        let (mut client, server) = shop.client(LONG).await;
        shop.kept.lock().unwrap().take().unwrap();
        client.send("def").await;
        client.until("6.").await;
        drop(client);
        server.end().await;
    });
}

#[test]
fn one_that_is_polled_late_leaves_the_next_ones_reader_alone() {
    run(2, async {
        let shop = Shop::default();
        let (mut client, server) = shop.client(LONG).await;
        let mut kept = shop.kept.lock().unwrap().take().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut kept).poll_frame(&mut cx).is_ready());
        client.send("def").await;
        client.until("6.").await;
        drop(client);
        server.end().await;
    });
}

/// The client is silent: it is still the one who is waited for.
#[test]
fn one_that_is_dropped_late_does_not_lift_the_next_ones_time_limit() {
    run(2, async {
        let shop = Shop::default();
        let (client, server) = shop.client(Duration::from_millis(200)).await;
        shop.kept.lock().unwrap().take().unwrap();
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
        server.end().await;
    });
}
