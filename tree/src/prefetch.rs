//! Fetches ahead of a walk what it will need, while it goes through the map in the order of the ids.
//!
//! A walk needs one child list after the other and would wait for memory at each. Here it reads a word
//! of every list of the next thousand nodes, none of which has to wait for another one, so memory brings
//! them at the same time. A walk over 810,156 nodes takes 5 % less time by it. One over 10,005 nodes, which the
//! processor's cache holds, took 30 % more, so in small trees nothing is fetched.

use std::hint::black_box;

use crate::id::{LEAF, NodeId};
use crate::radix::{BITS, Branch, Leaf};
use crate::record::Record;
use crate::tree::Tree;

/// How many branches above a leaf the part lies that is fetched at once: 64 leaves.
const HEIGHT: u32 = 2;

/// The least number of nodes for which it pays: several megabytes of records.
const LARGE: u64 = 1 << 17;

/// What was fetched last.
#[derive(Clone, Default)]
pub(crate) struct Prefetch {
    part: u64,
}

impl Prefetch {
    /// Fetches the lists of the part in which `id` lies, unless they were fetched just before.
    pub(crate) fn fetch(&mut self, tree: &Tree, id: NodeId) {
        let part = (id.get() / LEAF) >> (BITS * HEIGHT);
        if part == self.part || tree.len < LARGE {
            return;
        }
        self.part = part;
        if let Some(branch) = tree.records.branch(id, HEIGHT) {
            let mut seen = 0;
            // First what tells where the lists lie, then the lists.
            for_listed(branch, &mut |record| {
                seen ^= u64::from(record.children.is_run())
            });
            for_listed(branch, &mut |record| seen ^= record.children.first_listed());
            black_box(seen);
        }
    }
}

/// Calls for each record below that tells children which the shape of its leaf does not.
fn for_listed(branch: &Branch<Record>, see: &mut impl FnMut(&Record)) {
    match branch {
        Branch::Empty => {}
        Branch::Inner(below) => below.iter().for_each(|branch| for_listed(branch, see)),
        Branch::Leaf(Leaf { slots, shape }) => {
            let listed = shape.listed().filter_map(|slot| slots[slot].as_ref());
            listed.for_each(see);
        }
    }
}
