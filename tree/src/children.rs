//! The children of one node, in order: nothing, a run of ids that follow each other, or a list.
//!
//! A run costs no memory of its own, and its records lie side by side: what is built at once, and what
//! one edit appends to one node, is a run. The order is that of the order keys; who inserts sees to it.

use crate::id::NodeId;
use crate::rope::Rope;

/// Ids of siblings by position.
#[derive(Clone, Default)]
pub(crate) enum Children {
    #[default]
    None,
    Run {
        count: u32,
        first: NodeId,
    },
    List(Rope),
}

impl Children {
    pub(crate) fn from_list(ids: &[NodeId]) -> Self {
        match ids {
            [] => Self::None,
            _ => Self::List(Rope::new(ids.iter().copied())),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Run { count, .. } => *count as usize,
            Self::List(rope) => rope.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<NodeId> {
        match self {
            Self::None => None,
            Self::Run { count, first } => {
                (at < *count as usize).then(|| NodeId::at(first.get() + at as u64))
            }
            Self::List(rope) => rope.get(at),
        }
    }

    /// Puts an id before the one at a position, or at the end.
    #[inline]
    pub(crate) fn insert(&mut self, at: usize, id: NodeId) {
        match self {
            Self::None => {
                *self = Self::Run {
                    count: 1,
                    first: id,
                };
            }
            Self::Run { count, first }
                if at == *count as usize
                    && first.get() + u64::from(*count) == id.get()
                    && *count < u32::MAX =>
            {
                *count += 1;
            }
            _ => self.list().insert(at, id),
        }
    }

    /// Takes out the id at a position that is there.
    pub(crate) fn remove(&mut self, at: usize) {
        match self {
            Self::Run { count: 1, .. } => *self = Self::None,
            Self::Run { count, first } if at == 0 => {
                *count -= 1;
                *first = NodeId::at(first.get() + 1);
            }
            Self::Run { count, .. } if at + 1 == *count as usize => *count -= 1,
            _ => {
                let list = self.list();
                list.remove(at);
                if list.len() == 0 {
                    *self = Self::None;
                }
            }
        }
    }

    fn list(&mut self) -> &mut Rope {
        if !matches!(self, Self::List(_)) {
            let ids = (0..self.len()).filter_map(|at| self.get(at));
            *self = Self::List(Rope::new(ids));
        }
        match self {
            Self::List(rope) => rope,
            _ => unreachable!("it was made a list above"),
        }
    }
}

impl PartialEq for Children {
    fn eq(&self, other: &Self) -> bool {
        if let (Self::List(a), Self::List(b)) = (self, other)
            && a.is(b)
        {
            return true;
        }
        let mut positions = 0..self.len();
        self.len() == other.len() && positions.all(|at| self.get(at) == other.get(at))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_and_lists_are_one_sequence(
            steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 0..60)
        ) {
            let (mut children, mut model) = (Children::default(), Vec::new());
            for (number, (step, at)) in (1..).map(NodeId::at).zip(steps) {
                let at = match step {
                    0 | 1 => model.len(),
                    2 => at.index(model.len() + 1),
                    _ if model.is_empty() => continue,
                    _ => at.index(model.len()),
                };
                if step == 3 {
                    children.remove(at);
                    model.remove(at);
                } else {
                    children.insert(at, number);
                    model.insert(at, number);
                }
                let all: Vec<_> = (0..children.len()).filter_map(|at| children.get(at)).collect();
                prop_assert_eq!(&all, &model);
                prop_assert_eq!(children.len(), model.len());
            }
        }
    }
}
