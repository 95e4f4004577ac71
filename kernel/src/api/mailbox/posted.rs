//! A post in two steps, for callers that hold a lock: the receiver learns of the message when the lock is free.

#![allow(unsafe_code)]

use std::{fmt, mem};

use crate::{
    api::mailbox::{Address, wake_receiver},
    job::{JobRef, message::MessageNode, runnable::Runnable, transition::Posted},
    scheduler::workers::ready::ready,
};

impl<M> Address<M> {
    /// As [`Address::post`], for a caller that holds a lock: the job becomes runnable only when the result is dropped,
    /// outside of the lock. If its runtime is gone, the job may end at once.
    ///
    /// # Errors
    /// As [`Address::post`].
    pub fn post_without_waking(&self, message: M) -> Result<PostedMessage, M> {
        let link = MessageNode::new(message, self.job.ptr()).into_link();
        // SAFETY: as in `post`.
        match unsafe { self.job.header().state.post(link.as_ptr()) } {
            // SAFETY: as in `post`.
            Posted::Closed => Err(unsafe { MessageNode::<M>::from_link(link) }.into_value()),
            Posted::Queued => Ok(PostedMessage(Receiver::Knows)),
            // SAFETY: `Posted::Schedule` gives the caller the job's runnable.
            Posted::Schedule => Ok(PostedMessage(Receiver::Waits(unsafe {
                Runnable::new(self.job.ptr())
            }))),
            Posted::WakeReceiver => Ok(PostedMessage(Receiver::Foreign(self.job.clone()))),
        }
    }
}

/// A message that was posted; when this is dropped, its receiver learns of it.
#[must_use = "the receiver learns of the message when this is dropped"]
pub struct PostedMessage(Receiver);

/// What a receiver needs to learn of a message.
enum Receiver {
    Knows,
    Waits(Runnable),
    Foreign(JobRef),
}

impl Drop for PostedMessage {
    fn drop(&mut self) {
        match mem::replace(&mut self.0, Receiver::Knows) {
            Receiver::Knows => {}
            Receiver::Waits(runnable) => ready(runnable),
            Receiver::Foreign(job) => wake_receiver(&job),
        }
    }
}

impl fmt::Debug for PostedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostedMessage")
    }
}
