//! How often a unit has gone on where it might have ended.

/// How many panics a unit has survived, and whether it goes on without its inbox: it is one more each time that this is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Survived(u64);

impl Survived {
    pub(crate) fn one_more(self) -> Survived {
        Survived(self.0 + 1)
    }
}
