//! A leaf of the map: the records of sixteen consecutive ids.
//!
//! - A leaf is a small head and two blocks, one with the links of its records and one with their attributes, so
//!   that putting an attribute copies no links, and adding a child no attributes.
//! - A new record is written into empty cells of blocks that older versions share and do not look at there.
//! - The first leaf grows with its records, because many trees are small.
//! - The head holds in one word what a walk needs to know of every record (see `shape`), so a walk looks at few
//!   records. All changes go through the leaf, which keeps that word up to date.
//! - A builder fills a leaf that no version has yet ([`NewLeaf`]), which is cheaper.

use bytemuck::TransparentWrapper;
use weald_memory::{CELLS, Cells, Filling, Item};

use crate::attributes::{Attributes, List};
use crate::children::{Children, Listing};
use crate::id::{LEAF_BITS, NodeId};
use crate::inline::Inline;
use crate::record::{Far, Links, Near, Place, Record};
use crate::shape::{Family, Shape};

/// Slots in one leaf: one for each of its ids.
pub(crate) const SLOTS: usize = CELLS;
const _: () = assert!(SLOTS == 1 << LEAF_BITS);

/// The records of sixteen consecutive ids, and what is below each.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) shape: Shape,
    links: Cells<Near, Far>,
    attributes: Cells<Inline, List>,
}

impl Leaf {
    /// A leaf without records for the place `number`.
    #[inline]
    pub(crate) fn new(number: u64) -> Self {
        let room = if number == 0 { 1 } else { SLOTS };
        Self {
            shape: Shape::EMPTY,
            links: Cells::new(room),
            attributes: Cells::new(room),
        }
    }

    #[inline]
    pub(crate) fn has(&self, slot: usize) -> bool {
        self.links.present() >> slot & 1 == 1
    }

    /// The slots that have records.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> {
        (0..SLOTS).filter(|slot| self.has(*slot))
    }

    #[inline]
    pub(crate) fn links(&self, slot: usize) -> Option<&Links> {
        self.links.get(slot).map(Links::wrap_ref)
    }

    #[inline]
    pub(crate) fn attributes(&self, slot: usize) -> Option<&Attributes> {
        self.attributes.get(slot).map(Attributes::wrap_ref)
    }

    /// Whether both have the same records in memory.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.links.is(&other.links) && self.attributes.is(&other.attributes)
    }

    /// The two blocks: of each the address, its size in bytes, and the cells of it that belong to this leaf.
    pub(crate) fn blocks(&self) -> [(usize, usize, u16); 2] {
        let (links, attributes) = (&self.links, &self.attributes);
        [
            (links.address(), links.bytes(), links.present()),
            (
                attributes.address(),
                attributes.bytes(),
                attributes.present(),
            ),
        ]
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, id: NodeId, record: Record) {
        let slot = id.slot();
        self.shape.set(slot, record.links.children().family(id));
        self.links.set(slot, Links::peel(record.links));
        self.attributes
            .set(slot, Attributes::peel(record.attributes));
    }

    /// Adds children with consecutive ids, given as the first and their number, to a node, at a position among those
    /// that it has.
    #[inline]
    pub(crate) fn adopt(&mut self, id: NodeId, at: usize, run: (NodeId, u32)) {
        let slot = id.slot();
        if let Some(near) = self.links.plain_mut(slot)
            && near.adopt(at, run)
        {
            self.shape.set(slot, near.children().family(id));
            return;
        }
        self.adopt_one_by_one(id, at, run);
    }

    #[inline(never)]
    fn adopt_one_by_one(&mut self, id: NodeId, at: usize, (first, count): (NodeId, u32)) {
        self.change_links(id, |_, children| {
            let ids = (0..u64::from(count)).map(|more| first.plus(more));
            (at..).zip(ids).for_each(|(at, id)| children.insert(at, id));
        });
    }

    #[inline]
    pub(crate) fn change_links<R>(
        &mut self,
        id: NodeId,
        change: impl FnOnce(&mut Place, &mut Children) -> R,
    ) -> R {
        let slot = id.slot();
        let changed = self.links.change(slot, |item| {
            let (mut place, mut children) = Links::wrap(item).into_parts();
            let result = change(&mut place, &mut children);
            let family = children.listing().family(id);
            (Links::peel(Links::new(place, children)), (result, family))
        });
        let (result, family) = changed.expect("the caller has looked the id up");
        self.shape.set(slot, family);
        result
    }

    /// Sets the children of a node that has none.
    #[inline]
    pub(crate) fn set_children(&mut self, id: NodeId, children: Children) {
        self.change_links(id, |_, none| *none = children);
    }

    #[inline]
    pub(crate) fn change_attributes<R>(
        &mut self,
        id: NodeId,
        change: impl FnOnce(&mut Attributes) -> R,
    ) -> R {
        let changed = self.attributes.change(id.slot(), |item| {
            let mut attributes = Attributes::wrap(item);
            let result = change(&mut attributes);
            (Attributes::peel(attributes), result)
        });
        changed.expect("the caller has looked the id up")
    }

    /// Removes a record and returns its links; also, whether the leaf is empty then.
    pub(crate) fn take_out(&mut self, slot: usize) -> (Option<Links>, bool) {
        self.shape.set(slot, Family::None);
        drop(self.attributes.take(slot));
        let links = self.links.take(slot).map(Links::wrap);
        (links, self.links.present() == 0)
    }

    /// Moves the records to the smallest blocks that have room for them.
    pub(crate) fn fit(&mut self) {
        self.links.fit();
        self.attributes.fit();
    }
}

/// A leaf that a builder fills.
pub(crate) struct NewLeaf {
    shape: Shape,
    records: Filling<Near, Far, Inline, List>,
}

impl NewLeaf {
    /// A leaf whose first record goes into this slot.
    pub(crate) fn new(first: usize) -> Self {
        Self {
            shape: Shape::EMPTY,
            records: Filling::new(first),
        }
    }

    /// How many records it has.
    pub(crate) fn len(&self) -> u64 {
        self.records.filled() as u64
    }

    /// Adds the record of a node without children in the next slot.
    #[inline(always)]
    pub(crate) fn push(&mut self, links: Near, attributes: Attributes) {
        self.records.push(links, Attributes::peel(attributes));
    }

    #[inline]
    fn without_children(&mut self, slot: usize) -> &mut Near {
        let near = self.records.plain_mut(slot);
        near.expect("links without children were put as plain data")
    }

    /// Sets the children of a node that has none, given as the first and their number.
    #[inline]
    pub(crate) fn adopt(&mut self, id: NodeId, (first, count): (NodeId, u32)) {
        let family = Listing::Run { count, first }.family(id);
        self.shape.set(id.slot(), family);
        let near = self.without_children(id.slot());
        near.adopt(0, (first, count));
    }

    /// Sets the children of a node that has none.
    #[inline]
    pub(crate) fn set_children(&mut self, id: NodeId, children: Children) {
        let slot = id.slot();
        self.shape.set(slot, children.listing().family(id));
        let near = *self.without_children(slot);
        let (place, _) = Links::wrap(Item::Plain(near)).into_parts();
        let links = Links::peel(Links::new(place, children));
        drop(self.records.replace(slot, links));
    }

    pub(crate) fn finish(self) -> Leaf {
        let (links, attributes) = self.records.finish();
        Leaf {
            shape: self.shape,
            links,
            attributes,
        }
    }
}
