//! Marsaglia's xorshift64, so that every system sends the same messages to the same receivers.

/// The generator; its state is never zero.
#[derive(Clone, Copy, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// The generator of the process with this index: the seed is the index plus one.
    #[must_use]
    pub fn of(index: usize) -> Self {
        Self(index as u64 + 1)
    }

    /// The next pseudo-random index below `bound`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder below a usize fits one"
    )]
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// How many messages each of `processes` will receive if each sends `messages` to others of its generator's choice.
#[must_use]
pub fn shares(processes: usize, messages: usize) -> Vec<usize> {
    let mut expected = vec![0; processes];
    for index in 0..processes {
        let mut generator = Xorshift::of(index);
        for _ in 0..messages {
            expected[generator.below(processes)] += 1;
        }
    }
    expected
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
    fn shares_add_up_to_what_is_sent() {
        let shares = shares(10, 100);
        assert_eq!(shares.iter().sum::<usize>(), 1000);
        assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    }

    #[test]
    fn stays_below_its_bound() {
        let mut generator = Xorshift::of(41);
        assert!((0..10_000).all(|_| generator.below(7) < 7));
    }
}
