//! The interface to the system: an epoll instance, and an eventfd that ends a wait in it.
//!
//! Descriptors are registered once, for both directions, and the system reports them when something changes
//! (edge-triggered). The eventfd, the *notice*, is level-triggered: it is reported until it is read, so a thread that
//! only polls cannot take it from the thread that waits.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{
        EventfdFlags, PollFd, PollFlags, Timespec,
        epoll::{self, EventData, EventFlags},
        eventfd,
    },
    io::Errno,
};

use crate::reactor::slot::Readiness;

/// The number under which the notice is reported; no slot has it.
const NOTICE: u64 = u64::MAX;
/// How many events are taken at once, at most.
const MOST_EVENTS: usize = 256;

pub(crate) struct Poller {
    epoll: OwnedFd,
    notice: OwnedFd,
}

/// Readiness events that were taken and not yet handled; never the notice.
#[derive(Default)]
pub(crate) struct ReadyEvents(Vec<epoll::Event>);

/// A readiness event of the descriptor of a slot.
pub(crate) struct ReadyEvent {
    pub(crate) index: u32,
    pub(crate) readiness: Readiness,
}

impl ReadyEvents {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = ReadyEvent> {
        self.0.drain(..).map(|event| {
            let (data, flags) = (event.data, event.flags);
            let index = u32::try_from(data.u64()).expect("slots are registered by their numbers");
            let readiness = readiness_of(flags);
            ReadyEvent { index, readiness }
        })
    }

    /// Removes the notice. True if it was among the events.
    fn take_notice(&mut self) -> bool {
        let count = self.0.len();
        self.0.retain(|event| { event.data }.u64() != NOTICE);
        self.0.len() < count
    }
}

fn readiness_of(flags: EventFlags) -> Readiness {
    let mut readiness = Readiness::NONE;
    let failed = EventFlags::HUP | EventFlags::ERR;
    // At an urgent mark (`PRI`) the system ends a read, although more may follow.
    let reads_on = EventFlags::RDHUP | EventFlags::PRI | failed;
    if flags.intersects(EventFlags::IN | reads_on) {
        readiness = readiness.with(Readiness::READ);
    }
    if flags.intersects(EventFlags::OUT | failed) {
        readiness = readiness.with(Readiness::WRITE);
    }
    if flags.intersects(reads_on) {
        readiness = readiness.with(Readiness::READ_ON);
    }
    if flags.intersects(failed) {
        readiness = readiness.with(Readiness::WRITE_ON);
    }
    readiness
}

/// `left` rounded down to milliseconds, at most a day; none if that is zero.
fn whole_milliseconds(left: Duration) -> Option<Timespec> {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let left = left.min(DAY);
    let nanoseconds = left.subsec_millis() * 1_000_000;
    let whole = Timespec {
        tv_sec: i64::try_from(left.as_secs()).expect("a day has fewer seconds"),
        tv_nsec: nanoseconds.into(),
    };
    (left >= Duration::from_millis(1)).then_some(whole)
}

impl Poller {
    pub(crate) fn open() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let notice = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &notice, EventData::new_u64(NOTICE), EventFlags::IN)?;
        Ok(Poller { epoll, notice })
    }

    pub(crate) fn add(&self, descriptor: BorrowedFd<'_>, index: u32) -> io::Result<()> {
        let read = EventFlags::IN | EventFlags::PRI | EventFlags::RDHUP;
        let both = read | EventFlags::OUT | EventFlags::ET;
        let data = EventData::new_u64(u64::from(index));
        Ok(epoll::add(&self.epoll, descriptor, data, both)?)
    }

    pub(crate) fn remove(&self, descriptor: BorrowedFd<'_>) {
        // Fails only for a descriptor that is not registered, which is the desired state.
        let _unknown = epoll::delete(&self.epoll, descriptor);
    }

    /// Takes what is reported now. Leaves the notice to the thread with the poller lock.
    pub(crate) fn poll(&self, events: &mut ReadyEvents) {
        self.epoll_wait(events, Some(&Timespec::default()));
        events.take_notice();
    }

    /// Takes what is reported within `left`; also returns when notified, interrupted, or up to a millisecond
    /// early. Only the thread with the poller lock.
    pub(crate) fn wait(&self, events: &mut ReadyEvents, left: Option<Duration>) {
        match left {
            None => self.epoll_wait(events, None),
            // epoll counts in milliseconds, too coarse for the last part of a timer's wait.
            Some(left) => match whole_milliseconds(left) {
                Some(whole) => self.epoll_wait(events, Some(&whole)),
                None => self.wait_briefly(events, left),
            },
        }
        if events.take_notice() {
            // Only this thread reads the notice, so it is still there. If the read fails, nothing needs the notice.
            let _taken = rustix::io::read(&self.notice, &mut [0; 8]);
        }
    }

    /// Waits for less than a millisecond, with `ppoll`, which counts in nanoseconds; then takes the events.
    fn wait_briefly(&self, events: &mut ReadyEvents, left: Duration) {
        let left = Timespec {
            tv_sec: 0,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut epoll = [PollFd::new(&self.epoll, PollFlags::IN)];
        // An interrupted wait is a short one.
        let _ready = rustix::event::poll(&mut epoll, Some(&left));
        self.epoll_wait(events, Some(&Timespec::default()));
    }

    fn epoll_wait(&self, events: &mut ReadyEvents, left: Option<&Timespec>) {
        events.0.reserve(MOST_EVENTS);
        // An interrupted call reports nothing.
        let _count = epoll::wait(&self.epoll, spare_capacity(&mut events.0), left);
    }

    pub(crate) fn notify(&self) {
        // A full counter is readable too, so a failed write still ends the wait.
        if let Err(error) = rustix::io::write(&self.notice, &1_u64.to_ne_bytes()) {
            debug_assert_eq!(error, Errno::AGAIN, "an eventfd accepts a number");
        }
    }
}
