//! Requests, casts and reads of a server's state: what each does to the server, without its type.

use std::{any::Any, pin::Pin};

use weald_kernel::{catch_panic, wanted_by};

use crate::{
    call::Reply,
    server::{Accept, Answer, Server, ServerScope, Step},
};

/// A step on its way; none if the server continues to wait as before.
pub(super) type Handled<'a> = Pin<Box<dyn Future<Output = Option<Step>> + Send + 'a>>;

/// Something that a server does in its turn.
pub(super) trait Work<S: Server>: Any + Send {
    fn run<'a>(self: Box<Self>, server: &'a mut S, scope: &'a mut ServerScope<S>) -> Handled<'a>;
}

pub(super) struct Asked<R, V> {
    pub(super) request: R,
    pub(super) reply: Reply<V>,
}

pub(super) struct Cast<C>(pub(super) C);

pub(super) struct Read<F, T> {
    pub(super) read: F,
    pub(super) reply: Reply<T>,
}

impl<S: Answer<R>, R: Send + 'static> Work<S> for Asked<R, S::Value> {
    fn run<'a>(self: Box<Self>, server: &'a mut S, scope: &'a mut ServerScope<S>) -> Handled<'a> {
        let Asked { request, reply } = *self;
        let deadline = reply.deadline();
        Box::pin(
            async move { Some(wanted_by(deadline, server.answer(request, reply, scope)).await) },
        )
    }
}

impl<S: Accept<C>, C: Send + 'static> Work<S> for Cast<C> {
    fn run<'a>(self: Box<Self>, server: &'a mut S, scope: &'a mut ServerScope<S>) -> Handled<'a> {
        Box::pin(async move { Some(server.accept(self.0, scope).await) })
    }
}

impl<S: Server, F: FnOnce(&S) -> T + Send + 'static, T: Send + 'static> Work<S> for Read<F, T> {
    fn run<'a>(self: Box<Self>, server: &'a mut S, _: &'a mut ServerScope<S>) -> Handled<'a> {
        let Read { read, reply } = *self;
        let value = catch_panic(|| read(server));
        if let Some(value) = value {
            // A value that nobody waits for is dropped here, by a destructor of the reader's.
            let _panicked = catch_panic(|| drop(reply.send(value)));
        }
        Box::pin(async { None })
    }
}
