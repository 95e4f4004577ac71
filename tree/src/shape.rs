//! What hangs below each of sixteen nodes, in one word: four bits each, the first node's lowest.
//!
//! Most families of a document stand right behind their parent: the run of its children begins with the
//! id behind its own. Those, if they are no more than fourteen, and all that have no children, a walk
//! knows without a look at their records; whose record it needs, it fetches ahead of time.

/// What hangs below one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Nothing.
    None,
    /// So many children, whose ids follow that of the node: 1 to [`MOST`].
    Behind(u8),
    /// Children that its record tells.
    Listed,
}

/// The most children that are known without the record.
pub(crate) const MOST: u8 = 14;
const LISTED: u64 = 15;

/// What hangs below sixteen nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(u64);

impl Shape {
    pub(crate) const EMPTY: Self = Self(0);

    #[inline]
    pub(crate) fn set(&mut self, slot: usize, family: Family) {
        let bits = match family {
            Family::None => 0,
            Family::Behind(count) => u64::from(count),
            Family::Listed => LISTED,
        };
        self.0 = self.0 & !(15 << (4 * slot)) | bits << (4 * slot);
    }

    #[inline]
    pub(crate) fn get(self, slot: usize) -> Family {
        match (self.0 >> (4 * slot)).to_le_bytes()[0] & 15 {
            0 => Family::None,
            15 => Family::Listed,
            count => Family::Behind(count),
        }
    }

    #[inline]
    pub(crate) fn is_parent(self, slot: usize) -> bool {
        self.0 >> (4 * slot) & 15 != 0
    }

    /// How many nodes stand at `slot` and behind it before the next parent; sixteen or more, if there
    /// is none.
    #[inline]
    pub(crate) fn before_parent(self, slot: usize) -> u64 {
        u64::from((self.0 >> (4 * slot)).trailing_zeros() / 4)
    }

    /// The shape of what stands behind a slot.
    #[inline]
    pub(crate) fn behind(self, slot: usize) -> Self {
        Self(self.0 >> (4 * slot) >> 4)
    }

    /// The slots whose records tell their children.
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
            (1..=MOST).prop_map(Family::Behind),
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
