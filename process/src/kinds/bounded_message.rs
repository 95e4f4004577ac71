//! The messages in a bounded mailbox.

use std::fmt;

use crate::admission::{Admission, Room};

/// What a bounded mailbox holds: a message, and whether it took room. A [`Name`](crate::Name) or a
/// [`Group`](crate::Group) of bounded processes has it as its message.
pub struct Bounded<M> {
    pub(super) message: M,
    /// The room that it took. None if it took none.
    room: Option<Room>,
}

impl<M> Bounded<M> {
    /// A message that takes no room, whatever the bound: for notices that must not be lost, and that are few by their
    /// nature.
    pub fn notice(message: M) -> Bounded<M> {
        Bounded {
            message,
            room: None,
        }
    }

    /// A message that took room.
    pub(super) fn counted(room: Room, message: M) -> Bounded<M> {
        Bounded {
            message,
            room: Some(room),
        }
    }

    /// The message, whose room is free again.
    pub(super) fn taken(self, admission: &Admission) -> M {
        if let Some(room) = self.room {
            admission.room(room).release(1);
        }
        self.message
    }
}

impl<M: fmt::Debug> fmt::Debug for Bounded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bounded").field(&self.message).finish()
    }
}
