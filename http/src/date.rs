//! Whether the clock says a time that HTTP can write.
//!
//! Hyper keeps the text of a date for each OS thread. It makes the first one when it is first polled there, whether
//! answers are dated or not, and panics if the clock says a time before 1970 then. A clock that goes there later
//! changes nothing: the date stays what it was. So the first poll of hyper on each thread waits for a look at the
//! clock. (No system sets its clock to a time after the year 9999, which would be as bad.)
//!
//! Called by connections, on whichever thread polls them.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The first second that a date of HTTP cannot have, from 1970 on.
const TOO_LATE: Duration = Duration::from_secs(253_402_300_800);

thread_local! {
    /// Whether hyper was polled here, so that it has a date.
    static HAS_DATE: Cell<bool> = const { Cell::new(false) };
}

/// Whether hyper can date answers on this thread. To be asked right before hyper is polled.
pub(crate) fn can_be_written() -> bool {
    HAS_DATE.get() || look()
}

/// Hyper was polled on this thread, and has not panicked.
pub(crate) fn note_polled() {
    HAS_DATE.set(true);
}

#[cold]
fn look() -> bool {
    let is_sound = text().is_some();
    if !is_sound {
        tell();
    }
    is_sound
}

/// Once in a program: every request would find the same.
fn tell() {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if !IS_TOLD.swap(true, Ordering::Relaxed) {
        weald_kernel::report_failure(|| {
            "the clock of this machine says a time before 1970, or after the year 9999, so requests are answered with \
             503; set the clock"
                .to_owned()
        });
    }
}

/// The time as a date, if it can have one.
pub(crate) fn text() -> Option<String> {
    let now = now();
    let since = now.duration_since(UNIX_EPOCH).ok()?;
    (since < TOO_LATE).then(|| httpdate::fmt_http_date(now))
}

#[cfg(not(test))]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
fn now() -> SystemTime {
    tests::CLOCK.get().unwrap_or_else(SystemTime::now)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::IntoFuture, io, net::SocketAddr, sync::Mutex};

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use weald_kernel::{Runtime, spawn};
    use weald_net::{Stream, UnixStream};
    use weald_sync::{Event, never};

    use super::*;
    use crate::{Listen, RequestBody, serve};

    thread_local! {
        /// What the clock says on this thread, if it is not the time.
        pub(super) static CLOCK: Cell<Option<SystemTime>> = const { Cell::new(None) };
    }

    /// Has one connection in its queue, for a server that ends at once.
    struct One(Mutex<Option<UnixStream>>);

    impl Listen for One {
        type Transport = std::os::unix::net::UnixStream;

        fn next(
            &self,
        ) -> impl Event<
            Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>,
            Branch: Send,
        > + Send {
            never().wrap(|()| Err(io::ErrorKind::WouldBlock.into()))
        }

        fn next_queued(&self) -> io::Result<(Stream<Self::Transport>, Option<SocketAddr>)> {
            let stream = self.0.lock().unwrap().take();
            Ok((stream.ok_or(io::ErrorKind::WouldBlock)?, None))
        }
    }

    async fn hello(_: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(Response::new(Full::new("hello.".into())))
    }

    /// The answer to a request.
    async fn asked() -> String {
        let (ours, client) = UnixStream::pair().unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let listener = One(Mutex::new(Some(ours)));
        let server = serve(listener, tower::service_fn(hello)).until(async {});
        spawn(server.into_future()).detach();
        let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
        while let count @ 1.. = client.read(&mut buffer).await.unwrap() {
            answer.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(answer).unwrap()
    }

    /// The thread of a test is new, and the only one of its runtime.
    #[test]
    fn a_clock_before_1970_costs_requests_their_answer_and_nothing_else() {
        Runtime::test(1).block_on(async {
            for impossible in [UNIX_EPOCH - Duration::from_nanos(1), UNIX_EPOCH + TOO_LATE] {
                CLOCK.set(Some(impossible));
                let refused = asked().await;
                assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
                assert!(!refused.contains("\r\ndate: "), "{refused}");
            }
            CLOCK.set(None);
            let answer = asked().await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(answer.contains("\r\ndate: "), "{answer}");
            // Hyper keeps the date that it has.
            CLOCK.set(Some(UNIX_EPOCH - Duration::from_nanos(1)));
            let answer = asked().await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        });
    }
}
