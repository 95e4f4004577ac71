//! The pattern of `many-to-many`: which process sends to which, and how many messages each will receive.

/// The generator xorshift64 (shifts 13, 7, 17).
#[derive(Clone, Copy, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// The generator of the process with this index: seeded with the index + 1.
    pub fn of_process(index: usize) -> Self {
        Self(index as u64 + 1)
    }

    /// The next number, below `limit`.
    pub fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// How many messages each of `processes` will receive, found by running all the generators.
pub fn expected_counts(processes: usize, messages: usize) -> Vec<usize> {
    let mut counts = vec![0; processes];
    for index in 0..processes {
        let mut random = Xorshift::of_process(index);
        for _ in 0..messages {
            counts[random.next_below(processes)] += 1;
        }
    }
    counts
}

/// The total number of messages, as the divisor of a time.
pub fn total_messages(units: usize, messages: usize) -> f64 {
    units as f64 * messages as f64
}
