//! What one connection is doing, as recorded by its stream and its handler.
//!
//! Only the connection's own job writes, and before that is spawned the server, so plain stores are enough; the
//! exception is `orders`, which the server writes at any time. The state of a request's body is in that body's
//! [`Reading`]. Nothing here reads a clock: the `watchdog` finds a phase that has lasted too long because it has not
//! changed.

mod body;
mod instance;
mod orders;
mod routes;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use http::Request;

use weald_kernel::WorkKind;

use crate::{
    ended::{Step, Unfinished},
    event_slot::EventSlot,
    flags::{ANSWERED, AT_WORK, BLOCKED, BODY, HEAD, IN_FLIGHT, LINGERING, METERED, UNFLUSHED},
    known_routes::KnownRoutes,
    phase::{Generation, Phase},
    piece::Pace,
    rate::{MinRate, Reader},
    reading::Reading,
    request_note::RequestNote,
};

/// The state of one connection, shared by its job, its handler and the server.
#[derive(Debug)]
pub(crate) struct Activity {
    peer: Option<SocketAddr>,
    /// The type of the service.
    service: &'static str,
    flags: AtomicU8,
    /// Written by the server.
    orders: AtomicU8,
    /// Set when the connection has given up its permit, because only its clone of the service is left.
    has_left: AtomicBool,
    /// How many requests have started.
    requests: AtomicU32,
    /// How many writes succeeded.
    writes: AtomicU32,
    /// How often a client that makes a write wait was found to have read something.
    takes: AtomicU32,
    /// How far responses are ahead of the writes.
    pub(crate) pace: Pace,
    /// The stream of events that hyper serves, if it does.
    pub(crate) events: EventSlot,
    /// The last request that started.
    request: RequestNote,
    /// Its route.
    route: AtomicU64,
    /// Which kind of request the connection works on, for the runtime.
    kind: WorkKind,
    /// Routes that were served without delay.
    known_routes: Arc<KnownRoutes>,
    /// Wakes the connection's job for an order.
    waker: Mutex<Option<Waker>>,
    /// The reading of the last request's body, if it had one.
    reading: Mutex<Option<Arc<Reading>>>,
    /// The reader of the last response, if it ever made a write wait.
    reader: Mutex<Option<Box<Reader>>>,
    /// What was written to the connection and is not yet sent.
    outlet: OnceLock<Weak<dyn Outlet>>,
    /// The connection's place in the order in which connections fell idle; see [`Registry`](crate::registry::Registry).
    idle_order: AtomicU64,
}

/// What keeps a connection from making room for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// A request is in flight, or the rest of its body is still to come.
    Serving,
    /// A part of a request's head has arrived.
    Reading,
    /// It gets its clone of the service, or waits for that while its client has sent something.
    Opening,
    /// It drops its clone of the service.
    Ending,
}

/// Where answers that are to leave together are held.
pub(crate) trait Outlet: std::fmt::Debug + Send + Sync {
    /// Sends what is held, as far as there is room. Called by any thread.
    fn send_now(&self);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Increments a counter that has only one writer.
fn increment(counter: &AtomicU32) {
    let count = counter.load(Ordering::Relaxed);
    counter.store(count.wrapping_add(1), Ordering::Relaxed);
}

impl Activity {
    /// `service` is the type of the service, for reports.
    pub(crate) fn new(
        peer: Option<SocketAddr>,
        service: &'static str,
        known_routes: Arc<KnownRoutes>,
    ) -> Arc<Activity> {
        Arc::new(Activity {
            peer,
            service,
            flags: AtomicU8::new(0),
            orders: AtomicU8::new(0),
            has_left: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            writes: AtomicU32::new(0),
            takes: AtomicU32::new(0),
            pace: Pace::default(),
            events: EventSlot::default(),
            request: RequestNote::new(),
            route: AtomicU64::new(0),
            kind: WorkKind::new(),
            known_routes,
            waker: Mutex::new(None),
            reading: Mutex::new(None),
            reader: Mutex::new(None),
            outlet: OnceLock::new(),
            idle_order: AtomicU64::new(u64::MAX),
        })
    }

    /// Changes the flags. Only the connection's job may call this, and the server before it spawns that job.
    fn change(&self, unset: u8, set: u8) {
        // Relaxed, as everywhere in this file: the flags guard no other memory, and a wake follows each order.
        let flags = self.flags.load(Ordering::Relaxed);
        let now = flags & !unset | set;
        self.flags.store(now, Ordering::Relaxed);
        if flags & AT_WORK != 0 && now & AT_WORK == 0 {
            // Nothing in particular.
            self.kind.set(0);
        }
    }

    fn has(&self, flags: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    /// Bytes have arrived.
    pub(crate) fn received(&self) {
        // Bytes that arrive late for a body are not the next head.
        if !self.has(IN_FLIGHT) && !self.awaits_body() {
            self.change(0, HEAD);
        }
    }

    /// Bytes were written, and are held.
    pub(crate) fn held(&self) {
        self.change(0, UNFLUSHED);
    }

    /// This many bytes were sent.
    pub(crate) fn wrote(&self, bytes: usize) {
        increment(&self.writes);
        self.pace.wrote();
        if self.has(METERED) {
            self.meter(|reader| reader.wrote(bytes));
        }
        self.change(BLOCKED, UNFLUSHED);
    }

    /// A write found no room, while the client has not taken this many bytes.
    pub(crate) fn write_blocked(&self, unread: usize) {
        if !self.has(METERED) {
            // The first time since the request began.
            let _former = lock(&self.reader).take();
        }
        self.meter(|reader| {
            if reader.waits(unread) {
                increment(&self.takes);
            }
        });
        self.change(0, BLOCKED | UNFLUSHED | METERED);
    }

    #[cold]
    fn meter(&self, change: impl FnOnce(&mut Reader)) {
        change(lock(&self.reader).get_or_insert_default());
    }

    /// How much longer the client may let a write wait.
    pub(crate) fn write_left(&self, rate: MinRate) -> Duration {
        let reader = lock(&self.reader);
        reader
            .as_ref()
            .map_or(Duration::MAX, |reader| reader.left(rate))
    }

    /// Whether a piece of a response waited for a write, and there was one or there is room.
    pub(crate) fn must_poll_again(&self) -> bool {
        self.pace.has_waited() && !self.has(BLOCKED)
    }

    /// Everything written was sent, perhaps by the thread that sends held answers.
    pub(crate) fn flushed(&self) {
        self.pace.wrote();
        self.change(UNFLUSHED | BLOCKED, 0);
    }

    /// The connection only waits for its client to notice the end. It is the first to make room for another one.
    pub(crate) fn linger(&self) {
        self.change(u8::MAX, LINGERING);
    }

    /// Whether the last answer was sent, so that nothing is lost if the connection is stopped.
    pub(crate) fn is_lingering(&self) -> bool {
        self.has(LINGERING)
    }

    /// A request goes to the service. Returns the reading of its body, if it has one. Called by
    /// [`RequestGuard`](crate::in_flight::RequestGuard), as the next two functions are.
    pub(crate) fn begin_request<B: http_body::Body>(
        &self,
        request: &Request<B>,
    ) -> Option<Arc<Reading>> {
        increment(&self.requests);
        self.note(request.method(), request.uri());
        let (body, reading) = match request.body().is_end_stream() {
            true => (0, None),
            false => (BODY, Some(Arc::new(Reading::default()))),
        };
        // Most requests have no body, and then there is nothing to replace.
        if reading.is_some() || self.has(BODY) {
            lock(&self.reading).clone_from(&reading);
        }
        // The reader of an earlier response may still make a write wait, if requests were sent without waiting.
        let metered = match self.has(BLOCKED) {
            true => 0,
            false => METERED,
        };
        self.change(HEAD | BODY | ANSWERED | metered, IN_FLIGHT | body);
        reading
    }

    /// The service has returned a response.
    pub(crate) fn answered(&self) {
        self.change(0, ANSWERED);
    }

    /// The response was sent, or given up.
    pub(crate) fn end_request(&self) {
        self.judge_route();
        self.change(IN_FLIGHT, 0);
    }

    /// The connection is idle. Its last request would keep the buffer from which it was parsed.
    pub(crate) fn forget_request(&self) {
        self.request.clear();
    }

    /// Whether the connection is between two requests, the last one had no body, and nothing is left to send.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.has(LINGERING | BLOCKED | IN_FLIGHT | UNFLUSHED | HEAD | BODY)
    }

    /// Whether nothing that was written is left to send.
    pub(crate) fn has_sent_all(&self) -> bool {
        !self.has(UNFLUSHED | BLOCKED)
    }

    pub(crate) fn phase(&self) -> Phase {
        if self.has(LINGERING) {
            Phase::Lingering
        } else if self.has(BLOCKED) {
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

    /// The generation of `phase`, which is the current phase: it changes when a new phase of the same kind
    /// starts.
    pub(crate) fn generation(&self, phase: Phase) -> Generation {
        match phase {
            Phase::Blocked => (
                self.writes.load(Ordering::Relaxed),
                self.takes.load(Ordering::Relaxed),
            ),
            Phase::Body => (
                self.requests.load(Ordering::Relaxed),
                self.body_wait().unwrap_or(0),
            ),
            _ => (self.requests.load(Ordering::Relaxed), 0),
        }
    }

    /// Whether the connection is between two requests. Hyper's buffer may hold the start of the next one.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.phase() == Phase::Quiet && !self.awaits_body()
    }

    /// Whether the connection can make room for another one: an order would end it at once.
    pub(crate) fn can_close(&self) -> bool {
        self.is_lingering() || self.is_between_requests()
    }

    /// What keeps the connection from making room, if something does.
    pub(crate) fn busy(&self) -> Option<Busy> {
        if self.can_close() {
            None
        } else if self.is_opening() || self.is_waiting() {
            Some(Busy::Opening)
        } else if self.is_ending() {
            Some(Busy::Ending)
        } else if self.phase() == Phase::Head {
            Some(Busy::Reading)
        } else {
            Some(Busy::Serving)
        }
    }

    /// Whether the service has responded to the last request, so that a part of the response may be written.
    /// `100 Continue` is not a response.
    pub(crate) fn has_answered(&self) -> bool {
        self.has(ANSWERED)
    }

    /// Whether any request has started yet.
    pub(crate) fn has_served(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Sets where answers to the client are held. This state does not keep it alive, because wakers of the job may keep
    /// this state for long.
    pub(crate) fn set_outlet(&self, outlet: Weak<dyn Outlet>) {
        let _set_once = self.outlet.set(outlet);
    }

    /// Sends the answers that are held for the client, because the next answer may take long.
    pub(crate) fn send_now(&self) {
        let outlet = self.outlet.get().and_then(Weak::upgrade);
        if let Some(outlet) = outlet {
            outlet.send_now();
        }
    }

    /// The type of the service.
    pub(crate) fn service(&self) -> &'static str {
        self.service
    }

    /// From now on the connection is idle, with this number; with `u64::MAX` it is no longer idle.
    pub(crate) fn set_idle_order(&self, order: u64) {
        self.idle_order.store(order, Ordering::Relaxed);
    }

    /// The lower the number, the longer the connection has been idle; `u64::MAX` if it is not idle,
    /// or only for a short time.
    pub(crate) fn idle_order(&self) -> u64 {
        self.idle_order.load(Ordering::Relaxed)
    }

    /// Sets the waker of the connection's job, which an order wakes.
    pub(crate) fn set_waker(&self, waker: Waker) {
        let former = lock(&self.waker).replace(waker);
        drop(former);
    }

    /// Whether the caller holds up the connection's job.
    pub(crate) fn is_held_up_here(&self) -> bool {
        lock(&self.waker)
            .as_ref()
            .is_some_and(weald_kernel::holds_up)
    }

    /// Drops the waker: the connection's job has ended. The job's description is this very state, so a waker that stays
    /// would keep both.
    pub(crate) fn forget_waker(&self) {
        let former = lock(&self.waker).take();
        drop(former);
    }

    /// Makes the connection's job look at its orders. The orders were set before this takes the lock, so a job that
    /// sets its waker after the lock was released sees them.
    pub(crate) fn wake(&self) {
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Describes the connection for a report.
    pub(crate) fn describe(&self) -> Unfinished {
        let is_at_work = self.has(AT_WORK) || self.awaits_body();
        let request = is_at_work.then(|| self.request.read()).flatten();
        Unfinished {
            peer: self.peer,
            request,
            step: match (self.is_opening() || self.is_waiting(), self.is_ending()) {
                (true, _) => Step::Opening,
                (_, true) => Step::Ending,
                _ => Step::Serving,
            },
        }
    }
}
