//! ractor: mailboxes are its message ports.

use std::marker::PhantomData;
use std::time::Duration;

use common::fail;
use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use super::{Actors, Behaviour};

pub(crate) enum Ractor {}

type Done = Result<(), ActorProcessingErr>;

/// The actor of a behaviour, which is its state.
struct Unit<B>(PhantomData<fn(B)>);

impl<B: Behaviour<Ractor>> Actor for Unit<B> {
    type Msg = B::Message;
    type State = B;
    type Arguments = B;

    async fn pre_start(
        &self,
        _: ActorRef<B::Message>,
        behaviour: B,
    ) -> Result<B, ActorProcessingErr> {
        Ok(behaviour)
    }

    async fn post_start(&self, _: ActorRef<B::Message>, behaviour: &mut B) -> Done {
        behaviour.started();
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<B::Message>,
        message: B::Message,
        behaviour: &mut B,
    ) -> Done {
        if !behaviour.handle(&me, message).await {
            me.stop(None);
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<B::Message>,
        event: SupervisionEvent,
        behaviour: &mut B,
    ) -> Done {
        if let SupervisionEvent::ActorTerminated(..) = event {
            behaviour.link_ended();
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<B::Message>, behaviour: &mut B) -> Done {
        behaviour.stopped();
        Ok(())
    }
}

/// A request: what to return, and where.
pub(crate) struct Echo(u64, RpcReplyPort<u64>);

struct EchoServer;

impl Behaviour<Ractor> for EchoServer {
    type Message = Echo;

    async fn handle(&mut self, _: &ActorRef<Echo>, Echo(value, reply): Echo) -> bool {
        reply.send(value).is_ok()
    }
}

impl Actors for Ractor {
    type Address<B: Behaviour<Self>> = ActorRef<B::Message>;
    type Server = ActorRef<Echo>;

    async fn start<B: Behaviour<Self>>(behaviour: B) -> ActorRef<B::Message> {
        match Actor::spawn(None, Unit(PhantomData), behaviour).await {
            Ok((address, _)) => address,
            Err(_) => fail("A process cannot be started: give a smaller number of them."),
        }
    }

    async fn send<B: Behaviour<Self>>(to: &ActorRef<B::Message>, message: B::Message) {
        assert!(to.cast(message).is_ok(), "the process is alive");
    }

    async fn link<B: Behaviour<Self>, C: Behaviour<Self>>(
        other: &ActorRef<B::Message>,
        to: &ActorRef<C::Message>,
    ) {
        other.link(to.get_cell());
    }

    async fn start_server() -> ActorRef<Echo> {
        Self::start(EchoServer).await
    }

    async fn ask(server: &ActorRef<Echo>, value: u64, timeout: Option<Duration>) -> u64 {
        match server.call(|reply| Echo(value, reply), timeout).await {
            Ok(CallResult::Success(answer)) => answer,
            _ => panic!("a call failed"),
        }
    }
}
