//! Listeners of one's own: one that gives nothing but errors, and some that have a crowd in their queue at the end.

use std::{
    future::IntoFuture,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use weald_http::Listen;
use weald_kernel::{Runtime, Wait, sleep, spawn, yield_now};
use weald_net::{Stream, UnixStream};
use weald_sync::{Event, always, never};

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

/// Has no next connection, and this many in its queue. With each of them another job begins. The fewest that were taken
/// before the turn of one of them is noted: which of the jobs that are ready is next is drawn.
struct Crowded {
    queued: AtomicUsize,
    before: Arc<AtomicUsize>,
    taken: Arc<AtomicUsize>,
}

impl Crowded {
    fn of(queued: usize) -> Self {
        Self {
            queued: AtomicUsize::new(queued),
            before: Arc::new(AtomicUsize::new(usize::MAX)),
            taken: Arc::default(),
        }
    }
}

impl Listen for Crowded {
    type Transport = std::os::unix::net::UnixStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        never().wrap(|()| Err(io::ErrorKind::WouldBlock.into()))
    }

    fn next_queued(&self) -> io::Result<(Stream<Self::Transport>, Option<SocketAddr>)> {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.queued.fetch_sub(1, Ordering::SeqCst);
        self.taken.fetch_add(1, Ordering::SeqCst);
        let (before, taken) = (self.before.clone(), self.taken.clone());
        spawn(async move { before.fetch_min(taken.load(Ordering::SeqCst), Ordering::SeqCst) })
            .detach();
        Ok((UnixStream::pair()?.0, None))
    }
}

#[test]
fn those_who_wait_at_the_end_are_let_in_in_parts() {
    const QUEUED: usize = 200;
    Runtime::test(1).block_on(async {
        let crowd = Crowded::of(QUEUED);
        let (before, taken) = (crowd.before.clone(), crowd.taken.clone());
        let server = weald_http::serve(crowd, tower::service_fn(hello)).until(async {});
        // A job, so that it shares the only worker with the other one.
        spawn(server.into_future()).await.unwrap().unwrap();
        assert_eq!(taken.load(Ordering::SeqCst), QUEUED);
        assert_eq!(before.load(Ordering::SeqCst), 64);
    });
}

/// The time of a test runtime stands still meanwhile, so it is over at once or never.
#[test]
fn a_crowd_that_goes_on_coming_has_no_more_than_the_time_of_the_drain() {
    Runtime::test(1).block_on(async {
        let crowd = Crowded::of(usize::MAX);
        let taken = crowd.taken.clone();
        let server = weald_http::serve(crowd, tower::service_fn(hello)).until(async {});
        let server = server.drain_for(Duration::ZERO);
        spawn(server.into_future()).await.unwrap().unwrap();
        assert_eq!(taken.load(Ordering::SeqCst), 64);
    });
}

/// Takes 5 ms for each connection that it has queued, while the clients keep theirs, and send nothing.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<UnixStream>>>);

impl Listen for Slow {
    type Transport = std::os::unix::net::UnixStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        never().wrap(|()| Err(io::ErrorKind::WouldBlock.into()))
    }

    fn next_queued(&self) -> io::Result<(Stream<Self::Transport>, Option<SocketAddr>)> {
        sleep(Duration::from_millis(5)).wait();
        let (ours, theirs) = UnixStream::pair()?;
        self.0.lock().unwrap().push(theirs);
        Ok((ours, None))
    }
}

/// In virtual time: four parts of 64 would take 1.28 s.
#[test]
fn a_crowd_that_takes_long_leaves_half_of_the_time_to_those_who_are_let_in() {
    Runtime::test(1).block_on(async {
        let slow = Slow::default();
        let clients = slow.clone();
        let server = weald_http::serve(slow, tower::service_fn(hello)).until(async {});
        let server = server.drain_for(Duration::from_secs(1));
        let drained = spawn(server.into_future()).await.unwrap().unwrap();
        assert_eq!(clients.0.lock().unwrap().len(), 128);
        assert!(drained.not_stopped.is_empty(), "{drained:?}");
    });
}
