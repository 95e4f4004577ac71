//! What one connection does at this moment, as its stream and its handler note it.
//!
//! Who writes: the connection's own job all that is not said to be another one's, so that plain stores are
//! enough; the server, its orders. What concerns a request's body is told by that body's `reading`.
//! Nothing here reads a clock: deadlines are found by looking at what has not changed (`watchdog`).

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    task::{Context, Waker},
};

use http::{Method, Request, Uri};

use crate::{ended::Unfinished, reading::Reading};

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
/// Set when the service has answered the last request.
const ANSWERED: u8 = 32;
/// An order: end after the request that is in flight.
const DRAIN: u8 = 1;
/// An order: end now.
const STOP: u8 = 2;

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

/// Tells a phase from others of its kind.
pub(crate) type Mark = (u32, u32);

#[derive(Debug)]
pub(crate) struct Activity {
    peer: Option<SocketAddr>,
    flags: AtomicU8,
    /// The server's.
    orders: AtomicU8,
    /// How many requests were begun.
    requests: AtomicU32,
    /// How often something was written.
    writes: AtomicU32,
    /// The request that is in flight.
    request: Mutex<Option<(Method, Uri)>>,
    waker: Mutex<Option<Waker>>,
    /// Of the last request's body, if it had one.
    reading: Mutex<Option<Arc<Reading>>>,
}

/// While it lives, a request is in flight.
pub(crate) struct InFlight {
    activity: Arc<Activity>,
    /// Of its body, if it has one.
    reading: Option<Arc<Reading>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts one more; for a counter with one writer.
fn count(counter: &AtomicU32) {
    let counted = counter.load(Ordering::Relaxed);
    counter.store(counted.wrapping_add(1), Ordering::Relaxed);
}

impl Activity {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Arc<Activity> {
        Arc::new(Activity {
            peer,
            flags: AtomicU8::new(0),
            orders: AtomicU8::new(0),
            requests: AtomicU32::new(0),
            writes: AtomicU32::new(0),
            request: Mutex::new(None),
            waker: Mutex::new(None),
            reading: Mutex::new(None),
        })
    }

    /// Changes the flags; the connection's job only.
    fn change(&self, unset: u8, set: u8) {
        // Relaxed, as all here: the flags guard no other memory; orders come with a wake.
        let flags = self.flags.load(Ordering::Relaxed);
        self.flags.store(flags & !unset | set, Ordering::Relaxed);
    }

    fn has(&self, flags: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    /// Bytes came.
    pub(crate) fn received(&self) {
        if !self.has(IN_FLIGHT) {
            self.change(0, HEAD);
        }
    }

    /// Bytes went.
    pub(crate) fn wrote(&self) {
        count(&self.writes);
        self.change(BLOCKED, UNFLUSHED);
    }

    /// Bytes had no room.
    pub(crate) fn refused(&self) {
        self.change(0, BLOCKED | UNFLUSHED);
    }

    /// All that was written went.
    pub(crate) fn flushed(&self) {
        self.change(UNFLUSHED | BLOCKED, 0);
    }

    /// A request goes to the service.
    pub(crate) fn begin<B: http_body::Body>(self: &Arc<Self>, request: &Request<B>) -> InFlight {
        count(&self.requests);
        *lock(&self.request) = Some((request.method().clone(), request.uri().clone()));
        let (body, reading) = match request.body().is_end_stream() {
            true => (0, None),
            false => (BODY, Some(Arc::new(Reading::default()))),
        };
        lock(&self.reading).clone_from(&reading);
        self.change(HEAD | BODY | ANSWERED, IN_FLIGHT | body);
        InFlight {
            activity: self.clone(),
            reading,
        }
    }

    /// Whether the last request had a body.
    pub(crate) fn has_body(&self) -> bool {
        self.has(BODY)
    }

    /// Which wait for more of the request's body lasts, if one does.
    fn body_wait(&self) -> Option<u32> {
        match self.has(BODY) {
            true => lock(&self.reading).as_ref()?.wait(),
            false => None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.has(BLOCKED) {
            Phase::Blocked
        } else if self.body_wait().is_some() {
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
    pub(crate) fn mark(&self, phase: Phase) -> Mark {
        match phase {
            Phase::Blocked => (self.writes.load(Ordering::Relaxed), 0),
            Phase::Body => (
                self.requests.load(Ordering::Relaxed),
                self.body_wait().unwrap_or(0),
            ),
            _ => (self.requests.load(Ordering::Relaxed), 0),
        }
    }

    /// Whether the connection stands between two requests, apart from what may be in hyper's buffer.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.phase() == Phase::Quiet && !self.has(BODY)
    }

    /// Whether the service has answered the last request, so that some of the answer may be written. That the
    /// client was told to go on (100) is no answer.
    pub(crate) fn has_answered(&self) -> bool {
        self.has(ANSWERED)
    }

    /// Whether a request was ever begun.
    pub(crate) fn has_served(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The connection's job, which orders must wake.
    pub(crate) fn set_waker(&self, waker: Waker) {
        let former = lock(&self.waker).replace(waker);
        drop(former);
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
        self.orders.fetch_or(order, Ordering::Relaxed);
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_ordered(&self, order: u8) -> bool {
        self.orders.load(Ordering::Relaxed) & order != 0
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_ordered(DRAIN)
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.is_ordered(STOP)
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

impl InFlight {
    /// How the request's body is read, if it has one.
    pub(crate) fn reading(&self) -> Option<&Arc<Reading>> {
        self.reading.as_ref()
    }

    /// The service's future, or that of its answer's body, was polled with this and waits for something.
    pub(crate) fn end_round(&self, cx: &Context<'_>) {
        if let Some(reading) = &self.reading {
            reading.end_round(cx.waker());
        }
    }

    /// The service has answered.
    pub(crate) fn answered(&self) {
        self.activity.change(0, ANSWERED);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.activity.change(IN_FLIGHT, 0);
    }
}
