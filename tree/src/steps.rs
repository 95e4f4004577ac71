//! The operations of an edit, in order. Many edits have one, which takes no memory of its own.

use std::ops::{Deref, DerefMut};

use crate::operation::Operation;

/// A list that has its first operation in place as long as it is the only one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Steps {
    #[default]
    None,
    One(Operation),
    Many(Vec<Operation>),
}

impl Steps {
    #[inline]
    pub(crate) fn push(&mut self, operation: Operation) {
        match self {
            Self::None => *self = Self::One(operation),
            Self::One(_) => self.push_second(operation),
            Self::Many(all) => all.push(operation),
        }
    }

    #[cold]
    fn push_second(&mut self, operation: Operation) {
        if let Self::One(first) = std::mem::take(self) {
            *self = Self::Many(vec![first, operation]);
        }
    }
}

impl Deref for Steps {
    type Target = [Operation];

    #[inline]
    fn deref(&self) -> &[Operation] {
        match self {
            Self::None => &[],
            Self::One(only) => std::slice::from_ref(only),
            Self::Many(all) => all,
        }
    }
}

impl DerefMut for Steps {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Operation] {
        match self {
            Self::None => &mut [],
            Self::One(only) => std::slice::from_mut(only),
            Self::Many(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;

    #[test]
    fn they_are_listed_in_the_order_in_which_they_came() {
        let mut steps = Steps::default();
        for number in 1..=5 {
            steps.push(Operation::Delete {
                node: NodeId::at(number),
            });
            for step in steps.iter_mut() {
                let Operation::Delete { node } = step else {
                    unreachable!("all are deletions")
                };
                *node = node.plus(10);
            }
            let ids = steps.iter().map(|step| match step {
                Operation::Delete { node } => node.get(),
                _ => unreachable!("all are deletions"),
            });
            let expected = (1..=number).map(|first| first + 10 * (number - first + 1));
            assert!(ids.eq(expected));
            assert_eq!(steps.clone().len() as u64, number);
        }
    }
}
