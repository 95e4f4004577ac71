//! Children that are servers or state machines with a mailbox of another kind than the plain one.
//!
//! Their users find them, and their successors, by name.

use std::{borrow::Cow, panic::Location, time::Duration};

use crate::{
    kinds::mailbox_kind::MailboxKind,
    machine::{self, Machine, bounded::BoundedMachineMessage},
    named_children::builder,
    names::Name,
    server::{self, Server, bounded::BoundedServerMessage},
    spawn::Builder,
    supervisor::spec::ChildSpec,
};

impl ChildSpec {
    /// As [`server`](ChildSpec::server), with a mailbox of this kind.
    #[track_caller]
    pub fn bounded_server<S: Server>(
        id: impl Into<Cow<'static, str>>,
        kind: MailboxKind,
        make: impl FnMut() -> S + Send + 'static,
    ) -> ChildSpec {
        let id = id.into();
        let (name, mut make) = (id.clone(), make);
        let site = Location::caller();
        let spec = ChildSpec::new(id, move |starting| {
            let (ready, server) = (starting.ready(), make());
            let builder = Builder::new().name(name.clone()).site(site).link();
            let parent = builder.parent();
            kind.spawn(builder, |inbox| {
                server::serve(server, inbox, Some(ready), parent)
            })
        });
        spec.ready_within(Duration::MAX)
    }

    /// As [`server_as`](ChildSpec::server_as), with a mailbox of this kind.
    ///
    /// ```
    /// # weald_kernel::Runtime::test(1).block_on(async {
    /// use std::num::NonZeroU32;
    /// use weald_process::{
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
        let (name, mut make) = (name.clone(), make);
        let site = Location::caller();
        let spec = ChildSpec::new(name.to_string(), move |starting| {
            let (ready, server) = (starting.ready(), make());
            let builder = builder(&name, site);
            let parent = builder.parent();
            let body = |inbox| server::serve(server, inbox, Some(ready), parent);
            kind.spawn_as(&name, builder, body)
        });
        spec.ready_within(Duration::MAX)
    }

    /// As [`machine`](ChildSpec::machine), with a mailbox of this kind.
    #[track_caller]
    pub fn bounded_machine<M: Machine>(
        id: impl Into<Cow<'static, str>>,
        kind: MailboxKind,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        let id = id.into();
        let (name, mut make) = (id.clone(), make);
        let site = Location::caller();
        let spec = ChildSpec::new(id, move |starting| {
            let (ready, machine) = (starting.ready(), make());
            let builder = Builder::new().name(name.clone()).site(site).link();
            let parent = builder.parent();
            kind.spawn(builder, |inbox| {
                machine::run(machine, inbox, Some(ready), parent)
            })
        });
        spec.ready_within(Duration::MAX)
    }

    /// As [`machine_as`](ChildSpec::machine_as), with a mailbox of this kind.
    #[track_caller]
    pub fn bounded_machine_as<M: Machine>(
        name: &Name<BoundedMachineMessage<M>>,
        kind: MailboxKind,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        let (name, mut make) = (name.clone(), make);
        let site = Location::caller();
        let spec = ChildSpec::new(name.to_string(), move |starting| {
            let (ready, machine) = (starting.ready(), make());
            let builder = builder(&name, site);
            let parent = builder.parent();
            let body = |inbox| machine::run(machine, inbox, Some(ready), parent);
            kind.spawn_as(&name, builder, body)
        });
        spec.ready_within(Duration::MAX)
    }
}
