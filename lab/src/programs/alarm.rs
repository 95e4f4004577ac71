//! A timer that ends a wait of an epoll instance, to the microsecond: the limit of a wait itself is rounded up to a
//! millisecond.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// The timer.
#[derive(Debug)]
pub(super) struct Alarm(OwnedFd);

impl Alarm {
    /// A timer whose ends an epoll instance reports with these data. Each end is reported once, so nobody reads the
    /// timer.
    pub(super) fn new(epoll: &OwnedFd, data: u64) -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(epoll, &timer, epoll::EventData::new_u64(data), flags)?;
        Ok(Self(timer))
    }

    /// Ends at this moment, in place of an earlier one.
    pub(super) fn set(&self, due: Instant) -> Result<()> {
        let time = due.saturating_duration_since(Instant::now());
        let new = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            // Zero would stop the timer.
            it_value: timespec(time.max(Duration::from_nanos(1))),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &new).map(|_old| ())
    }
}

/// A time as the system has it.
pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::buffer::spare_capacity;

    #[test]
    fn a_wait_ends_when_the_alarm_is_due_and_not_before() {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let alarm = Alarm::new(&epoll, 7).unwrap();
        for micros in [0, 300, 2_000] {
            let due = Instant::now() + Duration::from_micros(micros);
            alarm.set(due).unwrap();
            let mut reports: Vec<epoll::Event> = Vec::with_capacity(4);
            epoll::wait(&epoll, spare_capacity(&mut reports), None).unwrap();
            assert!(Instant::now() >= due, "{micros} µs");
            assert_eq!(reports[0].data.u64(), 7);
        }
    }
}
