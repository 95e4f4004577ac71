//! Size classes.
//!
//! Sizes up to 512 bytes are in steps of 8, so that a queued message costs its own size and one link;
//! sizes up to 2,048 are in steps of 64. Larger blocks come from the system's allocator.

use std::alloc::Layout;

const FINE_STEP: usize = 8;
const FINE_MAX: usize = 512;
const FINE: usize = FINE_MAX / FINE_STEP;
const COARSE_STEP: usize = 64;
const COARSE_MAX: usize = 2048;
const COARSE: usize = (COARSE_MAX - FINE_MAX) / COARSE_STEP;
/// Alignments up to this one are met by rounding the size up.
const MAX_ALIGN: usize = 64;

/// How many classes there are, both kinds together.
pub(super) const COUNT: usize = 2 * (FINE + COARSE);

/// What a block is for. Blocks of different kinds never share a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A job; [`collect_job_blocks`](crate::memory::collect_job_blocks) finds it.
    Job,
    /// A message, a timer, anything else.
    Node,
}

/// A size class of one kind: a number below [`COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u16);

impl Class {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn kind(self) -> BlockKind {
        match self.index() < FINE + COARSE {
            true => BlockKind::Job,
            false => BlockKind::Node,
        }
    }

    /// The distance from one block to the next, in bytes.
    pub(super) fn size(self) -> usize {
        match self.index() % (FINE + COARSE) {
            fine if fine < FINE => (fine + 1) * FINE_STEP,
            coarse => FINE_MAX + (coarse - FINE + 1) * COARSE_STEP,
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Class> {
        (0..COUNT).map(|index| Class(u16::try_from(index).expect("there are few classes")))
    }
}

/// The class for `layout`, if there is one. With a constant layout this folds to a constant.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "there are 176 classes")]
pub(super) const fn of(kind: BlockKind, layout: Layout) -> Option<Class> {
    if layout.align() > MAX_ALIGN || layout.size() > COARSE_MAX {
        return None;
    }
    let step = match layout.align() {
        small if small < FINE_STEP => FINE_STEP,
        align => align,
    };
    let size = match layout.size() {
        0 => step,
        size => size.next_multiple_of(step),
    };
    let index = match size <= FINE_MAX {
        true => size / FINE_STEP - 1,
        false => FINE + (size - FINE_MAX).div_ceil(COARSE_STEP) - 1,
    };
    let base = match kind {
        BlockKind::Job => 0,
        BlockKind::Node => FINE + COARSE,
    };
    Some(Class((base + index) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_gets_a_class_that_holds_it_and_keeps_its_alignment() {
        for align in [1, 2, 4, 8, 16, 32, 64] {
            for size in 0..=COARSE_MAX {
                let layout = Layout::from_size_align(size, align).unwrap();
                for kind in [BlockKind::Job, BlockKind::Node] {
                    let Some(class) = of(kind, layout) else {
                        panic!("{layout:?} has no class")
                    };
                    assert!(
                        class.size() >= size && class.size() % align == 0,
                        "{layout:?}"
                    );
                    assert!(class.size() < size.max(1) + COARSE_STEP.max(align));
                    assert_eq!(class.kind(), kind);
                }
            }
        }
        assert_eq!(
            of(
                BlockKind::Job,
                Layout::from_size_align(COARSE_MAX + 1, 8).unwrap()
            ),
            None
        );
        assert_eq!(
            of(BlockKind::Job, Layout::from_size_align(8, 128).unwrap()),
            None
        );
    }
}
