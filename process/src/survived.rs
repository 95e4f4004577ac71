//! How often a unit has survived where it might have ended.

/// Counts the panics that a unit has survived, and also the loss of its inbox, if the unit continues without one. It
/// rises when it is known that the unit continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Survived(u64);

impl Survived {
    pub(crate) fn one_more(self) -> Survived {
        Survived(self.0 + 1)
    }
}
