//! Children that have a name from before they run: processes, servers and state machines.
//!
//! The name is the child's id, too. It is free before the supervisor hears of the child's end, so that the successor gets it.

use std::{panic::Location, time::Duration};

use crate::{
    inbox::Inbox,
    machine::{self, Machine, MachineMessage},
    names::{Name, RegisterError},
    server::{self, Server, ServerMessage},
    spawn::Builder,
    supervisor::spec::ChildSpec,
};

/// The settings of a child with this name, which is linked with its supervisor.
pub(crate) fn builder<M: Send + 'static>(
    name: &Name<M>,
    site: &'static Location<'static>,
) -> Builder {
    Builder::new().name(name.to_string()).site(site).link()
}

impl ChildSpec {
    /// As [`process`](ChildSpec::process); the process has the name before it runs, and its id is the name. If another one has
    /// the name, the child does not start, with the [`RegisterError`]. A bounded process with a name is started by
    /// [`ChildSpec::new`], with [`Name::spawn_bounded`] and [`Builder::link`].
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
            let process = name.spawn(builder(&name, site), &mut body)?;
            Ok::<_, RegisterError>(process.into_pid())
        })
    }

    /// As [`server`](ChildSpec::server); the server has the name before it runs, and its id is the name. If another one has
    /// the name, the child does not start, with the [`RegisterError`].
    ///
    /// ```
    /// # weald_kernel::Runtime::test(1).block_on(async {
    /// use weald_process::{
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
        let (name, mut make) = (name.clone(), make);
        let site = Location::caller();
        let spec = ChildSpec::new(name.to_string(), move |starting| {
            let (ready, server) = (starting.ready(), make());
            let builder = builder(&name, site);
            let parent = builder.parent();
            let body =
                move |inbox: Inbox<_>| server::serve(server, inbox.into(), Some(ready), parent);
            Ok::<_, RegisterError>(name.spawn(builder, body)?.into_pid())
        });
        spec.ready_within(Duration::MAX)
    }

    /// As [`machine`](ChildSpec::machine); the machine has the name before it runs, and its id is the name. If another one has
    /// the name, the child does not start, with the [`RegisterError`].
    #[track_caller]
    pub fn machine_as<M: Machine>(
        name: &Name<MachineMessage<M>>,
        make: impl FnMut() -> M + Send + 'static,
    ) -> ChildSpec {
        let (name, mut make) = (name.clone(), make);
        let site = Location::caller();
        let spec = ChildSpec::new(name.to_string(), move |starting| {
            let (ready, machine) = (starting.ready(), make());
            let builder = builder(&name, site);
            let parent = builder.parent();
            let body =
                move |inbox: Inbox<_>| machine::run(machine, inbox.into(), Some(ready), parent);
            Ok::<_, RegisterError>(name.spawn(builder, body)?.into_pid())
        });
        spec.ready_within(Duration::MAX)
    }
}
