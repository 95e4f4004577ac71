//! The children of one supervisor: how they are started, ended and started again.
//!
//! This is code of the supervisor's process; nobody else calls it.
//!
//! Invariants:
//! - A child's place is its number in the order of starts. It never changes, and no later child gets it.
//! - `by_id` has the place of every child, `by_unit` of those that run, `dues` of those that are to be started again.
//!   So only operations on all children take time in proportion to their number.
//! - When the supervisor itself has ended a child, the unit is no longer in `by_unit`, and an exit signal that it may
//!   have left is ignored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use weald_kernel::{Unit, is_shutting_down, now, sleep_until};

use crate::{
    exit::ExitReason,
    inbox::Inbox,
    signal::signals::ProcessId,
    supervisor::{
        error::{ChildFault, GaveUp, StartError},
        spec::{ChildCounts, ChildSpec, Restart, Strategy, SupervisorMessage},
        units::{Place, Units, stop},
    },
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
    list: BTreeMap<Place, Child>,
    next: u64,
    by_id: BTreeMap<Cow<'static, str>, Place>,
    units: Units,
    dues: BTreeSet<(Instant, Place)>,
    strategy: Strategy,
    intensity: (usize, Duration),
    restarts: VecDeque<Instant>,
}

/// Whether a child runs.
#[derive(Clone, Copy)]
pub(crate) enum Activity {
    Runs,
    /// It is to be started again.
    Restarts,
    Idle,
}

/// A pause that is too long to compute with counts as this one.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Child {
    pub(crate) fn is_restarting(&self) -> bool {
        self.due.is_some()
    }

    fn runs_as(&mut self, unit: Unit) {
        self.unit = Some(unit);
        self.since = Some(now());
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

    /// A number from 0 to 1, which differs for each child and failure, so that children that failed together are
    /// started one by one. It is the same in each run.
    fn jitter(&self) -> f64 {
        let seed = u64::from(self.failures).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = self
            .spec
            .id
            .bytes()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, step);
        // The last bytes, by which ids differ most often, have not reached the high bits yet.
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        f64::from(u16::try_from(hash >> 48).unwrap_or(u16::MAX)) / f64::from(u16::MAX)
    }
}

fn not_started(id: &str, fault: ChildFault) -> StartError {
    StartError::Failed {
        child: id.to_owned(),
        reason: fault,
    }
}

impl Children {
    /// `parent` is the unit that spawned the supervisor.
    pub(crate) fn new(
        strategy: Strategy,
        intensity: (usize, Duration),
        parent: Option<ProcessId>,
    ) -> Children {
        Children {
            list: BTreeMap::new(),
            next: 0,
            by_id: BTreeMap::new(),
            units: Units::new(parent),
            dues: BTreeSet::new(),
            strategy,
            intensity,
            restarts: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn counts(&self) -> ChildCounts {
        ChildCounts {
            specs: self.list.len(),
            running: self.units.by_unit.len(),
            restarting: self.dues.len(),
        }
    }

    /// The children, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Child> {
        self.list.values()
    }

    /// The place of the child with this id, and what it does.
    pub(crate) fn find(&self, id: &str) -> Option<(Place, Activity)> {
        let place = *self.by_id.get(id)?;
        let child = self.list.get(&place)?;
        let activity = match (&child.unit, child.due) {
            (Some(_), _) => Activity::Runs,
            (None, Some(_)) => Activity::Restarts,
            (None, None) => Activity::Idle,
        };
        Some((place, activity))
    }

    /// Starts one more child, behind the others.
    pub(crate) async fn add(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
        spec: ChildSpec,
    ) -> Result<(), StartError> {
        if self.by_id.contains_key(&spec.id) {
            return Err(StartError::Exists(spec.id.into_owned()));
        }
        let id = spec.id.clone();
        let mut child = Child {
            spec,
            unit: None,
            due: None,
            since: None,
            failures: 0,
        };
        let started = self.units.launch(inbox, &mut child.spec).await;
        let unit = started.map_err(|fault| not_started(&id, fault))?;
        let place = Place(self.next);
        self.next += 1;
        self.units.by_unit.insert(ProcessId::of(&unit), place);
        child.runs_as(unit);
        self.list.insert(place, child);
        self.by_id.insert(id, place);
        Ok(())
    }

    /// Starts a child that does not run.
    pub(crate) async fn start(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
        place: Place,
    ) -> Result<(), StartError> {
        let started = self.launch(inbox, place).await;
        let id = |place| self.list.get(&place).map_or("", |child| &*child.spec.id);
        started.map_err(|fault| not_started(id(place), fault))
    }

    async fn launch(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
        place: Place,
    ) -> Result<(), ChildFault> {
        self.set_due(place, None);
        if let Some(child) = self.list.get_mut(&place) {
            let unit = self.units.launch(inbox, &mut child.spec).await?;
            self.units.by_unit.insert(ProcessId::of(&unit), place);
            child.runs_as(unit);
        }
        Ok(())
    }

    /// Ends a child, and forgets it if it is temporary.
    pub(crate) async fn terminate(&mut self, place: Place) {
        self.stop(place).await;
        let child = self.list.get(&place);
        if child.is_some_and(|child| child.spec.restart == Restart::Temporary) {
            self.remove(place);
        }
    }

    /// Forgets a child that does not run.
    pub(crate) fn remove(&mut self, place: Place) {
        self.set_due(place, None);
        if let Some(child) = self.list.remove(&place) {
            self.by_id.remove(&child.spec.id);
        }
    }

    /// Ends all children, the last first.
    pub(crate) async fn stop_all(&mut self) {
        let places: Vec<Place> = self.list.keys().copied().collect();
        for place in places.into_iter().rev() {
            self.stop(place).await;
        }
    }

    /// Ends a child, if it runs. It is not to be started again.
    async fn stop(&mut self, place: Place) {
        self.set_due(place, None);
        let Some(child) = self.list.get_mut(&place) else {
            return;
        };
        if let Some(unit) = child.unit.take() {
            self.units.by_unit.remove(&ProcessId::of(&unit));
            stop(&unit, child.spec.shutdown).await;
        }
    }

    fn set_due(&mut self, place: Place, due: Option<Instant>) {
        let Some(child) = self.list.get_mut(&place) else {
            return;
        };
        let before = std::mem::replace(&mut child.due, due);
        if let Some(before) = before {
            self.dues.remove(&(before, place));
        }
        self.dues.extend(due.map(|due| (due, place)));
    }

    /// A unit has ended. False if it is no child.
    pub(crate) async fn ended(
        &mut self,
        id: ProcessId,
        reason: &ExitReason,
    ) -> Result<bool, GaveUp> {
        let Some(place) = self.units.by_unit.remove(&id) else {
            return Ok(false);
        };
        let Some(child) = self.list.get_mut(&place) else {
            return Ok(false);
        };
        child.unit = None;
        match child.spec.restart {
            Restart::Transient if reason.is_orderly() => {}
            Restart::Permanent | Restart::Transient => {
                self.restart(place, ChildFault::Ended(reason.clone()))
                    .await?;
            }
            Restart::Temporary => self.remove(place),
        }
        Ok(true)
    }

    /// Restarts the child that has ended or failed to start, and those that the strategy restarts with it.
    async fn restart(&mut self, place: Place, fault: ChildFault) -> Result<(), GaveUp> {
        if self.is_one_restart_too_many() {
            return Err(self.give_up(place, fault));
        }
        let with_it: Vec<Place> = match self.strategy {
            Strategy::OneForOne => vec![place],
            Strategy::OneForAll => self.list.keys().copied().collect(),
            Strategy::RestForOne => self.list.range(place..).map(|(place, _)| *place).collect(),
        };
        for other in with_it.iter().rev() {
            self.stop(*other).await;
        }
        let due = self.list.get_mut(&place).map(Child::next_start);
        for other in with_it {
            // Those that are temporary are not started again.
            match self.list.get(&other).map(|child| child.spec.restart) {
                Some(Restart::Temporary) => self.remove(other),
                _ => self.set_due(other, due),
            }
        }
        Ok(())
    }

    fn give_up(&self, place: Place, fault: ChildFault) -> GaveUp {
        let (restarts, period) = self.intensity;
        let child = self.list.get(&place).map(|child| child.spec.id.to_string());
        GaveUp {
            child: child.unwrap_or_default(),
            fault,
            restarts,
            period,
        }
    }

    fn is_one_restart_too_many(&mut self) -> bool {
        let (most, period) = self.intensity;
        if most == usize::MAX {
            return false;
        }
        let now = now();
        let is_old = |time: &Instant| now - *time > period;
        while self.restarts.front().is_some_and(is_old) {
            self.restarts.pop_front();
        }
        self.restarts.push_back(now);
        self.restarts.len() > most
    }

    /// When the next child is started again.
    fn next_due(&self) -> Option<Instant> {
        self.dues.first().map(|(due, _)| *due)
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

    /// Why the supervisor is to end, if it was told to while it waited for a child that is not ready.
    pub(crate) fn told_to_end(&self) -> Option<&ExitReason> {
        self.units.told_to_end()
    }

    /// Starts the children that are due, in order. One that fails counts as a restart, unless the supervisor is to end.
    pub(crate) async fn start_due(
        &mut self,
        inbox: &mut Inbox<SupervisorMessage>,
    ) -> Result<(), GaveUp> {
        let now = now();
        let due = self.dues.iter().take_while(|(due, _)| *due <= now);
        let mut places: Vec<Place> = due.map(|(_, place)| *place).collect();
        places.sort_unstable();
        for place in places {
            let Err(fault) = self.launch(inbox, place).await else {
                continue;
            };
            if is_shutting_down() {
                // No child is to blame for that.
                self.units.end_if_none_runs();
                return Ok(());
            }
            return match self.told_to_end() {
                Some(_) => Ok(()),
                None => self.restart(place, fault).await,
            };
        }
        Ok(())
    }
}
