//! What the combiner keeps for the case that the journal fails: how names and tags were before the commits that are not
//! durable yet, and the wait for that failure. See `fall_back.rs`.

use std::sync::Arc;
use std::task::Waker;

use crate::journal::Later;
use crate::state::history::Tagged;
use crate::state::tree::TreeState;

/// How a name or a tag was before a commit.
pub(crate) enum Before {
    /// No tree had this name.
    Create(Arc<str>),
    /// This tree had the name.
    Delete(Arc<str>, Arc<TreeState>),
    /// The tree had the first name, and has the second.
    Rename(Arc<str>, Arc<str>, Arc<TreeState>),
    Tag(TagBefore),
}

/// What a tag of a tree named.
pub(crate) struct TagBefore {
    pub(crate) state: Arc<TreeState>,
    pub(crate) tag: Arc<str>,
    pub(crate) tagged: Option<Tagged>,
}

/// Waits for the journal to fail.
pub(crate) struct FailureWatch {
    /// What is waited for, once it was asked.
    pub(super) failed: Option<Later<'static, ()>>,
    /// Makes the forest look.
    pub(super) waker: Waker,
    /// Whether the group that is served ends with falling back.
    pub(super) is_due: bool,
}

impl FailureWatch {
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            failed: None,
            waker,
            is_due: false,
        }
    }
}
