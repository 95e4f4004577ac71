//! Admission to a bounded mailbox: how many messages may wait, and what happens to one that is too many.
//!
//! A permit of the semaphore is room for one message. A sender takes it before it posts; the receiver gives it back
//! when it takes the message. Messages that die with the mailbox give nothing back: admission is closed then.

use std::{num::NonZeroU32, sync::OnceLock};

use weald_sync::Semaphore;

use crate::survived::Survived;

/// What happens when a message comes to a bounded mailbox that is full.
///
/// ```
/// use std::num::NonZeroU32;
/// use weald::process::{BoundedInbox, Builder, Overflow};
///
/// weald::block_on(async {
///     let capacity = NonZeroU32::new(2).unwrap();
///     let body = async |mut inbox: BoundedInbox<u32>| inbox.receive().await + inbox.receive().await;
///     let (process, pid) = Builder::new().spawn_bounded(capacity, Overflow::Reject, body)?;
///     pid.try_send(40).unwrap();
///     pid.try_send(2).unwrap();
///     assert_eq!(process.await, Ok(42));
///     Ok::<(), weald::SpawnError>(())
/// })?;
/// # Ok::<(), weald::SpawnError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The sender waits for room. Senders get room in the order in which they asked for it.
    Wait,
    /// The message is refused.
    Reject,
    /// The message is refused, and the receiver ends with the reason [`Overflowed`], even if it traps exits: better no
    /// process than one that works on requests that are too old.
    Crash,
}

/// The mailbox of the process was full: the [custom](crate::ExitReason::custom) reason with which a process ends under
/// [`Overflow::Crash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overflowed {
    /// How many messages the mailbox could hold.
    pub capacity: u32,
}

/// Which room a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Usual,
    /// That of urgent messages, so that none of them waits behind the others for room.
    Urgent,
}

pub(crate) struct Admission {
    usual: Semaphore,
    /// None if the mailbox knows no urgent messages: then they take room as the others do.
    urgent: Option<Semaphore>,
    pub(crate) capacity: u32,
    pub(crate) overflow: Overflow,
    /// How many panics the process had survived when it dropped its inbox itself. Set before admission is closed.
    left: OnceLock<Survived>,
}

impl Admission {
    pub(crate) fn new(capacity: NonZeroU32, overflow: Overflow) -> Admission {
        Admission {
            usual: Semaphore::named("a full mailbox", capacity.get()),
            urgent: None,
            capacity: capacity.get(),
            overflow,
            left: OnceLock::new(),
        }
    }

    /// Admission to a mailbox that has room for as many urgent messages as well.
    pub(crate) fn with_urgent(capacity: NonZeroU32, overflow: Overflow) -> Admission {
        let urgent = Semaphore::named("a mailbox full of urgent messages", capacity.get());
        Admission {
            urgent: Some(urgent),
            ..Admission::new(capacity, overflow)
        }
    }

    pub(crate) fn room(&self, room: Room) -> &Semaphore {
        match (room, &self.urgent) {
            (Room::Urgent, Some(urgent)) => urgent,
            _ => &self.usual,
        }
    }

    /// The process drops its inbox itself, maybe because it ends.
    pub(crate) fn note_left(&self, survived: Survived) {
        // It drops its inbox once.
        let _set = self.left.set(survived);
    }

    pub(crate) fn left(&self) -> Option<Survived> {
        self.left.get().copied()
    }

    /// Nobody gets room any longer.
    pub(crate) fn close(&self) {
        self.usual.close();
        self.urgent.iter().for_each(Semaphore::close);
    }
}
