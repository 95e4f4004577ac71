//! The watch over a run that exceeds the bound: whether a panic hook runs in it, or the job's own code, and whether a
//! hook that was reported has gone on for so long that it blocks.
//!
//! A hook is reported once, as information, and once more, as a warning, when it is a long one. Behind it the job's own
//! code runs, and is reported as the job's. The same holds if a check finds another hook than the one that was
//! reported: the job went on between the two. How the monitor tells hooks apart: [`SeenHook`].
//!
//! Times are counted from the beginning of the run. The hook may begin late in the run, so what counts is the time
//! since the hook was reported.

use std::time::Duration;

use crate::job::SeenHook;

/// A panic hook that has run for this long, or for the bound if that is more, blocks: backtraces take less.
pub(in crate::scheduler::threads) const LONG_HOOK: Duration = Duration::from_millis(500);

/// What was reported of the panic hook of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scheduler::threads) enum HookWatch {
    /// Nothing.
    #[default]
    Nothing,
    /// That it runs; how long the run had lasted then.
    Reported(Duration),
    /// That it is a long one.
    Warned,
}

/// What a check finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::scheduler::threads) enum FoundCode {
    Own,
    /// A hook that was not reported.
    Hook,
    /// The hook that was reported.
    ReportedHook,
}

impl HookWatch {
    /// A check, which has found `seen`.
    pub(in crate::scheduler::threads) fn check(&mut self, seen: SeenHook) -> FoundCode {
        match (seen, *self) {
            (SeenHook::New | SeenHook::Again, HookWatch::Nothing) => FoundCode::Hook,
            (SeenHook::Again, _) => FoundCode::ReportedHook,
            (SeenHook::None | SeenHook::New, _) => {
                *self = HookWatch::Nothing;
                FoundCode::Own
            }
        }
    }

    /// The hook is reported now, when the run has lasted for `held`.
    pub(in crate::scheduler::threads) fn begin(&mut self, held: Duration) {
        *self = HookWatch::Reported(held);
    }

    /// Whether a hook was reported, and no check has found that it is over.
    pub(in crate::scheduler::threads) fn is_begun(self) -> bool {
        self != HookWatch::Nothing
    }

    /// Whether a warning may still have to tell of the hook.
    pub(in crate::scheduler::threads) fn awaits_warning(self) -> bool {
        matches!(self, HookWatch::Reported(_))
    }

    /// The hook still runs, and its run has lasted for `held`. If a warning is to tell of it now: for how long it has
    /// run, at least. `bound`: how long a run may take.
    pub(in crate::scheduler::threads) fn warn(
        &mut self,
        held: Duration,
        bound: Duration,
    ) -> Option<Duration> {
        let HookWatch::Reported(since) = *self else {
            return None;
        };
        let ran = held.saturating_sub(since);
        let is_long = ran >= LONG_HOOK.max(bound);
        if is_long {
            *self = HookWatch::Warned;
        }
        is_long.then_some(ran)
    }
}
