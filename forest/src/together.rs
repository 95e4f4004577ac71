//! A snapshot of several trees at one moment.
//!
//! All slots are read twice. If no tree changed between, the roots stood beside each other in the moment
//! between both readings, because a tree never has a former root again. That fails only if others have
//! committed meanwhile; after [`TRIES`] the moment is fixed as a version instead, and each tree is looked
//! up in its past.

use std::sync::Arc;

use crate::line::Line;
use crate::root::Snapshot;

/// Readings before the pasts are asked.
const TRIES: usize = 4;

pub(crate) fn snapshot(lines: &[&Line]) -> Vec<Snapshot> {
    let mut roots = read(lines);
    for tries in 0.. {
        let again = read(lines);
        let mut both = roots.iter().zip(&again);
        if both.all(|(one, other)| Arc::ptr_eq(&one.0, &other.0)) {
            break;
        }
        roots = again;
        if tries >= TRIES
            && let Some(found) = look_up(lines, &roots)
        {
            return found;
        }
    }
    roots
}

fn read(lines: &[&Line]) -> Vec<Snapshot> {
    lines.iter().map(|line| Snapshot::of(&line.slot)).collect()
}

/// What all trees were when the newest of these roots was made: commits become visible in their order,
/// so whatever was committed before it is in the pasts. Nothing, if a tree's past begins later already.
fn look_up(lines: &[&Line], roots: &[Snapshot]) -> Option<Vec<Snapshot>> {
    let moment = roots.iter().map(|root| root.version()).max()?;
    let at = |line: &&Line| line.past().at(moment).ok().cloned().map(Snapshot);
    lines.iter().map(at).collect()
}
