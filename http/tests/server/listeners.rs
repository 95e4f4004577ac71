//! A listener of one's own that gives nothing but errors.

use std::{
    future::IntoFuture,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use weald_http::Listen;
use weald_kernel::{Runtime, sleep, spawn, yield_now};
use weald_net::Stream;
use weald_sync::{Event, always};

use super::hello;

/// Counts how often it is asked.
struct Failing(Arc<AtomicUsize>);

impl Listen for Failing {
    type Transport = std::net::TcpStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        self.0.fetch_add(1, Ordering::SeqCst);
        always(()).wrap(|()| Err(io::Error::other("no PROXY header")))
    }
}

/// The time of a test runtime stands still while a job can run.
#[test]
fn a_listener_that_only_fails_is_asked_again_after_a_pause() {
    Runtime::test(1).block_on(async {
        let asked = Arc::new(AtomicUsize::new(0));
        let server = weald_http::serve(Failing(asked.clone()), tower::service_fn(hello));
        let server = spawn(server.into_future());
        for pauses in 1..=3 {
            for _ in 0..1000 {
                yield_now().await;
            }
            assert_eq!(asked.load(Ordering::SeqCst), 16 * pauses);
            // As long as a pause, which began before.
            sleep(Duration::from_millis(5)).await;
        }
        drop(server);
    });
}
