//! The phases of a runtime's life. A runtime only moves to a later one.

/// Everything works.
pub(super) const OPEN: u8 = 0;
/// Nothing new is spawned; jobs may still end on their own.
pub(super) const CLOSING: u8 = 1;
/// Every job was asked to end, or is about to be.
pub(super) const CANCELLING: u8 = 2;
/// Workers stop; waiting jobs are cancelled.
pub(super) const STOPPED: u8 = 3;
