//! CML's simple remote call: a request with the place for its reply.
//!
//! CML has four of them, for servers with and without a state that is passed in and out. Here a server passes
//! a closure, or takes the request and replies when it likes.

use std::fmt;

use crate::{
    combinators::{Carried, pinned::Both},
    event::{Event, Waiting, awaitable},
    tools::channel::{self, Closed, Receive, Receiver, Sender},
};

/// A server and its clients: a call waits until the server takes the request, and then for the reply.
///
/// ```
/// use weald::sync::{Wait, cml};
///
/// let (client, server) = cml::rpc();
/// let thread = std::thread::spawn(move || {
///     let mut sum = 0;
///     let mut add = |n: i32| {
///         sum += n;
///         sum
///     };
///     while server.entry(&mut add).wait().is_ok() {}
/// });
/// let call = |n| Box::pin(client.call(n)).wait();
/// assert_eq!((call(1), call(2)), (Ok(1), Ok(3)));
/// drop(client);
/// # thread.join().unwrap();
/// ```
pub fn rpc<A, R>() -> (Client<A, R>, Server<A, R>) {
    let (requests, incoming) = channel::rendezvous();
    (Client { requests }, Server { incoming })
}

/// The calling side; any number of clones.
#[derive(Debug)]
pub struct Client<A, R> {
    requests: Sender<Request<A, R>>,
}

/// The serving side; any number of clones. Each request goes to one of them.
#[derive(Debug)]
pub struct Server<A, R> {
    incoming: Receiver<Request<A, R>>,
}

/// A request that a server has taken. If it is dropped, its client gets [`Closed`].
#[must_use = "the client waits for the reply"]
pub struct Request<A, R> {
    /// What the client asks for.
    pub argument: A,
    reply: Sender<R>,
}

/// The event of [`Server::entry`].
#[must_use = "an event does nothing unless it is synced"]
pub struct Entry<'a, A, R, F> {
    receive: Waiting<Receive<'a, Request<A, R>>>,
    serve: F,
}

impl<A, R> Client<A, R> {
    /// Calls the server. If the call is dropped, either the request was not taken, or the reply is dropped.
    ///
    /// # Errors
    /// [`Closed`] if there is no server left, or it dropped the request without a reply.
    pub async fn call(&self, argument: A) -> Result<R, Closed> {
        let (reply, replies) = channel::unbounded();
        let request = Request { argument, reply };
        self.requests.send(request).await.map_err(|_| Closed)?;
        replies.receive().await
    }
}

impl<A, R> Server<A, R> {
    /// The event of taking a request, to be answered later or by another unit. Cancel-safe: a request that was handed
    /// to a wait that is dropped goes to the next one.
    ///
    /// # Errors
    /// [`Closed`] if there is no client left.
    pub fn receive(&self) -> Waiting<Receive<'_, Request<A, R>>> {
        self.incoming.receive()
    }

    /// The event of serving one request with `f`, which runs after the choice.
    ///
    /// # Errors
    /// [`Closed`] if there is no client left.
    pub fn entry<F: FnOnce(A) -> R>(&self, f: F) -> Entry<'_, A, R, F> {
        Entry {
            receive: self.incoming.receive(),
            serve: f,
        }
    }
}

impl<'a, A, R, F: FnOnce(A) -> R> Event for Entry<'a, A, R, F> {
    type Output = Result<(), Closed>;
    type Branch = Both<Receive<'a, Request<A, R>>, Carried<F>>;

    fn open(self) -> Self::Branch {
        Both::new(self.receive.open(), Carried::new(self.serve))
    }

    fn conclude((serve, request): (F, Result<Request<A, R>, Closed>)) -> Result<(), Closed> {
        let Request { argument, reply } = request?;
        reply_to(&reply, serve(argument));
        Ok(())
    }
}

awaitable!(['a, A, R, F: FnOnce(A) -> R] Entry<'a, A, R, F>);

impl<A, R> Request<A, R> {
    /// Replies.
    pub fn reply(self, reply: R) {
        reply_to(&self.reply, reply);
    }
}

fn reply_to<R>(client: &Sender<R>, reply: R) {
    // A client that is gone wants no reply.
    let _gone = client.try_send(reply);
}

impl<A, R> Clone for Client<A, R> {
    fn clone(&self) -> Client<A, R> {
        Client {
            requests: self.requests.clone(),
        }
    }
}

impl<A, R> Clone for Server<A, R> {
    fn clone(&self) -> Server<A, R> {
        Server {
            incoming: self.incoming.clone(),
        }
    }
}

impl<A, R> fmt::Debug for Request<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").finish_non_exhaustive()
    }
}

impl<A, R, F> fmt::Debug for Entry<'_, A, R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}
