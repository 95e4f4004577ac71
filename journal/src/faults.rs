//! What goes wrong on a simulated disk.

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
