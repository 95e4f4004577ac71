//! Makes versions visible: the only places where a tree's slot is stored to.
//!
//! - Commits become visible in the order of their numbers, so who has seen one sees all before it.
//! - A commit over several trees becomes visible at one instant, by one store to a flag (as a descriptor
//!   does in the multi-word compare-and-swap of Harris, Fraser and Pratt, 2002; but here one writer only
//!   makes them, so nobody has to help). Readers neither wait for it nor try again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::line::Line;
use crate::request::wake;
use crate::root::{Joint, Root};

/// How many versions are kept, and those that were let go for it.
pub(crate) struct Retention {
    pub(crate) keep: usize,
    pub(crate) gone: Vec<Arc<Root>>,
}

/// Makes versions of one tree visible, of which readers may see the last one only.
pub(crate) fn one(line: &Line, roots: &mut Vec<Arc<Root>>, retention: &mut Retention) {
    let Some(newest) = roots.last().cloned() else {
        return;
    };
    let wakers = {
        let mut past = line.past();
        roots.drain(..).for_each(|root| past.add(root));
        past.shrink(retention.keep, &mut retention.gone);
        line.slot.store(newest);
        std::mem::take(&mut past.wakers)
    };
    wakers.into_values().for_each(|waker| wake(Some(waker)));
}

/// Wakes those who wait for another version of a tree of which there will be none.
pub(crate) fn last(line: &Line) {
    let wakers = std::mem::take(&mut line.past().wakers);
    wakers.into_values().for_each(|waker| wake(Some(waker)));
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
    let mut wakers = Vec::new();
    for ((line, after), past) in versions.iter().zip(&mut pasts) {
        past.add(Arc::clone(after));
        past.shrink(retention.keep, &mut retention.gone);
        line.slot.store(Arc::clone(after));
        wakers.push(std::mem::take(&mut past.wakers));
    }
    drop(pasts);
    let wakers = wakers.into_iter().flat_map(|wakers| wakers.into_values());
    wakers.for_each(|waker| wake(Some(waker)));
}
