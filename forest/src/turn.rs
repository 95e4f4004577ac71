//! Turns: one `update` at a time may be the only one who commits to a tree, for ten milliseconds at first.
//!
//! - Who has lost three races asks for the tree's turn. Whoever comes while somebody has it waits behind
//!   it, in the order of coming, be it a commit or another one who wants the turn.
//! - A turn that lasts longer than its limit while others wait is taken away and reported. Its owner may
//!   still commit, as everybody else does. The limit is [`LIMIT`], and twice as much each time that the same
//!   update has to ask again.
//! - The map is empty nearly always, and asking it is then one comparison.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::forest::Shared;
use crate::request::{Bid, Pending, Request, Work};

/// How long the first turn of an update lasts when others wait.
pub(crate) const LIMIT: Duration = Duration::from_millis(10);

/// The turns that are taken, by the number of the tree.
#[derive(Default)]
pub(crate) struct Turns(HashMap<u64, Turn>);

struct Turn {
    bid: Bid,
    since: Duration,
    waiting: VecDeque<Arc<Pending>>,
}

impl Turns {
    /// The number of a tree that this commit would touch and whose turn somebody else has.
    #[inline]
    pub(crate) fn in_the_way(&self, shared: &Shared, work: &Work) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        let is_others = |number: &u64| {
            let turn = self.0.get(number);
            turn.is_some_and(|turn| Some(turn.bid.ticket) != work.turn)
        };
        let name = work.what.named();
        let named = name.and_then(|name| shared.names().get(name).cloned());
        let lines = work.what.lines().chain(&named);
        lines.map(|line| line.number).find(is_others)
    }

    /// Takes the turn if it is free.
    pub(crate) fn take(&mut self, bid: &Bid, now: Duration) -> bool {
        if self.0.contains_key(&bid.line.number) {
            return false;
        }
        let turn = Turn {
            bid: bid.clone(),
            since: now,
            waiting: VecDeque::new(),
        };
        self.0.insert(bid.line.number, turn);
        true
    }

    /// Ends a turn; those who waited for it are to be served now, in this order.
    pub(crate) fn leave(&mut self, bid: &Bid) -> VecDeque<Arc<Pending>> {
        let number = bid.line.number;
        let has_it = |turn: &Turn| turn.bid.ticket == bid.ticket;
        if !self.0.get(&number).is_some_and(has_it) {
            return VecDeque::new();
        }
        self.0
            .remove(&number)
            .map_or_else(VecDeque::new, |turn| turn.waiting)
    }

    /// Lets a request wait until a turn has ended; the first one sets an alarm.
    pub(crate) fn wait(&mut self, shared: &Arc<Shared>, number: u64, pending: Arc<Pending>) {
        let turn = self.0.get_mut(&number);
        let turn = turn.expect("the turn was found in the way, and only the combiner ends turns");
        turn.waiting.push_back(pending);
        if turn.waiting.len() == 1 {
            let alarm = Alarm(Arc::downgrade(shared));
            let deadline = turn.since + turn.bid.limit;
            let waker = Waker::from(Arc::new(alarm));
            // If the clock panics nobody takes the turn away; it ends when its owner leaves it.
            let _ = catch_unwind(AssertUnwindSafe(|| shared.clock.wake_at(deadline, waker)));
        }
    }

    /// Ends the turns that lasted too long while others wait; those are to be served now.
    pub(crate) fn revoke(
        &mut self,
        now: Duration,
        report: impl Fn(&Bid, Duration),
    ) -> VecDeque<Arc<Pending>> {
        let mut freed = VecDeque::new();
        self.0.retain(|_, turn| {
            let is_over = turn.since + turn.bid.limit <= now && !turn.waiting.is_empty();
            if is_over {
                report(&turn.bid, now - turn.since);
                freed.append(&mut turn.waiting);
            }
            !is_over
        });
        freed
    }
}

/// Looks at the turns of a forest when a clock wakes it.
struct Alarm(Weak<Shared>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.ask_without_waiting(Request::LookAtTurns);
        }
    }
}
