//! The rows of what processes have of Erlang's: links, monitors and exits, calls, groups.

use super::row::{Level, Row};
use crate::params::Params;

/// All rows of these workloads.
pub(super) fn rows(level: Level) -> Vec<Row> {
    let is_quick = level == Level::Quick;
    let sized = |quick: usize, usual: usize| if is_quick { quick } else { usual };
    let lifecycle = Params::default().with("n", sized(20_000, 100_000));
    let mut rows = vec![Row::new("lifecycle", lifecycle)];
    for (callee, timeout) in [
        ("process", "no"),
        ("oneshot", "no"),
        ("server", "no"),
        ("server", "yes"),
    ] {
        let params = Params::default().with("rounds", sized(100_000, 1_000_000));
        let params = params.with("callee", callee).with("timeout", timeout);
        rows.push(Row::new("call", params));
    }
    let behind = |waiting: usize| {
        let params = Params::default().with("waiting", waiting);
        params.with("rounds", sized(10_000, 100_000))
    };
    let queue = sized(100_000, 1_000_000);
    rows.push(Row::new("call-behind-queue", behind(queue)));
    for waiting in [0, queue] {
        rows.push(Row::new("reply", behind(waiting)).only_weald());
    }
    let broadcast = Params::default().with("members", sized(1_000, 10_000));
    rows.push(Row::new("broadcast", broadcast.with("rounds", 100)));
    rows
}
