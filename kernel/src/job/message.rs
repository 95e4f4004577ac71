//! Message nodes: what travels through a job's state word, typed for code that knows the message.
//!
//! A node is one slab block of a link and a value, so a queued message costs its size plus 8 bytes.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::{
    job::{JobPtr, state::Link},
    memory::{self, Owned},
};

/// The layout of a node.
#[repr(C)]
pub(crate) struct NodeLayout<T> {
    link: Link,
    pub(crate) value: T,
}

/// An owned node.
pub(crate) struct MessageNode<T>(Owned<NodeLayout<T>>);

impl<T> MessageNode<T> {
    /// A node for a message to `job`.
    #[inline(always)]
    pub(crate) fn new(value: T, job: JobPtr) -> MessageNode<T> {
        let node = NodeLayout {
            link: Link {
                next: std::ptr::null_mut(),
            },
            value,
        };
        MessageNode(Owned::new_beside(node, neighbourhood(job)))
    }

    #[inline(always)]
    pub(crate) fn into_value(self) -> T {
        self.0.into_inner().value
    }

    /// Gives the node up, to be pushed onto a stack.
    #[inline(always)]
    pub(crate) fn into_link(self) -> NonNull<Link> {
        self.0.into_raw().cast()
    }

    /// # Safety
    /// `link` came from [`MessageNode::into_link`] of the same `T`, and is turned back once.
    #[inline(always)]
    pub(crate) unsafe fn from_link(link: NonNull<Link>) -> MessageNode<T> {
        // SAFETY: the caller's promise; a node begins with its link.
        MessageNode(unsafe { Owned::from_raw(link.cast()) })
    }
}

/// The neighbourhood of `job`'s messages: they are allocated near each other ([`crate::memory`]).
#[inline(always)]
fn neighbourhood(job: JobPtr) -> usize {
    job.as_raw().addr().get()
}

/// Notes that a message of the calling thread joined others in `job`'s mailbox, so that the next one may be allocated
/// near them.
#[inline(always)]
pub(crate) fn note_queued(job: JobPtr) {
    memory::note_joined(neighbourhood(job));
}

/// Whether a stack taken from a job's word has only one node.
///
/// # Safety
/// The caller owns the stack.
#[inline(always)]
pub(crate) unsafe fn is_single(newest: NonNull<Link>) -> bool {
    // SAFETY: the caller's promise.
    unsafe { newest.as_ref() }.next.is_null()
}
