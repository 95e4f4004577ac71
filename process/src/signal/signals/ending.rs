//! The end of a unit, as its signals see it: what it held is released, and then its peers are told.

use std::{mem, sync::Arc};

use weald_kernel::{Attachment, Ending};

use super::{Guard, Signals};
use crate::{
    exit::ExitReason,
    signal::telling::{self, Ended},
};

impl Signals {
    /// Notes why the unit has ended, and tells its peers. What it held is released.
    fn tell_end(&self, mut state: Guard<'_>, reason: ExitReason) {
        state.was_watched = state.is_watched();
        state.end = Some(reason.clone());
        let trap = state.trap.take();
        // Outside of the lock: a reason is a user value.
        let rare = state.rare.as_mut();
        let rare = rare.map(|rare| (mem::take(&mut rare.answers), rare.admission.take()));
        let (answers, admission) = rare.unzip();
        let admission = admission.flatten();
        let rest = (state.unit.take(), state.asked.take());
        let untold = Arc::default();
        let has_many = state.links.is_many() || state.monitors.is_many() || answers.is_some();
        let has_both = !state.links.is_empty() && !state.monitors.is_empty();
        state.untold = (has_many || has_both).then(|| Arc::clone(&untold));
        let ended = Ended {
            id: self.id,
            reason,
            links: state.links.take(),
            monitors: state.monitors.take(),
            answers,
            monitoring: state.monitoring.take(),
            untold,
        };
        drop(state);
        if let Some(trap) = trap {
            // A closure of the unit: everything that it holds is gone when the peers are told.
            telling::isolated(|| drop(trap));
        }
        if let Some(admission) = admission {
            // Its inbox may live on elsewhere; nobody waits for room in it.
            admission.close();
        }
        telling::tell(ended);
        let untold = self.lock().untold.take();
        drop((untold, rest));
    }
}

impl Attachment for Signals {
    fn ended(&self, ending: Ending) {
        let mut state = self.lock();
        state.releases = true;
        let held = state.rare.as_mut().map(|rare| mem::take(&mut rare.held));
        let held = held.unwrap_or_default();
        // Most units hold nothing, and did not panic: nothing is done for those between the two parts of their end.
        let is_plain = held.is_empty() && !matches!(ending, Ending::Panicked { .. });
        if !is_plain {
            let (asked, unit) = (state.asked.take(), state.unit.clone());
            drop(state);
            let Some(unit) = unit else { return };
            let reason = ExitReason::of_ending(ending, asked, || unit.name());
            for ((_, key), release) in held {
                // This tells the watchers of a group, by user code.
                telling::isolated(|| release(&key, self.id));
            }
            return self.tell_end(self.lock(), reason);
        }
        if state.unit.is_some() {
            let name = || unreachable!("only a crash has the name of its unit");
            // A copy: a reason that does not count is a value of the user, which must not be dropped under the
            // lock.
            let reason = ExitReason::of_ending(ending, state.asked.clone(), name);
            self.tell_end(state, reason);
        }
    }

    fn survived(&self) {
        let told = {
            let mut state = self.lock();
            let rare = state.rare();
            rare.survived = rare.survived.one_more();
            mem::take(&mut rare.answers)
        };
        for caller in told.into_values() {
            caller.tell(ExitReason::NoProcess);
        }
    }

    fn takes_long(&self) {
        let untold = self.lock().untold.clone();
        if let Some(untold) = untold {
            untold.tell_apart();
        }
    }

    fn is_watched(&self) -> bool {
        self.lock().is_watched()
    }
}
