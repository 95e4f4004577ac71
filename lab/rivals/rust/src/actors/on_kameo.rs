//! kameo, with unbounded mailboxes; only what processes have beyond messages is measured.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::Duration;

use kameo::Actor;
use kameo::actor::{ActorId, ActorRef, Spawn, WeakActorRef};
use kameo::error::ActorStopReason;
use kameo::mailbox;
use kameo::message::{Context, Message};

use super::{Actors, Behaviour};

pub(crate) enum Kameo {}

/// The actor of a behaviour.
pub(crate) struct Unit<B>(B);

impl<B: Behaviour<Kameo>> Actor for Unit<B> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(unit: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(unit)
    }

    async fn on_link_died(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorId,
        _: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        self.0.link_ended();
        Ok(ControlFlow::Continue(()))
    }
}

impl<B: Behaviour<Kameo>> Message<B::Message> for Unit<B> {
    type Reply = ();

    async fn handle(&mut self, message: B::Message, context: &mut Context<Self, ()>) {
        if !self.0.handle(context.actor_ref(), message).await {
            context.stop();
        }
    }
}

/// A request: what to return.
struct Echo(u64);

pub(crate) struct EchoServer;

impl Actor for EchoServer {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(server: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(server)
    }
}

impl Message<Echo> for EchoServer {
    type Reply = u64;

    async fn handle(&mut self, Echo(value): Echo, _: &mut Context<Self, u64>) -> u64 {
        value
    }
}

impl Actors for Kameo {
    type Address<B: Behaviour<Self>> = ActorRef<Unit<B>>;
    type Server = ActorRef<EchoServer>;

    async fn start<B: Behaviour<Self>>(behaviour: B) -> ActorRef<Unit<B>> {
        let unit = Unit::spawn_with_mailbox(Unit(behaviour), mailbox::unbounded());
        unit.wait_for_startup().await;
        unit
    }

    async fn send<B: Behaviour<Self>>(to: &ActorRef<Unit<B>>, message: B::Message) {
        let sent = to.tell(message).send().await;
        assert!(sent.is_ok(), "the process is alive");
    }

    async fn link<B: Behaviour<Self>, C: Behaviour<Self>>(
        other: &ActorRef<Unit<B>>,
        to: &ActorRef<Unit<C>>,
    ) {
        other.link(to).await;
    }

    async fn start_server() -> ActorRef<EchoServer> {
        EchoServer::spawn_with_mailbox(EchoServer, mailbox::unbounded())
    }

    async fn ask(server: &ActorRef<EchoServer>, value: u64, timeout: Option<Duration>) -> u64 {
        let request = server.ask(Echo(value));
        let answer = match timeout {
            Some(timeout) => request.reply_timeout(timeout).send().await,
            None => request.send().await,
        };
        answer.expect("the server answers")
    }
}
