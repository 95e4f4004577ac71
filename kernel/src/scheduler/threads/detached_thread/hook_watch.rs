//! The watch over a panic hook that was reported, until it is over, or has gone on for so long that it blocks.
//!
//! Times are counted from the begin of the run. The hook may begin late in it, so what counts is the time since the hook
//! was reported.

use std::time::Duration;

/// A panic hook that has run for this long, or for the bound if that is more, blocks: backtraces take less.
pub(in crate::scheduler::threads) const LONG_HOOK: Duration = Duration::from_millis(500);

/// How long a hook may run after it was reported until a warning tells of it. `bound`: how long a run may take.
pub(in crate::scheduler::threads) fn long_hook(bound: Duration) -> Duration {
    LONG_HOOK.max(bound)
}

/// See the head of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::scheduler::threads) enum HookWatch {
    /// No hook was reported, or a report has told that it still runs.
    #[default]
    Nothing,
    /// It was reported when the run had lasted for so long.
    Since(Duration),
}

impl HookWatch {
    /// The hook is reported now, when the run has lasted for `held`.
    pub(in crate::scheduler::threads) fn begin(held: Duration) -> HookWatch {
        HookWatch::Since(held)
    }

    pub(in crate::scheduler::threads) fn is_watching(self) -> bool {
        self != HookWatch::Nothing
    }

    /// The hook still runs, and its run has lasted for `held`. If it is a long one by now: for how long it has run, at
    /// least. The watch is over then.
    pub(in crate::scheduler::threads) fn look(
        &mut self,
        held: Duration,
        bound: Duration,
    ) -> Option<Duration> {
        let HookWatch::Since(reported) = *self else {
            return None;
        };
        let ran = held.saturating_sub(reported);
        let is_long = ran >= long_hook(bound);
        if is_long {
            *self = HookWatch::Nothing;
        }
        is_long.then_some(ran)
    }
}
