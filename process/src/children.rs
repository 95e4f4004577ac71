//! Children that are servers or state machines, and children that have a name from before they run.
//!
//! A server or a machine may have a name or none, and a mailbox of any kind. Each of the eight constructors says how
//! its process is spawned, and what lives in it; the rest is the same for all of them ([`living`]).
//!
//! A name is the child's id, too. It is free before the supervisor hears of the child's end, so that the successor gets
//! it. The users of a child whose mailbox is not plain find it, and its successors, by name.

use std::{any::Any, borrow::Cow, panic::Location, time::Duration};

use weald_kernel::{AsUnit, SpawnError};

use crate::{
    inbox::Inbox,
    kinds::{any_inbox::AnyInbox, mailbox_kind::MailboxKind},
    machine::{self, Machine, MachineMessage, bounded::BoundedMachineMessage},
    names::{Name, RegisterError},
    server::{self, Server, ServerMessage, bounded::BoundedServerMessage},
    signal::signals::ProcessId,
    spawn::Builder,
    supervisor::spec::{ChildSpec, Ready, StartFailure},
};

/// What runs in a child's process, from one start to the end of that process.
struct Life<T, L> {
    value: T,
    live: L,
    ready: Ready,
    parent: Option<ProcessId>,
}

impl<T, L> Life<T, L> {
    fn with<M, Fut>(self, inbox: AnyInbox<M>) -> Fut
    where
        L: FnOnce(T, AnyInbox<M>, Option<Ready>, Option<ProcessId>) -> Fut,
    {
        (self.live)(self.value, inbox, Some(self.ready), self.parent)
    }
}

/// A child whose process runs, by `live`, what `make` makes for each start; `spawn` spawns the process. The child
/// itself says when it is ready, and has as much time for that as it needs.
#[track_caller]
fn living<T, L, U, E>(
    id: Cow<'static, str>,
    make: impl FnMut() -> T + Send + 'static,
    live: L,
    spawn: impl Fn(Builder, Life<T, L>) -> Result<U, E> + Send + 'static,
) -> ChildSpec
where
    L: Copy + Send + 'static,
    U: AsUnit + Any,
    E: Into<StartFailure>,
{
    let (name, mut make) = (id.clone(), make);
    let site = Location::caller();
    let spec = ChildSpec::new(id, move |starting| {
        let (ready, value) = (starting.ready(), make());
        let builder = linked(name.clone(), site);
        let parent = builder.parent();
        let life = Life {
            value,
            live,
            ready,
            parent,
        };
        spawn(builder, life)
    });
    spec.ready_within(Duration::MAX)
}

/// The settings of a child with this name, which is linked with its supervisor.
fn linked(name: Cow<'static, str>, site: &'static Location<'static>) -> Builder {
    Builder::new().name(name).site(site).link()
}

impl ChildSpec {
    /// As [`process`](ChildSpec::process); the process has the name before it runs, and its id is the name. If another
    /// one has the name, the child does not start, with the [`RegisterError`]. A bounded process with a name is started
    /// by [`ChildSpec::new`], with [`Name::spawn_bounded`] and [`Builder::link`].
    #[track_caller]
    pub fn process_as<M, Fut>(
        name: &Name<M>,
        body: impl FnMut(Inbox<M>) -> Fut + Send + 'static,
    ) -> ChildSpec
    where
        M: Send + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let (name, mut body) = (name.clone(), body);
        let site = Location::caller();
        ChildSpec::new(name.to_string(), move |_starting| {
            let builder = linked(name.to_string().into(), site);
            let process = name.spawn(builder, &mut body)?;
            Ok::<_, RegisterError>(process.into_pid())
        })
    }

    /// A child that is a server, which `make` makes for each start. It is ready when its [first step](Server::begin)
    /// returns, for which it has as much time as it needs, unless [`ready_within`](ChildSpec::ready_within) says
    /// otherwise. The supervisor starts no child meanwhile, so this step must not wait for another child that has
    /// ended.
    #[track_caller]
    pub fn server<S: Server>(
        id: impl Into<Cow<'static, str>>,
        make: impl FnMut() -> S + Send + 'static,
    ) -> ChildSpec {
        living(id.into(), make, server::serve::<S>, |builder, life| {
            let process = builder.spawn(|inbox: Inbox<_>| life.with(inbox.into()))?;
            Ok::<_, SpawnError>(process.into_pid())
        })
    }

    /// As [`server`](ChildSpec::server); the server has the name before it runs, and its id is the name. If another one
    /// has the name, the child does not start, with the [`RegisterError`].
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{
    ///     Answer, ChildSpec, Name, Reply, Server, ServerMessage, ServerScope, Step, Strategy, Supervisor,
    /// };
    ///
    /// struct Clock;
    /// struct Hour;
    ///
    /// impl Server for Clock {
    ///     type Info = ();
    /// }
    ///
    /// impl Answer<Hour> for Clock {
    ///     type Value = u32;
    ///
    ///     async fn answer(&mut self, _: Hour, reply: Reply<u32>, _: &mut ServerScope<Clock>) -> Step {
    ///         let _unheard = reply.send(12);
    ///         Step::Receive
    ///     }
    /// }
    ///
    /// static CLOCK: Name<ServerMessage<Clock>> = Name::new("clock");
    ///
    /// let supervisor = Supervisor::new(Strategy::OneForOne);
    /// let supervisor = supervisor.child(ChildSpec::server_as(&CLOCK, || Clock)).start().await?;
    /// assert_eq!(CLOCK.request(Hour)?.await?, 12);
    /// supervisor.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn server_as<S: Server>(
        name: &Name<ServerMessage<S>>,
        make: impl FnMut() -> S + Send + 'static,
    ) -> ChildSpec {
        let name = name.clone();
        living(
            name.to_string().into(),
            make,
            server::serve::<S>,
            move |builder, life| {
                let process = name.spawn(builder, |inbox| life.with(inbox.into()))?;
                Ok::<_, RegisterError>(process.into_pid())
            },
        )
    }

    /// As [`server`](ChildSpec::server), with a mailbox of this kind.
    #[track_caller]
    pub fn bounded_server<S: Server>(
        id: impl Into<Cow<'static, str>>,
        kind: MailboxKind,
        make: impl FnMut() -> S + Send + 'static,
    ) -> ChildSpec {
        living(id.into(), make, server::serve::<S>, move |builder, life| {
            kind.spawn(builder, |inbox| life.with(inbox))
        })
    }

    /// As [`server_as`](ChildSpec::server_as), with a mailbox of this kind.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::num::NonZeroU32;
    /// use weald::process::{
    ///     Answer, BoundedServerMessage, BoundedServerRef, ChildSpec, MailboxKind, Name, Overflow, Reply, Server,
    ///     ServerScope, Step, Strategy, Supervisor,
    /// };
    ///
    /// struct Clock;
    /// struct Hour;
    ///
    /// impl Server for Clock {
    ///     type Info = ();
    /// }
    ///
    /// impl Answer<Hour> for Clock {
    ///     type Value = u32;
    ///
    ///     async fn answer(&mut self, _: Hour, reply: Reply<u32>, _: &mut ServerScope<Clock>) -> Step {
    ///         let _unheard = reply.send(12);
    ///         Step::Receive
    ///     }
    /// }
    ///
    /// static CLOCK: Name<BoundedServerMessage<Clock>> = Name::new("clock");
    ///
    /// let kind = MailboxKind::bounded(NonZeroU32::new(100).unwrap(), Overflow::Wait);
    /// let supervisor = Supervisor::new(Strategy::OneForOne);
    /// let supervisor = supervisor.child(ChildSpec::bounded_server_as(&CLOCK, kind, || Clock)).start().await?;
    /// assert_eq!(BoundedServerRef::named(&CLOCK)?.request(Hour).await?, 12);
    /// supervisor.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn bounded_server_as<S: Server>(
        name: &Name<BoundedServerMessage<S>>,
        kind: MailboxKind,
        make: impl FnMut() -> S + Send + 'static,
    ) -> ChildSpec {
        let name = name.clone();
        living(
            name.to_string().into(),
            make,
            server::serve::<S>,
            move |builder, life| kind.spawn_as(&name, builder, |inbox| life.with(inbox)),
        )
    }

    /// A child that is a state machine, which `make` makes for each start. It is ready when it has its [first
    /// state](Machine::begin), for which it has as much time as it needs, unless
    /// [`ready_within`](ChildSpec::ready_within) says otherwise.
    #[track_caller]
    pub fn machine<M: Machine>(
        id: impl Into<Cow<'static, str>>,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        living(id.into(), make, machine::run::<M>, |builder, life| {
            let process = builder.spawn(|inbox: Inbox<_>| life.with(inbox.into()))?;
            Ok::<_, SpawnError>(process.into_pid())
        })
    }

    /// As [`machine`](ChildSpec::machine); the machine has the name before it runs, and its id is the name. If another
    /// one has the name, the child does not start, with the [`RegisterError`].
    #[track_caller]
    pub fn machine_as<M: Machine>(
        name: &Name<MachineMessage<M>>,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        let name = name.clone();
        living(
            name.to_string().into(),
            make,
            machine::run::<M>,
            move |builder, life| {
                let process = name.spawn(builder, |inbox| life.with(inbox.into()))?;
                Ok::<_, RegisterError>(process.into_pid())
            },
        )
    }

    /// As [`machine`](ChildSpec::machine), with a mailbox of this kind.
    #[track_caller]
    pub fn bounded_machine<M: Machine>(
        id: impl Into<Cow<'static, str>>,
        kind: MailboxKind,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        living(id.into(), make, machine::run::<M>, move |builder, life| {
            kind.spawn(builder, |inbox| life.with(inbox))
        })
    }

    /// As [`machine_as`](ChildSpec::machine_as), with a mailbox of this kind.
    #[track_caller]
    pub fn bounded_machine_as<M: Machine>(
        name: &Name<BoundedMachineMessage<M>>,
        kind: MailboxKind,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        let name = name.clone();
        living(
            name.to_string().into(),
            make,
            machine::run::<M>,
            move |builder, life| kind.spawn_as(&name, builder, |inbox| life.with(inbox)),
        )
    }
}
