//! What Concurrent ML builds on events: mailboxes, multicast channels and remote calls.
//!
//! They are thin: each is a channel or a chain of latches with another interface, and shows how to build more.
//! From J. H. Reppy, Concurrent Programming in ML, Cambridge University Press 1999. CML's other words have
//! other names here: `sync` is [`Event::sync`](crate::Event::sync), awaiting, or
//! [`Wait::wait`](crate::Wait::wait); `select` is `choose(..).sync()` or [`select!`](crate::select!);
//! `timeOutEvt` and `atTimeEvt` are [`after`](crate::after) and [`at`](crate::at); polls are `try_send`,
//! `try_receive` and [`Event::try_sync`](crate::Event::try_sync).

mod mailbox;
mod multicast;
mod rpc;

pub use mailbox::{Mailbox, MailboxReceive};
pub use multicast::{Multicast, Port, PortReceive};
pub use rpc::{Client, Entry, Request, Server, rpc};
