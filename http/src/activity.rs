//! What one connection does at this moment, as its stream and its handler note it.
//!
//! Written by the connection's own job and whoever reads a request's body; the two orders at the end the
//! server gives.
//! Nothing here reads a clock: deadlines are found by looking at what has not changed (`watchdog`).

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    task::{Wake, Waker},
};

use http::{Method, Request, Uri};

use crate::ended::Unfinished;

/// Set while a request is with the service, or its response is not taken over by hyper.
const IN_FLIGHT: u8 = 1;
/// Set when something was written and not flushed.
const UNFLUSHED: u8 = 2;
/// Set when the peer has left no room for what is written.
const BLOCKED: u8 = 4;
/// Set when bytes came that belong to no request yet.
const HEAD: u8 = 8;
/// Set when the last request had a body, so that its end may still be missing.
const BODY: u8 = 16;
/// An order: end after the request that is in flight.
const DRAIN: u8 = 32;
/// An order: end now.
const STOP: u8 = 64;
/// Set while the service waits for more of the request's body; never once that has come, read or not.
const AWAITED: u8 = 128;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing came since the last response, or since the beginning.
    Quiet,
    /// The rest of a request's head.
    Head,
    /// The service.
    InFlight,
    /// More of the request's body, for the service.
    Body,
    /// Room to write.
    Blocked,
}

#[derive(Debug)]
pub(crate) struct Activity {
    peer: Option<SocketAddr>,
    flags: AtomicU8,
    /// How many requests were begun.
    requests: AtomicU32,
    /// How often something was written.
    writes: AtomicU32,
    /// How often before the present request began.
    writes_before: AtomicU32,
    /// How many pieces of bodies the service was given.
    pieces: AtomicU32,
    /// The request that is in flight.
    request: Mutex<Option<(Method, Uri)>>,
    waker: Mutex<Option<Waker>>,
    /// Whoever reads the present request's body.
    reader: Mutex<Option<Waker>>,
}

/// While it lives, a request is in flight.
pub(crate) struct InFlight(Arc<Activity>);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Activity {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Arc<Activity> {
        Arc::new(Activity {
            peer,
            flags: AtomicU8::new(0),
            requests: AtomicU32::new(0),
            writes: AtomicU32::new(0),
            writes_before: AtomicU32::new(0),
            pieces: AtomicU32::new(0),
            request: Mutex::new(None),
            waker: Mutex::new(None),
            reader: Mutex::new(None),
        })
    }

    fn set(&self, flags: u8) {
        // Relaxed, as all here: the flags guard no other memory; orders come with a wake.
        self.flags.fetch_or(flags, Ordering::Relaxed);
    }

    fn unset(&self, flags: u8) {
        self.flags.fetch_and(!flags, Ordering::Relaxed);
    }

    fn has(&self, flags: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    /// Bytes came.
    pub(crate) fn received(&self) {
        if !self.has(IN_FLIGHT) {
            self.set(HEAD);
        }
    }

    /// Bytes went.
    pub(crate) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.unset(BLOCKED);
        self.set(UNFLUSHED);
    }

    /// Bytes had no room.
    pub(crate) fn refused(&self) {
        self.set(BLOCKED | UNFLUSHED);
    }

    /// All that was written went.
    pub(crate) fn flushed(&self) {
        self.unset(UNFLUSHED | BLOCKED);
    }

    /// A request goes to the service.
    pub(crate) fn begin<B: http_body::Body>(self: &Arc<Self>, request: &Request<B>) -> InFlight {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let writes = self.writes.load(Ordering::Relaxed);
        self.writes_before.store(writes, Ordering::Relaxed);
        *lock(&self.request) = Some((request.method().clone(), request.uri().clone()));
        self.unset(HEAD | BODY);
        self.set(match request.body().is_end_stream() {
            true => IN_FLIGHT,
            false => IN_FLIGHT | BODY,
        });
        InFlight(self.clone())
    }

    /// `reader` is about to wait for more of the body. Returns the waker that hyper shall wake in its place
    /// when there is more, so that from then on it is the reader who takes its time.
    pub(crate) fn awaits_body(self: &Arc<Self>, reader: &Waker) -> Waker {
        let former = lock(&self.reader).replace(reader.clone());
        drop(former);
        self.set(AWAITED);
        Waker::from(self.clone())
    }

    /// Nobody will read more of the body.
    pub(crate) fn leaves_body(&self) {
        self.has_body();
        let reader = lock(&self.reader).take();
        drop(reader);
    }

    /// There is more of the body.
    pub(crate) fn has_body(&self) {
        if self.has(AWAITED) {
            self.pieces.fetch_add(1, Ordering::Relaxed);
            self.unset(AWAITED);
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.has(BLOCKED) {
            Phase::Blocked
        } else if self.has(AWAITED) {
            Phase::Body
        } else if self.has(IN_FLIGHT | UNFLUSHED) {
            Phase::InFlight
        } else if self.has(HEAD) {
            Phase::Head
        } else {
            Phase::Quiet
        }
    }

    /// What changes when the phase, though the same, is another one's.
    pub(crate) fn mark(&self, phase: Phase) -> u32 {
        match phase {
            Phase::Blocked => self.writes.load(Ordering::Relaxed),
            Phase::Body => self.pieces.load(Ordering::Relaxed),
            _ => self.requests.load(Ordering::Relaxed),
        }
    }

    /// Whether the connection stands between two requests, apart from what may be in hyper's buffer.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.phase() == Phase::Quiet && !self.has(BODY)
    }

    /// Whether nothing of the present answer was written.
    pub(crate) fn has_not_answered(&self) -> bool {
        self.writes_before.load(Ordering::Relaxed) == self.writes.load(Ordering::Relaxed)
    }

    /// Whether a request was ever begun.
    pub(crate) fn has_served(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The connection's job, which orders must wake.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let mut kept = lock(&self.waker);
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }

    /// Orders the connection to end after the request that is in flight.
    pub(crate) fn order_drain(&self) {
        self.order(DRAIN);
    }

    /// Orders the connection to end now.
    pub(crate) fn order_stop(&self) {
        self.order(STOP);
    }

    fn order(&self, order: u8) {
        // The lock comes after: a job that sets its waker later sees the order.
        self.set(order);
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.has(DRAIN)
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.has(STOP)
    }

    /// What it does, for a report.
    pub(crate) fn describe(&self) -> Unfinished {
        let request = lock(&self.request)
            .as_ref()
            .filter(|_| self.has(IN_FLIGHT | UNFLUSHED | BLOCKED))
            .cloned();
        Unfinished {
            peer: self.peer,
            request,
        }
    }
}

impl Wake for Activity {
    fn wake(self: Arc<Self>) {
        self.has_body();
        let reader = lock(&self.reader).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.unset(IN_FLIGHT);
    }
}
