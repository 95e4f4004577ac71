//! The children of one supervisor: how they are started, ended and started again.
//!
//! This is code of the supervisor's process; nobody else calls it.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use weald_kernel::{Unit, catch_panic, now, sleep_until, timeout};

use crate::{
    call::{CallError, answer},
    exit::ExitReason,
    inbox::Inbox,
    signal::{
        link::{link, send_exit, unlink},
        monitor::monitor_unit,
        signals::ProcessId,
    },
    supervisor::spec::{ChildSpec, Message, Restart, Shutdown, StartError, Starting, Strategy},
};

/// A child, running or not.
pub(crate) struct Child {
    pub(crate) spec: ChildSpec,
    pub(crate) unit: Option<Unit>,
    /// When it is started again, if it is to be.
    due: Option<Instant>,
    since: Option<Instant>,
    failures: u32,
}

pub(crate) struct Children {
    pub(crate) list: Vec<Child>,
    pub(crate) strategy: Strategy,
    pub(crate) intensity: (usize, Duration),
    restarts: VecDeque<Instant>,
}

/// A pause that is too long to compute with counts as this one.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Too many restarts.
pub(crate) struct GaveUp;

impl Child {
    pub(crate) fn is(&self, id: &str) -> bool {
        self.spec.id == id
    }

    pub(crate) fn is_restarting(&self) -> bool {
        self.due.is_some()
    }

    /// Starts the child, which does not run.
    async fn start(&mut self, inbox: &mut Inbox<Message>) -> Result<(), StartError> {
        self.due = None;
        let id = self.spec.id.clone().into_owned();
        let failed = |reason: String| StartError::Failed { child: id, reason };
        let (reply, ready) = answer(
            self.spec
                .ready_within
                .and_then(|within| now().checked_add(within)),
        );
        let mut starting = Starting {
            ready: self.spec.ready_within.map(|_| reply),
        };
        // The text of the error is user code, too.
        let started = catch_panic(|| (self.spec.start)(&mut starting).map_err(|e| e.to_string()));
        drop(starting);
        let unit = match started {
            Some(Ok(unit)) => unit,
            Some(Err(error)) => return Err(failed(error)),
            None => return Err(failed("its start function panicked".to_owned())),
        };
        // The supervisor cannot end before this: it has not waited.
        adopt(inbox, &unit);
        if self.spec.ready_within.is_some()
            && let Err(error) = ready.await
        {
            stop(inbox, &unit, Shutdown::Kill).await;
            return Err(failed(match error {
                CallError::TimedOut => "it was not ready in time".to_owned(),
                CallError::NoReply => "it has given up to say that it is ready".to_owned(),
                CallError::Died(reason) => reason.to_string(),
            }));
        }
        self.unit = Some(unit);
        self.since = Some(now());
        Ok(())
    }

    async fn stop(&mut self, inbox: &mut Inbox<Message>) {
        self.due = None;
        if let Some(unit) = self.unit.take() {
            stop(inbox, &unit, self.spec.shutdown).await;
        }
    }

    /// When it is started again.
    fn next_start(&mut self) -> Instant {
        let Some(backoff) = self.spec.backoff else {
            return now();
        };
        let was_up = self.since.take().map(|since| now() - since);
        if was_up.is_some_and(|time| time > backoff.longest) {
            self.failures = 0;
        }
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let pause = backoff.first.saturating_mul(factor).min(backoff.longest);
        self.failures = (self.failures + 1).min(31);
        let pause = pause.saturating_add(pause.mul_f64(0.25 * self.jitter()));
        let now = now();
        now.checked_add(pause).unwrap_or_else(|| now + CENTURY)
    }

    /// A number from 0 to 1, another one for each child and failure: children that failed together are started one by
    /// one. It does not depend on the run.
    fn jitter(&self) -> f64 {
        let seed = u64::from(self.failures).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = self
            .spec
            .id
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, step);
        f64::from(u16::try_from(hash >> 48).unwrap_or(u16::MAX)) / f64::from(u16::MAX)
    }
}

/// Links a unit. If it was linked when it was spawned, and has ended since, the end is reported once.
fn adopt(inbox: &mut Inbox<Message>, unit: &Unit) {
    link(unit);
    if !unit.is_done() {
        return;
    }
    let id = Some(ProcessId::of(unit));
    let mut is_known = false;
    let _twice = inbox.take_if(|message| match message {
        Message::Exit(exit) if exit.from == id => std::mem::replace(&mut is_known, true),
        _ => false,
    });
}

/// Ends a unit and waits for its end.
async fn stop(inbox: &mut Inbox<Message>, unit: &Unit, shutdown: Shutdown) {
    let id = ProcessId::of(unit);
    let mut monitor = monitor_unit(Some(unit));
    unlink(unit);
    // What it sent before is no news.
    while inbox
        .take_if(|message| matches!(message, Message::Exit(exit) if exit.from == Some(id)))
        .is_some()
    {}
    match shutdown {
        Shutdown::Kill => unit.kill(),
        Shutdown::After(time) => {
            send_exit(unit, &ExitReason::Shutdown);
            if timeout(time, &mut monitor).await.is_ok() {
                return;
            }
            unit.kill();
        }
        Shutdown::Infinity => send_exit(unit, &ExitReason::Shutdown),
    }
    monitor.await;
}

impl Children {
    pub(crate) fn new(strategy: Strategy, intensity: (usize, Duration)) -> Children {
        Children {
            list: Vec::new(),
            strategy,
            intensity,
            restarts: VecDeque::new(),
        }
    }

    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.list.iter().position(|child| child.is(id))
    }

    /// Starts one more child, behind the others.
    pub(crate) async fn add(
        &mut self,
        inbox: &mut Inbox<Message>,
        spec: ChildSpec,
    ) -> Result<(), StartError> {
        if self.place(&spec.id).is_some() {
            return Err(StartError::Exists(spec.id.into_owned()));
        }
        let mut child = Child {
            spec,
            unit: None,
            due: None,
            since: None,
            failures: 0,
        };
        child.start(inbox).await?;
        self.list.push(child);
        Ok(())
    }

    pub(crate) async fn start(
        &mut self,
        inbox: &mut Inbox<Message>,
        place: usize,
    ) -> Result<(), StartError> {
        self.list[place].start(inbox).await
    }

    pub(crate) async fn stop(&mut self, inbox: &mut Inbox<Message>, place: usize) {
        self.list[place].stop(inbox).await;
        if self.list[place].spec.restart == Restart::Temporary {
            self.list.remove(place);
        }
    }

    /// Ends all children, the last first.
    pub(crate) async fn stop_all(&mut self, inbox: &mut Inbox<Message>) {
        for child in self.list.iter_mut().rev() {
            child.stop(inbox).await;
        }
    }

    /// A unit has ended. False if it is no child.
    pub(crate) async fn ended(
        &mut self,
        inbox: &mut Inbox<Message>,
        id: Option<ProcessId>,
        reason: &ExitReason,
    ) -> Result<bool, GaveUp> {
        let is_it = |unit: &Unit| Some(ProcessId::of(unit)) == id;
        let place = self
            .list
            .iter()
            .position(|child| child.unit.as_ref().is_some_and(is_it));
        let Some(place) = place else {
            return Ok(false);
        };
        let child = &mut self.list[place];
        child.unit = None;
        let restarts = match child.spec.restart {
            Restart::Permanent => true,
            Restart::Transient => !reason.is_orderly(),
            Restart::Temporary => {
                self.list.remove(place);
                false
            }
        };
        if restarts {
            self.restart(inbox, place).await?;
        }
        Ok(true)
    }

    /// Restarts the child that has ended or failed to start, and whom the strategy restarts with it.
    async fn restart(&mut self, inbox: &mut Inbox<Message>, place: usize) -> Result<(), GaveUp> {
        self.count_restart()?;
        let with_it = match self.strategy {
            Strategy::OneForOne => place..place + 1,
            Strategy::OneForAll => 0..self.list.len(),
            Strategy::RestForOne => place..self.list.len(),
        };
        for child in self.list[with_it.clone()].iter_mut().rev() {
            child.stop(inbox).await;
        }
        let due = self.list[place].next_start();
        for child in &mut self.list[with_it] {
            child.due = Some(due);
        }
        // Those that are temporary are not started again.
        self.list.retain(|child| {
            child.spec.restart != Restart::Temporary || child.unit.is_some() || child.due.is_none()
        });
        Ok(())
    }

    fn count_restart(&mut self) -> Result<(), GaveUp> {
        let (most, period) = self.intensity;
        let now = now();
        let is_old = |time: &Instant| now - *time > period;
        while self.restarts.front().is_some_and(is_old) {
            self.restarts.pop_front();
        }
        self.restarts.push_back(now);
        match self.restarts.len() > most {
            true => Err(GaveUp),
            false => Ok(()),
        }
    }

    /// When the next child is started again.
    fn next_due(&self) -> Option<Instant> {
        self.list.iter().filter_map(|child| child.due).min()
    }

    /// Waits until a child is to be started again.
    pub(crate) fn due(&self) -> impl Future<Output = ()> + Send + use<> {
        let next = self.next_due();
        async move {
            match next {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether a child is to be started again now.
    pub(crate) fn has_due(&self) -> bool {
        self.next_due().is_some_and(|due| due <= now())
    }

    /// Starts the children that are due, in order. One that fails counts as a restart.
    pub(crate) async fn start_due(&mut self, inbox: &mut Inbox<Message>) -> Result<(), GaveUp> {
        let now = now();
        let mut place = 0;
        while place < self.list.len() {
            if self.list[place].due.is_some_and(|due| due <= now)
                && self.list[place].start(inbox).await.is_err()
            {
                return self.restart(inbox, place).await;
            }
            place += 1;
        }
        Ok(())
    }
}
