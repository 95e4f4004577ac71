//! Makes versions visible: the only places where a tree's slot is stored to.
//!
//! - Commits become visible in the order of their numbers, so who has seen one sees all before it.
//! - A commit over several trees becomes visible at one instant, by one store to a flag (as a descriptor
//!   does in the multi-word compare-and-swap of Harris, Fraser and Pratt, 2002; but here one writer only
//!   makes them, so nobody has to help). Readers neither wait for it nor try again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::aftermath::Aftermath;
use crate::line::Line;
use crate::root::{Joint, Root};

/// How many versions are kept, and what is to be done about those that were let go and those who wait.
pub(crate) struct Retention {
    pub(crate) keep: usize,
    pub(crate) after: Aftermath,
}

/// Makes versions of one tree visible, of which readers may see the last one only.
pub(crate) fn one(line: &Line, roots: &mut Vec<Arc<Root>>, retention: &mut Retention) {
    let Some(newest) = roots.last().cloned() else {
        return;
    };
    let wakers = {
        let mut past = line.past();
        roots.drain(..).for_each(|root| past.add(root));
        past.shrink(retention.keep, &mut retention.after);
        line.slot.store(newest);
        std::mem::take(&mut past.wakers)
    };
    retention.after.wake_later(wakers.into_values());
}

/// Wakes those who wait for another version of a tree of which there will be none.
pub(crate) fn last(line: &Line, retention: &mut Retention) {
    let wakers = std::mem::take(&mut line.past().wakers);
    retention.after.wake_later(wakers.into_values());
}

/// Makes a version of each of several trees visible, all at once.
pub(crate) fn jointly(versions: Vec<(Arc<Line>, Arc<Root>)>, retention: &mut Retention) {
    let is_visible = Arc::new(AtomicBool::new(false));
    // All pasts are held, so that nobody looks up in one tree's past what another one's does not have
    // yet. Only the combiner ever holds more than one.
    let mut pasts: Vec<_> = versions.iter().map(|(line, _)| line.past()).collect();
    for ((line, after), past) in versions.iter().zip(&pasts) {
        line.slot.store(Arc::new(Root {
            line: after.line,
            tree: after.tree.clone(),
            commit: after.commit,
            bytes: after.bytes.clone(),
            indexes: after.indexes.clone(),
            joint: Some(Box::new(Joint {
                before: Arc::clone(past.newest()),
                after: Arc::clone(after),
                is_visible: Arc::clone(&is_visible),
            })),
        }));
    }
    // Release: pairs with the load in `Joint::meant`.
    is_visible.store(true, Ordering::Release);
    for ((line, after), past) in versions.iter().zip(&mut pasts) {
        past.add(Arc::clone(after));
        past.shrink(retention.keep, &mut retention.after);
        line.slot.store(Arc::clone(after));
        let wakers = std::mem::take(&mut past.wakers);
        retention.after.wake_later(wakers.into_values());
    }
}
