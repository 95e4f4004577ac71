//! Bodies that outlive their requests, and are dropped or polled while a reader waits for the next body.

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

/// The body that the service kept, and how much of another body had arrived when its reader last had to wait.
#[derive(Clone, Default)]
struct Keeper {
    kept: Arc<Mutex<Option<RequestBody>>>,
    had: Arc<AtomicUsize>,
}

impl Keeper {
    /// Keeps a body of three bytes after its end. Counts the bytes of any other body, in a job of its own.
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
            while let Some(frame) =
                poll_fn(|cx| poll_recorded(&mut body, cx, (count, &self.had))).await
            {
                count += frame.into_data().unwrap().len();
            }
            count
        };
        let count = spawn(reading).await.unwrap();
        Ok(Response::new(Full::new(format!("{count}.").into())))
    }

    /// A client whose second body has a waiting reader, while its first body still exists.
    async fn client(&self, set: Duration) -> (Client, super::Running) {
        let keeper = self.clone();
        let service = tower::service_fn(move |request| keeper.clone().serve(request));
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

/// Polls for the next frame, after `count` bytes. Records `count` in `had` if the reader has to wait.
fn poll_recorded(
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
fn a_body_dropped_late_leaves_the_next_ones_reader_alone() {
    run(2, async {
        let keeper = Keeper::default();
        let (mut client, server) = keeper.client(LONG).await;
        keeper.kept.lock().unwrap().take().unwrap();
        client.send("def").await;
        client.until("6.").await;
        drop(client);
        server.end().await;
    });
}

#[test]
fn a_body_polled_late_leaves_the_next_ones_reader_alone() {
    run(2, async {
        let keeper = Keeper::default();
        let (mut client, server) = keeper.client(LONG).await;
        let mut kept = keeper.kept.lock().unwrap().take().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut kept).poll_frame(&mut cx).is_ready());
        client.send("def").await;
        client.until("6.").await;
        drop(client);
        server.end().await;
    });
}

/// The client is silent, and its time limit still applies.
#[test]
fn a_body_dropped_late_does_not_lift_the_next_ones_time_limit() {
    run(2, async {
        let keeper = Keeper::default();
        let (client, server) = keeper.client(Duration::from_millis(200)).await;
        keeper.kept.lock().unwrap().take().unwrap();
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
        server.end().await;
    });
}
