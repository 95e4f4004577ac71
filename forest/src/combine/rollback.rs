//! What the combiner keeps in case the journal fails: the names and tags as they were before the commits that are not
//! durable yet, and the wait for the failure. See `fall_back.rs`.

use std::sync::Arc;
use std::task::Waker;

use crate::journal::Later;
use crate::state::history::Tagged;
use crate::state::tree::TreeRef;

/// How a name or a tag was before a commit.
pub(crate) enum Before {
    /// No tree had this name.
    Create(Arc<str>),
    /// This tree had its name.
    Delete(TreeRef),
    /// A tree had the first name, and has the second.
    Rename(Arc<str>, Arc<str>),
    Tag(TagBefore),
}

/// What a tag of a tree named.
pub(crate) struct TagBefore {
    pub(crate) state: TreeRef,
    pub(crate) tag: Arc<str>,
    pub(crate) tagged: Option<Tagged>,
}

/// Waits for the journal to fail.
pub(crate) struct FailureWatch {
    /// The wait, once it has begun.
    pub(super) failed: Option<Later<'static, ()>>,
    /// Makes the forest look.
    pub(super) waker: Waker,
    /// Whether the forest falls back at the end of the present group.
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
