//! The address of a server: its start, and the requests of others, by the address or by name.

use std::fmt;

use weald_kernel::{AsUnit, SpawnError, Unit};

use super::{
    Accept, Answer, Kind, Server, ServerMessage, ServerScope,
    message::{Asked, Cast, Read},
    serve,
};
use crate::{
    call::{Call, Reply},
    inbox::Inbox,
    names::{Name, NameError, RegisterError},
    pid::Pid,
    signal::monitor::monitor,
    spawn::Builder,
};

/// The address of a server.
///
/// ```
/// use weald::process::{Builder, Server, ServerRef, ServerScope, Step};
/// use weald::sync::oneshot::{self, Sender};
///
/// struct Greeter;
///
/// impl Server for Greeter {
///     type Info = Sender<&'static str>;
///
///     async fn info(&mut self, asked: Self::Info, _: &mut ServerScope<Greeter>) -> Step {
///         let _unheard = asked.send("hello");
///         Step::Receive
///     }
/// }
///
/// weald::block_on(async {
///     let greeter = ServerRef::start(Builder::new(), Greeter).unwrap();
///     let (answer, mut answered) = oneshot::channel();
///     greeter.info(answer);
///     assert_eq!(answered.receive().await, Ok("hello"));
/// });
/// ```
pub struct ServerRef<S: Server>(Pid<ServerMessage<S>>);

impl<S: Server> ServerRef<S> {
    /// Starts a server. Its first step runs concurrently with the caller.
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start(builder: Builder, server: S) -> Result<ServerRef<S>, SpawnError> {
        let parent = builder.parent();
        let process =
            builder.spawn(move |inbox: Inbox<_>| serve(server, inbox.into(), None, parent))?;
        Ok(ServerRef(process.into_pid()))
    }

    /// As [`start`](ServerRef::start); the server has the name before it runs. If the name is taken, nothing is
    /// started.
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start_as(
        name: &Name<ServerMessage<S>>,
        builder: Builder,
        server: S,
    ) -> Result<ServerRef<S>, RegisterError> {
        let parent = builder.parent();
        let process = name.spawn(builder, move |inbox: Inbox<_>| {
            serve(server, inbox.into(), None, parent)
        })?;
        Ok(ServerRef(process.into_pid()))
    }

    /// The server that has this pid, such as one that a [`Name`] leads to.
    pub fn of(pid: Pid<ServerMessage<S>>) -> ServerRef<S> {
        ServerRef(pid)
    }

    /// The pid of its process.
    pub fn pid(&self) -> &Pid<ServerMessage<S>> {
        &self.0
    }

    /// Sends a request and waits for its answer, as [`Pid::call`]: deadlines are set on the future.
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn request<R: Send + 'static>(
        &self,
        request: R,
    ) -> Call<
        ServerMessage<S>,
        S::Value,
        impl FnOnce(Reply<S::Value>) -> ServerMessage<S> + use<S, R>,
    >
    where
        S: Answer<R>,
    {
        self.0.call(|reply| {
            let request = Asked { request, reply };
            ServerMessage(Kind::Work(Box::new(request)))
        })
    }

    /// Sends a cast. Never waits.
    pub fn cast<C: Send + 'static>(&self, cast: C)
    where
        S: Accept<C>,
    {
        self.0.send(ServerMessage(Kind::Work(Box::new(Cast(cast)))));
    }

    /// Sends an info. Never waits.
    pub fn info(&self, info: S::Info) {
        self.0.send(ServerMessage(Kind::Info(info)));
    }

    /// Reads the state in its turn, as `sys:get_state`: `read` runs in the server's process. If it panics, that is
    /// reported, the call fails, and the server continues.
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub fn state<T: Send + 'static, F: FnOnce(&S) -> T + Send + 'static>(
        &self,
        read: F,
    ) -> Call<ServerMessage<S>, T, impl FnOnce(Reply<T>) -> ServerMessage<S> + use<S, T, F>> {
        let read = |reply| ServerMessage(Kind::Work(Box::new(Read { read, reply })));
        self.0.call(read)
    }

    /// Stops the server in its turn, with the reason [`Normal`](crate::ExitReason::Normal), and waits for its end. If
    /// the future is dropped after its first poll, the server stops all the same.
    ///
    /// # Panics
    /// In the server itself, which returns [`Step::Stop`](crate::Step::Stop) instead.
    pub async fn stop(&self) {
        let down = monitor(&self.0);
        self.0.send(ServerMessage(Kind::Stop));
        down.await;
    }
}

/// Requests and casts by name.
impl<S: Server> Name<ServerMessage<S>> {
    /// Sends a request to the server that has the name now; see [`ServerRef::request`].
    ///
    /// # Errors
    /// As [`whereis`](Name::whereis). The future returns a [`CallError`](crate::CallError).
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn request<R: Send + 'static>(
        &self,
        request: R,
    ) -> Result<
        Call<
            ServerMessage<S>,
            S::Value,
            impl FnOnce(Reply<S::Value>) -> ServerMessage<S> + use<S, R>,
        >,
        NameError,
    >
    where
        S: Answer<R>,
    {
        let server = ServerRef::of(self.whereis()?);
        Ok(server.request(request))
    }

    /// Sends a cast to the server that has the name now. Never waits.
    ///
    /// # Errors
    /// As [`whereis`](Name::whereis); the cast is dropped.
    pub fn cast<C: Send + 'static>(&self, cast: C) -> Result<(), NameError>
    where
        S: Accept<C>,
    {
        ServerRef::of(self.whereis()?).cast(cast);
        Ok(())
    }
}

impl<S: Server> ServerScope<S> {
    /// The address of this server.
    ///
    /// # Panics
    /// If the mailbox is not plain: [`bounded_server`](ServerScope::bounded_server) has the address then.
    #[track_caller]
    pub fn server(&self) -> ServerRef<S> {
        ServerRef(self.inbox.plain_pid())
    }
}

impl<S: Server> Clone for ServerRef<S> {
    fn clone(&self) -> ServerRef<S> {
        ServerRef(self.0.clone())
    }
}

impl<S: Server> AsUnit for ServerRef<S> {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}

impl<S: Server> fmt::Debug for ServerRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerRef").field(&self.0).finish()
    }
}
