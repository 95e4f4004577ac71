//! The bytes of a file on a simulated disk, and which of them are left when the power is cut.

/// The smallest piece that a disk writes whole.
const SECTOR: usize = 512;

/// A generator of numbers by a seed (splitmix).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }
}

#[derive(Clone, Default)]
pub(crate) struct FileState {
    pub(crate) bytes: Vec<u8>,
    pub(crate) durable: Vec<u8>,
    /// What was written since the last sync.
    pub(crate) unsynced: Vec<(usize, Vec<u8>)>,
}

impl FileState {
    pub(crate) fn write(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
        let end = offset + written.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset..end].copy_from_slice(written);
    }

    /// Keeps some sectors of what was not synced; one in some of those is torn.
    pub(crate) fn after_power_cut(&self, random: &mut Random, keeps: usize) -> Self {
        let mut bytes = self.durable.clone();
        for (offset, written) in &self.unsynced {
            let (mut at, end) = (*offset, offset + written.len());
            while at < end {
                let next = (at / SECTOR + 1) * SECTOR;
                let mut sector = &written[at - offset..next.min(end) - offset];
                if random.below(100) < keeps {
                    if random.below(16) == 0 {
                        sector = &sector[..random.below(sector.len())];
                    }
                    Self::write(&mut bytes, at, sector);
                }
                at = next;
            }
        }
        Self {
            durable: bytes.clone(),
            bytes,
            unsynced: Vec::new(),
        }
    }
}
