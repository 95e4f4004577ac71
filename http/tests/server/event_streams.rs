//! A stream of events leaves hyper after its head: each end is the one that it would have had there.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
use weald_http::{MinRate, RequestBody};
use weald_sync::channel;

use super::{Client, HELLO, run, start};
use crate::tools::{Drops, until_yielding};

/// What a stream gives next; its end when the sender is dropped.
enum Give {
    Event(&'static str),
    /// Data that are not one piece.
    Parts(&'static str, &'static str),
    Nothing,
    Trailers,
    Large,
    Failure,
    Panic,
    End,
}

type Data = bytes::buf::Chain<Bytes, Bytes>;

fn data(first: &'static str, second: &'static str) -> Result<Frame<Data>, io::Error> {
    let [first, second] = [first, second].map(|it| Bytes::from_static(it.as_bytes()));
    Ok(Frame::data(first.chain(second)))
}

/// Answers each request with a stream of what the sender gives.
fn streams(drops: &Drops) -> (impl weald_http::Serve + use<>, channel::Sender<Give>) {
    let (give, given) = channel::unbounded::<Give>();
    let (given, drops) = (Arc::new(given), drops.clone());
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (given, token) = (given.clone(), drops.token());
        let frames = stream::unfold((given, token), |(given, token)| async move {
            let frame = match given.receive().await.ok()? {
                Give::Event(text) => data(text, ""),
                Give::Parts(first, second) => data(first, second),
                Give::Nothing => data("", ""),
                Give::Trailers => Ok(Frame::trailers(HeaderMap::new())),
                Give::Large => {
                    let large = Bytes::from(vec![b'x'; 60 << 10]);
                    Ok(Frame::data(large.chain(Bytes::new())))
                }
                Give::Failure => Err(io::Error::other("on purpose")),
                Give::Panic => panic!("on purpose"),
                Give::End => return None,
            };
            Some((frame, (given, token)))
        });
        let frames: UnsyncBoxBody<Data, io::Error> =
            UnsyncBoxBody::new(StreamBody::new(frames.boxed()));
        let is_plain = request.uri().path() == "/plain";
        let kind = if is_plain {
            "text/plain"
        } else {
            "text/event-stream; charset=utf-8"
        };
        let response = Response::builder().header("content-type", kind);
        std::future::ready(Ok::<_, Infallible>(response.body(frames).unwrap()))
    });
    (service, give)
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

const LAST: &str = "0\r\n\r\n";
const MEANWHILE: Duration = Duration::from_millis(20);

/// A client whose stream has told it of one event before it was taken from hyper, and of another one after that.
async fn streaming(server: &super::Running, give: &channel::Sender<Give>, request: &str) -> Client {
    let mut client = Client::connect(server.address).await;
    client.send(request).await;
    give.try_send(Give::Event("first")).unwrap();
    let head = client.until(&chunk("first")).await;
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    for text in ["second", "third"] {
        give.try_send(Give::Event(text)).unwrap();
        assert_eq!(client.until(&chunk(text)).await, "");
    }
    client
}

#[test]
fn after_its_end_the_connection_goes_on() {
    run(2, async {
        let (drops, mut ended) = (Drops::default(), 0);
        let (service, give) = streams(&drops);
        let server = start(service, |server| server);
        let mut client = streaming(&server, &give, HELLO).await;
        for last in [Give::End, Give::Trailers] {
            give.try_send(Give::Parts("one", "two")).unwrap();
            client.until(&chunk("onetwo")).await;
            give.try_send(Give::Nothing).unwrap();
            give.try_send(Give::Event("four")).unwrap();
            assert_eq!(client.until(&chunk("four")).await, "", "no empty chunk");
            give.try_send(last).unwrap();
            assert_eq!(client.until(LAST).await, "");
            ended += 1;
            until_yielding(|| drops.count() == ended).await;
            // Half of a request has arrived behind the stream, the rest comes after it.
            client.send(HELLO).await;
        }
        give.try_send(Give::End).unwrap();
        client.until(LAST).await;
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn what_was_sent_behind_the_request_is_answered_after_the_stream() {
    run(2, async {
        let drops = Drops::default();
        let (service, give) = streams(&drops);
        let server = start(service, |server| server);
        // Behind its request, with it and later; and in two parts.
        let (first, second) = HELLO.split_at(7);
        let mut client = streaming(&server, &give, &format!("{HELLO}{HELLO}{first}")).await;
        client.send(second).await;
        for _ in 0..3 {
            give.try_send(Give::Event("more")).unwrap();
            client.until(&chunk("more")).await;
            give.try_send(Give::End).unwrap();
            client.until(LAST).await;
        }
        assert_eq!(drops.count(), 3);
        let mut later = streaming(&server, &give, HELLO).await;
        later.send(HELLO).await;
        // The stream goes on although nothing more is read.
        give.try_send(Give::Event("more")).unwrap();
        later.until(&chunk("more")).await;
        for _ in 0..2 {
            give.try_send(Give::End).unwrap();
            later.until(LAST).await;
        }
        drop((client, later));
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_body_is_dropped_when_its_client_is_gone() {
    run(2, async {
        let (drops, mut ended) = (Drops::default(), 0);
        let (service, give) = streams(&drops);
        let server = start(service.clone(), |server| server);
        let patient = start(service, |server| server.answer_half_closed());
        let reset = Some(Duration::ZERO);
        let behind = format!("{HELLO}{HELLO}");
        for (server, request, linger) in [
            (&server, HELLO, None),
            (&server, HELLO, reset),
            (&server, &*behind, None),
            (&server, &behind, reset),
            (&patient, HELLO, reset),
        ] {
            let client = streaming(server, &give, request).await;
            client.stream.set_linger(linger).unwrap();
            drop(client);
            ended += 1;
            until_yielding(|| drops.count() == ended).await;
        }
        // A client that has ended its direction only may still read, if the server allows that.
        let mut half = streaming(&patient, &give, HELLO).await;
        half.stream.shutdown(std::net::Shutdown::Write).unwrap();
        give.try_send(Give::Event("more")).unwrap();
        half.until(&chunk("more")).await;
        give.try_send(Give::End).unwrap();
        assert_eq!(half.rest().await, LAST);
        let half = streaming(&server, &give, HELLO).await;
        half.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(half.rest().await, "", "and otherwise it is gone");
        for server in [server, patient] {
            assert!(server.end().await.not_stopped.is_empty());
        }
    });
}

#[test]
fn a_body_that_fails_gets_no_last_chunk() {
    run(2, async {
        let drops = Drops::default();
        let (service, give) = streams(&drops);
        let server = start(service, |server| server);
        for failure in [Give::Failure, Give::Panic] {
            let client = streaming(&server, &give, HELLO).await;
            give.try_send(Give::Event("last")).unwrap();
            give.try_send(failure).unwrap();
            assert_eq!(client.rest().await, chunk("last"));
        }
        until_yielding(|| drops.count() == 2).await;
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_drain_lets_it_end_and_then_closes() {
    run(2, async {
        let drops = Drops::default();
        let (service, give) = streams(&drops);
        let server = start(service.clone(), |server| server);
        let mut client = streaming(&server, &give, HELLO).await;
        let ending = weald_kernel::spawn(server.end());
        weald_kernel::sleep(MEANWHILE).await;
        give.try_send(Give::Event("more")).unwrap();
        client.until(&chunk("more")).await;
        give.try_send(Give::End).unwrap();
        assert_eq!(client.rest().await, LAST);
        assert!(ending.await.unwrap().not_stopped.is_empty());
        // One without an end is named, and stopped.
        let server = start(service, |server| {
            server.drain_for(Duration::from_millis(10))
        });
        let client = streaming(&server, &give, HELLO).await;
        let not_stopped = server.end().await.not_stopped;
        assert_eq!(not_stopped.len(), 1, "{not_stopped:?}");
        let (_method, target) = not_stopped[0].request.as_ref().unwrap();
        assert_eq!(target, "/");
        assert_eq!(client.rest().await, "");
    });
}

/// Such clients stay with hyper, and end as they always did.
#[test]
fn a_client_that_wants_the_end_gets_it() {
    run(2, async {
        let drops = Drops::default();
        let (service, give) = streams(&drops);
        let server = start(service, |server| server);
        for request in [
            "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: x\r\nconnection: x, Close\r\n\r\n",
        ] {
            let client = streaming(&server, &give, request).await;
            give.try_send(Give::End).unwrap();
            assert_eq!(client.rest().await, LAST);
        }
        let mut old = Client::connect(server.address).await;
        old.send("GET / HTTP/1.0\r\n\r\n").await;
        give.try_send(Give::Event("first")).unwrap();
        old.until("first").await;
        give.try_send(Give::Event("second")).unwrap();
        old.until("second").await;
        give.try_send(Give::End).unwrap();
        assert_eq!(old.rest().await, "");
        // And any other body is hyper's alone.
        let request = HELLO.replace(" / ", " /plain ");
        let mut plain = streaming(&server, &give, &request).await;
        give.try_send(Give::End).unwrap();
        plain.until(LAST).await;
        let head = HELLO.replace("GET", "HEAD");
        plain.send(&head).await;
        plain.until("\r\n\r\n").await;
        drop(plain);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_client_that_does_not_read_is_not_written_for_and_loses_nothing() {
    const EVENTS: usize = 1_000;
    const FOREVER: Duration = Duration::from_secs(1_000_000);
    run(2, async {
        let drops = Drops::default();
        let (service, give) = streams(&drops);
        let server = start(service, |server| {
            let server = server.min_write_rate(MinRate::new(0, FOREVER));
            server.write_timeout(FOREVER)
        });
        let mut client = streaming(&server, &give, HELLO).await;
        (0..EVENTS).for_each(|_| give.try_send(Give::Large).unwrap());
        give.try_send(Give::End).unwrap();
        // As much as the system takes, and then no more is asked for.
        let mut left = give.len();
        loop {
            weald_kernel::sleep(MEANWHILE).await;
            if std::mem::replace(&mut left, give.len()) == give.len() && left < EVENTS {
                break;
            }
        }
        assert!(left > EVENTS / 2, "{left} are left");
        let large = format!("f000\r\n{}\r\n", "x".repeat(60 << 10));
        let whole = large.len() * EVENTS + LAST.len();
        while client.read.len() < whole {
            assert!(client.more().await);
        }
        let all = String::from_utf8(std::mem::take(&mut client.read)).unwrap();
        assert_eq!(all.len(), whole);
        assert!(all.starts_with(&large) && all.ends_with(LAST));
        assert_eq!(all.matches(&*large).count(), EVENTS);
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}

#[test]
fn a_client_that_never_reads_is_given_up() {
    run(2, async {
        let drops = Drops::default();
        let (service, give) = streams(&drops);
        let server = start(service, |server| {
            server.write_timeout(Duration::from_millis(100))
        });
        let client = streaming(&server, &give, HELLO).await;
        (0..1_000).for_each(|_| give.try_send(Give::Large).unwrap());
        until_yielding(|| drops.count() == 1).await;
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}
