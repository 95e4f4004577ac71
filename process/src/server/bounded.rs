//! The address of a server whose mailbox is bounded, or takes urgent messages first.
//!
//! Its messages are those of a plain server, in the envelopes of the mailbox's kind; so a name or a pid of such a
//! server has another type, and no caller bypasses its bound by mistake.

use std::{any::Any, fmt};

use weald_kernel::{AsUnit, SpawnError, Unit};

use super::{
    Accept, Answer, Kind, Server, ServerMessage, ServerScope,
    message::{Asked, Cast, Read},
    serve,
};
use crate::{
    admission::Room,
    call::{Call, Reply},
    kinds::{
        bounded::BoundedPid, bounded_call::BoundedCall, bounded_message::Bounded,
        mailbox_kind::MailboxKind, prioritized::Prioritized,
    },
    names::{Name, NameError, RegisterError},
    pid::{Pid, SendError},
    spawn::Builder,
};

/// The message of a server whose mailbox is not plain: the type of its [`Name`].
pub type BoundedServerMessage<S> = Bounded<Prioritized<ServerMessage<S>>>;

/// The address of a [`Server`] whose mailbox is not plain. A request or a cast that meets a full mailbox waits, or
/// fails with [`CallError::Full`](crate::CallError::Full) or [`SendError::Full`], as the [`MailboxKind`] says. A clone
/// is cheap.
///
/// ```
/// # weald::Runtime::test(1).block_on(async {
/// use std::num::NonZeroU32;
/// use weald::process::{
///     Accept, Answer, BoundedServerRef, Builder, CallError, MailboxKind, Overflow, Reply, SendError, Server,
///     ServerScope, Step,
/// };
///
/// struct Counter(u64);
///
/// struct Add(u64);
/// struct Total;
///
/// impl Server for Counter {
///     type Info = ();
/// }
///
/// impl Accept<Add> for Counter {
///     async fn accept(&mut self, cast: Add, _: &mut ServerScope<Counter>) -> Step {
///         self.0 += cast.0;
///         Step::Receive
///     }
/// }
///
/// impl Answer<Total> for Counter {
///     type Value = u64;
///
///     async fn answer(&mut self, _: Total, reply: Reply<u64>, _: &mut ServerScope<Counter>) -> Step {
///         let _unheard = reply.send(self.0);
///         Step::Receive
///     }
/// }
///
/// let kind = MailboxKind::bounded_priority(NonZeroU32::new(2).unwrap(), Overflow::Reject);
/// let counter = BoundedServerRef::start(Builder::new(), kind, Counter(40))?;
/// assert!(counter.try_cast(Add(1)).is_ok());
/// assert!(counter.try_cast(Add(1)).is_ok());
/// assert!(matches!(counter.try_cast(Add(1)), Err(SendError::Full(Add(1)))));
/// assert_eq!(counter.request(Total).await, Err(CallError::Full));
/// // It has room of its own, and passes the casts.
/// assert_eq!(counter.request_urgent(Total).await, Ok(40));
/// counter.stop().await;
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
pub struct BoundedServerRef<S: Server>(BoundedPid<Prioritized<ServerMessage<S>>>);

impl<S: Server> BoundedServerRef<S> {
    /// Starts a server with a mailbox of this kind; see [`ServerRef::start`](crate::ServerRef::start).
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start(
        builder: Builder,
        kind: MailboxKind,
        server: S,
    ) -> Result<BoundedServerRef<S>, SpawnError> {
        let parent = builder.parent();
        let spawned = kind.spawn(builder, |inbox| serve(server, inbox, None, parent));
        spawned.map(BoundedServerRef)
    }

    /// As [`start`](BoundedServerRef::start); the server has the name before it runs. If the name is taken, nothing is
    /// started.
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start_as(
        name: &Name<BoundedServerMessage<S>>,
        builder: Builder,
        kind: MailboxKind,
        server: S,
    ) -> Result<BoundedServerRef<S>, RegisterError> {
        let parent = builder.parent();
        let spawned = kind.spawn_as(name, builder, |inbox| serve(server, inbox, None, parent));
        spawned.map(BoundedServerRef)
    }

    /// The server that has this pid, such as one that [`Name::registered`] returns. None if it has ended.
    pub fn of(pid: Pid<BoundedServerMessage<S>>) -> Option<BoundedServerRef<S>> {
        BoundedPid::of(pid).map(BoundedServerRef)
    }

    /// The server that has this name now.
    ///
    /// # Errors
    /// As [`Name::whereis`].
    pub fn named(name: &Name<BoundedServerMessage<S>>) -> Result<BoundedServerRef<S>, NameError> {
        BoundedPid::named(name).map(BoundedServerRef)
    }

    /// The pid of its process, which tells how much [room](BoundedPid::room) there is.
    pub fn pid(&self) -> &BoundedPid<Prioritized<ServerMessage<S>>> {
        &self.0
    }

    /// Sends a request and waits for its answer, and before that for room under
    /// [`Overflow::Wait`](crate::Overflow::Wait): as [`BoundedPid::call`].
    ///
    /// # Errors
    /// A [`CallError`](crate::CallError); [`Full`](crate::CallError::Full) if there was no room, and callers do not
    /// wait.
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn request<R: Send + 'static>(
        &self,
        request: R,
    ) -> BoundedCall<
        '_,
        Prioritized<ServerMessage<S>>,
        S::Value,
        impl FnOnce(Reply<S::Value>) -> Prioritized<ServerMessage<S>> + use<S, R>,
    >
    where
        S: Answer<R>,
    {
        self.0
            .call(|reply| Prioritized::usual(asked(request, reply)))
    }

    /// As [`request`](BoundedServerRef::request), with an urgent request: where urgent messages come first, it has
    /// their room, and is served before all that are not urgent.
    ///
    /// # Errors
    /// As [`request`](BoundedServerRef::request).
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub fn request_urgent<R: Send + 'static>(
        &self,
        request: R,
    ) -> BoundedCall<
        '_,
        Prioritized<ServerMessage<S>>,
        S::Value,
        impl FnOnce(Reply<S::Value>) -> Prioritized<ServerMessage<S>> + use<S, R>,
    >
    where
        S: Answer<R>,
    {
        self.0.call_urgent(|reply| asked(request, reply))
    }

    /// Sends a cast; under [`Overflow::Wait`](crate::Overflow::Wait) it waits for room. A server that casts to itself
    /// in this way waits for ever if its mailbox is full. Cancel-safe: a future that is dropped has sent nothing.
    ///
    /// # Errors
    /// [`SendError::Full`] if there is no room, and senders do not wait. [`SendError::Dead`] if the server has ended,
    /// or ends while this waits. Both return the cast.
    pub async fn cast<C: Send + 'static>(&self, cast: C) -> Result<(), SendError<C>>
    where
        S: Accept<C>,
    {
        let sent = self.0.send_as(Room::Usual, accepted(cast), returned_cast);
        sent.await
    }

    /// As [`cast`](BoundedServerRef::cast), with an urgent cast; see
    /// [`request_urgent`](BoundedServerRef::request_urgent). Cancel-safe, too.
    ///
    /// # Errors
    /// As [`cast`](BoundedServerRef::cast).
    pub async fn cast_urgent<C: Send + 'static>(&self, cast: C) -> Result<(), SendError<C>>
    where
        S: Accept<C>,
    {
        let sent = self.0.send_as(Room::Urgent, accepted(cast), returned_cast);
        sent.await
    }

    /// Sends a cast if there is room, and nobody waits for it. Never waits.
    ///
    /// # Errors
    /// [`SendError::Full`] if there is no room, [`SendError::Dead`] if the server has ended. Both return the cast.
    pub fn try_cast<C: Send + 'static>(&self, cast: C) -> Result<(), SendError<C>>
    where
        S: Accept<C>,
    {
        self.0
            .try_send_as(Room::Usual, accepted(cast), returned_cast)
    }

    /// As [`try_cast`](BoundedServerRef::try_cast), with an urgent cast.
    ///
    /// # Errors
    /// As [`try_cast`](BoundedServerRef::try_cast).
    pub fn try_cast_urgent<C: Send + 'static>(&self, cast: C) -> Result<(), SendError<C>>
    where
        S: Accept<C>,
    {
        self.0
            .try_send_as(Room::Urgent, accepted(cast), returned_cast)
    }

    /// Sends an info, which takes room as a cast does. Cancel-safe: a future that is dropped has sent nothing.
    ///
    /// # Errors
    /// As [`cast`](BoundedServerRef::cast); both return the info.
    pub async fn info(&self, info: S::Info) -> Result<(), SendError<S::Info>> {
        let info = ServerMessage(Kind::Info(info));
        self.0.send_as(Room::Usual, info, returned_info).await
    }

    /// Sends an info if there is room, and nobody waits for it. Never waits.
    ///
    /// # Errors
    /// As [`try_cast`](BoundedServerRef::try_cast); both return the info.
    pub fn try_info(&self, info: S::Info) -> Result<(), SendError<S::Info>> {
        let info = ServerMessage(Kind::Info(info));
        self.0.try_send_as(Room::Usual, info, returned_info)
    }

    /// Reads the state; see [`ServerRef::state`](crate::ServerRef::state). The read takes no room, so that a server
    /// with too much to do can be looked at. It is urgent; without urgent messages it comes in its turn.
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub fn state<T: Send + 'static, F: FnOnce(&S) -> T + Send + 'static>(
        &self,
        read: F,
    ) -> Call<
        BoundedServerMessage<S>,
        T,
        impl FnOnce(Reply<T>) -> BoundedServerMessage<S> + use<S, T, F>,
    > {
        let read = |reply| ServerMessage(Kind::Work(Box::new(Read { read, reply })));
        self.0.look(read)
    }

    /// Stops the server in its turn, and waits for its end; see [`ServerRef::stop`](crate::ServerRef::stop). The order
    /// takes no room. If the future is dropped after its first poll, the server stops all the same.
    ///
    /// # Panics
    /// In the server itself, which returns [`Step::Stop`](crate::Step::Stop) instead.
    pub async fn stop(&self) {
        self.0.stop_by(ServerMessage(Kind::Stop)).await;
    }
}

impl<S: Server> ServerScope<S> {
    /// The address of this server, if its mailbox is not plain.
    pub fn bounded_server(&self) -> Option<BoundedServerRef<S>> {
        self.inbox.bounded_pid().map(BoundedServerRef)
    }
}

fn asked<S: Answer<R>, R: Send + 'static>(request: R, reply: Reply<S::Value>) -> ServerMessage<S> {
    ServerMessage(Kind::Work(Box::new(Asked { request, reply })))
}

fn accepted<S: Accept<C>, C: Send + 'static>(cast: C) -> ServerMessage<S> {
    ServerMessage(Kind::Work(Box::new(Cast(cast))))
}

/// The cast of a message that came back.
fn returned_cast<S: Server, C: 'static>(message: ServerMessage<S>) -> C {
    let Kind::Work(work) = message.0 else {
        unreachable!("a cast was sent");
    };
    let work: Box<dyn Any> = work;
    let cast = work.downcast::<Cast<C>>();
    cast.expect("what comes back is what was sent").0
}

/// The info of a message that came back.
fn returned_info<S: Server>(message: ServerMessage<S>) -> S::Info {
    match message.0 {
        Kind::Info(info) => info,
        _ => unreachable!("an info was sent"),
    }
}

impl<S: Server> Clone for BoundedServerRef<S> {
    fn clone(&self) -> BoundedServerRef<S> {
        BoundedServerRef(self.0.clone())
    }
}

impl<S: Server> AsUnit for BoundedServerRef<S> {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}

impl<S: Server> fmt::Debug for BoundedServerRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundedServerRef").field(&self.0).finish()
    }
}
