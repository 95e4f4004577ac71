//! What goes wrong on a simulated disk.

use std::io;

/// What goes wrong.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    pub(crate) off_at: Option<u64>,
    pub(crate) is_off: bool,
    pub(crate) fails_at: Option<u64>,
    pub(crate) is_broken: bool,
    pub(crate) holds_syncs: bool,
    pub(crate) fails_sync: bool,
    pub(crate) fails_sync_names: bool,
    pub(crate) fails_write: bool,
    pub(crate) shortens_write: bool,
    pub(crate) room: Option<usize>,
}

impl Faults {
    /// Whether operations still succeed at all.
    pub(crate) fn must_be_on(&self) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        if self.is_broken {
            return Err(io::Error::other("the disk is broken"));
        }
        Ok(())
    }

    /// The operation of this number begins. It may fail, and the power may go off in it.
    pub(crate) fn begin(&mut self, number: u64) -> io::Result<()> {
        self.is_off |= self.off_at == Some(number);
        match self.fails_at {
            Some(at) if at == number => Err(io::Error::other("an operation failed")),
            _ => Ok(()),
        }
    }
}
