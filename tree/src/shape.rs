//! What is below each of sixteen nodes, in one word: four bits for each node, the first node's lowest.
//!
//! Most nodes of a document have their children right after them: the run of children starts with the next
//! id. For such a node, if it has at most fourteen children, and for a node without children, the shape gives
//! a walk all it needs, and the walk does not look at the record. The records of other nodes are prefetched.

/// The children of one node, as far as its shape describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// No children.
    None,
    /// This many children, whose ids follow the id of the node: 1 to [`MOST`].
    Following(u8),
    /// Children that only the record lists.
    Listed,
}

/// The most children that a shape can describe.
pub(crate) const MOST: u8 = 14;
const LISTED: u64 = 15;

/// The families of sixteen nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(u64);

impl Shape {
    pub(crate) const EMPTY: Self = Self(0);

    #[inline]
    pub(crate) fn set(&mut self, slot: usize, family: Family) {
        let bits = match family {
            Family::None => 0,
            Family::Following(count) => u64::from(count),
            Family::Listed => LISTED,
        };
        self.0 = self.0 & !(15 << (4 * slot)) | bits << (4 * slot);
    }

    #[inline]
    pub(crate) fn get(self, slot: usize) -> Family {
        match (self.0 >> (4 * slot)).to_le_bytes()[0] & 15 {
            0 => Family::None,
            15 => Family::Listed,
            count => Family::Following(count),
        }
    }

    #[inline]
    pub(crate) fn is_parent(self, slot: usize) -> bool {
        self.0 >> (4 * slot) & 15 != 0
    }

    /// How many nodes from `slot` on are not parents; sixteen or more, if none of them is a parent.
    #[inline]
    pub(crate) fn before_parent(self, slot: usize) -> u64 {
        u64::from((self.0 >> (4 * slot)).trailing_zeros() / 4)
    }

    /// The shape of the nodes after a slot.
    #[inline]
    pub(crate) fn after(self, slot: usize) -> Self {
        Self(self.0 >> (4 * slot) >> 4)
    }

    /// The slots whose children only the record lists.
    #[inline]
    pub(crate) fn listed(self) -> impl Iterator<Item = usize> {
        const LOWEST: u64 = 0x1111_1111_1111_1111;
        let [one, two, four, eight] = [0, 1, 2, 3].map(|bit| self.0 >> bit);
        let mut left = one & two & four & eight & LOWEST;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (bit < 64).then_some(bit / 4)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn family() -> impl Strategy<Value = Family> {
        prop_oneof![
            Just(Family::None),
            (1..=MOST).prop_map(Family::Following),
            Just(Family::Listed),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_list_of_sixteen(steps in prop::collection::vec((0..16_usize, family()), 0..60)) {
            let (mut shape, mut model) = (Shape::EMPTY, [Family::None; 16]);
            for (slot, family) in steps {
                shape.set(slot, family);
                model[slot] = family;
            }
            for (slot, family) in model.iter().enumerate() {
                prop_assert_eq!(shape.get(slot), *family);
                prop_assert_eq!(shape.is_parent(slot), *family != Family::None);
                let next = model[slot..].iter().position(|family| *family != Family::None);
                let before = usize::try_from(shape.before_parent(slot)).unwrap();
                prop_assert_eq!(before.min(16 - slot), next.unwrap_or(16 - slot));
            }
            let listed = (0..16).filter(|slot| model[*slot] == Family::Listed);
            prop_assert!(shape.listed().eq(listed));
        }
    }
}
