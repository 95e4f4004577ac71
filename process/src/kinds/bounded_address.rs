//! The common part of the addresses of servers and state machines whose mailbox is not plain.
//!
//! Their users send requests, casts and events; each becomes a message `M` here, and one that has no room is returned
//! as what it was.

use crate::{
    admission::Room,
    call::{Call, Reply},
    kinds::{bounded::BoundedPid, bounded_message::Bounded, prioritized::Prioritized},
    names::{Name, NameError},
    pid::SendError,
    signal::monitor::monitor,
};

impl<M: Send + 'static> BoundedPid<Prioritized<M>> {
    /// The process that has this name now.
    pub(crate) fn named(
        name: &Name<Bounded<Prioritized<M>>>,
    ) -> Result<BoundedPid<Prioritized<M>>, NameError> {
        let found = BoundedPid::of(name.whereis()?);
        found.ok_or_else(|| NameError::NotRegistered(name.to_string()))
    }

    /// As [`send`](BoundedPid::send), into this room. The error has what `returned` makes of the message.
    pub(crate) async fn send_as<T>(
        &self,
        room: Room,
        message: M,
        returned: fn(M) -> T,
    ) -> Result<(), SendError<T>> {
        let sent = self.send_into(room, of_room(room, message)).await;
        sent.map_err(|error| error.map(|message| returned(message.into_message())))
    }

    /// As [`try_send`](BoundedPid::try_send), into this room. The error has what `returned` makes of the message.
    pub(crate) fn try_send_as<T>(
        &self,
        room: Room,
        message: M,
        returned: fn(M) -> T,
    ) -> Result<(), SendError<T>> {
        let sent = self.try_send_into(room, of_room(room, message));
        sent.map_err(|error| error.map(|message| returned(message.into_message())))
    }

    /// A call for a look at the state. It takes no room, so that a process with too much to do can be looked at, and
    /// it is urgent.
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub(crate) fn look<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        request: F,
    ) -> Call<
        Bounded<Prioritized<M>>,
        T,
        impl FnOnce(Reply<T>) -> Bounded<Prioritized<M>> + use<M, T, F>,
    > {
        let request = |reply| Bounded::notice(Prioritized::urgent(request(reply)));
        self.pid().call(request)
    }

    /// Sends the order to stop, which takes no room and comes in its turn, and waits for the end of the process.
    pub(crate) async fn stop_by(&self, order: M) {
        let down = monitor(self);
        let order = Bounded::notice(Prioritized::usual(order));
        self.pid().send(order);
        down.await;
    }
}

/// A message for this room.
fn of_room<M>(room: Room, message: M) -> Prioritized<M> {
    match room {
        Room::Usual => Prioritized::usual(message),
        Room::Urgent => Prioritized::urgent(message),
    }
}
