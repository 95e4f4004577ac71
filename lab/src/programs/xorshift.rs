//! Marsaglia's xorshift64, so that every system sends the same messages to the same receivers.

/// The generator; its state is never zero.
#[derive(Clone, Debug)]
pub(crate) struct Xorshift(u64);

impl Xorshift {
    /// The generator of the process with this index: the seed is the index plus one.
    pub(crate) fn of(index: usize) -> Self {
        Self(index as u64 + 1)
    }

    /// The next pseudo-random index below `bound`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder below a usize fits one"
    )]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_recurrence() {
        // One step by hand from state 1: 1 ^ 1<<13 = 0x2001; ^ >>7 = 0x2041; ^ <<17 = 0x40822041.
        let mut generator = Xorshift::of(0);
        assert_eq!(generator.below(usize::MAX), 0x4082_2041);
    }

    #[test]
    fn stays_below_its_bound() {
        let mut generator = Xorshift::of(41);
        assert!((0..10_000).all(|_| generator.below(7) < 7));
    }
}
