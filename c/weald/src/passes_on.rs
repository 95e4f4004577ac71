//! The process of a function that runs on an OS thread of its own: it passes its messages on, and does what the
//! function has done by a process.
//!
//! Only `on_own_thread` makes one.

use weald::{
    process::Inbox,
    sync::{channel, select},
};

use crate::{
    calling::tell_links,
    current::{Command, Ends},
    message::Message,
};

/// What such a process has. When it is cancelled, this is dropped, and the function finds its messages or its commands
/// closed; it may ask at once whether it was cancelled. So the end is noted first, by the order of the fields:
///
/// - *Together*: [`run`](PassesOn::run) takes all of it, so the fields are dropped one after the other, in this order,
///   whether the process has begun or not. The waits of `run` are dropped before; what they were given goes back to its
///   channel.
/// - *Commands last*: a command that is not done is dropped with the receiver, and its caller is woken then.
pub(crate) struct PassesOn {
    pub(crate) ends: Ends,
    pub(crate) to_thread: channel::Sender<Message>,
    pub(crate) commands: channel::Receiver<Command>,
}

impl PassesOn {
    /// The process, until `ended` has the code that the function has returned. `_open` is a sender of commands: without
    /// it they would be closed, and so ready, while the function ends.
    pub(crate) async fn run(
        self,
        mut inbox: Inbox<Message>,
        ended: channel::Receiver<i32>,
        _open: channel::Sender<Command>,
    ) {
        loop {
            let next = select! {
                code = ended.receive() => Next::End(code.unwrap_or(0)),
                command = self.commands.receive() => Next::Command(command),
                message = inbox.receive() => Next::Message(message),
            };
            match next {
                Next::End(code) => {
                    self.ends.returned(code);
                    return tell_links(code);
                }
                Next::Command(command) => command.into_iter().for_each(|act| act(&mut inbox)),
                // Nobody receives it if the function is about to return.
                Next::Message(message) => drop(self.to_thread.try_send(message)),
            }
        }
    }
}

/// What the process does next.
enum Next<C> {
    End(i32),
    Command(C),
    Message(Message),
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use weald::process::{self, monitor};
    use weald_kernel::Runtime;

    use super::*;
    use crate::current::Ending;

    /// Notes when it is dropped whether the end was noted before.
    struct Looks {
        ending: Arc<OnceLock<Ending>>,
        was_noted: Arc<OnceLock<bool>>,
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            let _first = self.was_noted.set(self.ending.get().is_some());
        }
    }

    #[test]
    fn a_command_that_a_cancel_leaves_undone_finds_the_end_noted() {
        // It has one worker, so the process does nothing between two waits of the test.
        Runtime::test(1).block_on(async {
            let (to_thread, messages) = channel::unbounded();
            let (_tells, ended) = channel::bounded(1);
            let (to_process, commands) = channel::unbounded::<Command>();
            let (ending, was_noted) = (Arc::default(), Arc::default());
            let ends = Ends(Arc::clone(&ending));
            let passes = PassesOn {
                ends,
                to_thread,
                commands,
            };
            let open = to_process.clone();
            let builder = process::Builder::new();
            let spawned = builder.spawn(async move |inbox| passes.run(inbox, ended, open).await);
            let pid = spawned.unwrap().into_pid();
            // Then it waits.
            assert!(pid.try_send(Message::of(b"one").unwrap()).is_ok());
            assert!(messages.receive().await.is_ok());
            pid.kill();
            let looks = Looks {
                ending,
                was_noted: Arc::clone(&was_noted),
            };
            let sent = to_process.try_send(Box::new(move |_inbox| drop(looks)));
            assert!(sent.is_ok());
            monitor(&pid).await;
            assert_eq!(was_noted.get(), Some(&true));
        });
    }
}
