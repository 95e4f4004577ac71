//! The receptor: a process that takes closures and messages, and runs them as callback threads with ids.
//!
//! It is the pair of receptor and worker of the Elixir document, as one process: it only accepts and hands
//! on, so it never blocks; what a thread does runs as callbacks that the process owns.
//!
//! - A thread is a closure's run, and then its handler. Its events come one after the other, in the order in
//!   which they were accepted; those of different threads run beside each other.
//! - Ids are 0, 1, 2, ... and none comes twice. An id that names no thread is an error, not a crash.
//! - A thread whose closure or handler panics is gone, and it alone. So is one that has run and has no
//!   handler.
//! - What users give may panic when it is dropped: that harms neither the receptor nor another thread.

mod apart;
mod thread;

use std::{collections::HashMap, fmt, sync::Arc};

use apart::{Apart, apart};
use thread::{Event, Thread};
use weald_kernel::{JobName, SpawnError};
use weald_sync::oneshot;

use crate::{Inbox, Pid, callback::Owner, spawn};

/// The number of a thread of a receptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    /// The number: how many threads the receptor had started before.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a receptor did not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceptorError {
    /// No thread has this id.
    #[error(
        "no callback thread has the id {0}: it has ended, or crashed, or never was; a thread lives on \
         after its closure if it sets a handler"
    )]
    UnknownId(Id),
    /// The receptor has ended.
    #[error("the receptor has ended and takes nothing more; start another one")]
    Ended,
}

type Run<M> = Box<dyn FnOnce(&Itself<M>) + Send>;
type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// What a receptor is asked for.
enum Request<M> {
    Spawn(Apart<Run<M>>, Apart<Reply<Id>>),
    Send(Id, Apart<Event<M>>, Apart<Reply<Result<(), ReceptorError>>>),
    /// The thread has nothing more to do, unless an event is on its way.
    Idle(Id),
}

/// A receptor whose threads take messages `M`. A clone is the same one.
///
/// ```
/// use weald_process::receptor::Receptor;
///
/// # weald_kernel::Runtime::test(1).block_on(async {
/// let receptor = Receptor::start()?;
/// let (sender, seen) = std::sync::mpsc::channel();
/// let id = receptor
///     .spawn_with_id(move |thread| thread.set_handler(move |n: u32| sender.send(n).unwrap()))
///     .await?;
/// receptor.try_send(id, 42).await?;
/// weald_kernel::sleep(std::time::Duration::from_millis(1)).await;
/// assert_eq!(seen.try_recv(), Ok(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Receptor<M> {
    pid: Pid<Request<M>>,
}

/// What a running closure or handler is told of the thread that it belongs to.
pub struct Itself<M> {
    id: Id,
    receptor: Receptor<M>,
    thread: Arc<Thread<M>>,
}

impl<M: Send + 'static> Receptor<M> {
    /// Starts a receptor. It ends when it is [ended](Receptor::end); its threads end with it.
    ///
    /// # Errors
    /// As [`spawn`].
    #[track_caller]
    pub fn start() -> Result<Receptor<M>, SpawnError> {
        let process = spawn(async |mut inbox: Inbox<Request<M>>| {
            let receptor = Receptor { pid: inbox.pid() };
            let mut threads = Threads {
                receptor,
                owner: Owner::current(),
                alive: HashMap::new(),
                next: 0,
            };
            loop {
                let request = inbox.receive().await;
                threads.accept(request);
            }
        });
        let process: crate::Process<_, std::convert::Infallible> = process?;
        Ok(Receptor {
            pid: process.into_pid(),
        })
    }

    /// Runs `run` as a thread of its own. Never waits; any thread.
    pub fn spawn(&self, run: impl FnOnce(&Itself<M>) + Send + 'static) {
        self.spawn_and_tell(run, drop);
    }

    /// As [`spawn`](Receptor::spawn), and waits for the thread's id. Cancel-safe, but for the id.
    ///
    /// # Errors
    /// [`ReceptorError::Ended`].
    pub async fn spawn_with_id(
        &self,
        run: impl FnOnce(&Itself<M>) + Send + 'static,
    ) -> Result<Id, ReceptorError> {
        let (sender, mut receiver) = oneshot::channel();
        self.spawn_and_tell(run, move |id| {
            let _gone = sender.send(id);
        });
        let answer = receiver.receive().await;
        answer.map_err(|_| ReceptorError::Ended)
    }

    /// As [`spawn`](Receptor::spawn); `tell` is told the thread's id, in the receptor, before the thread runs. It
    /// must not block; to tell another thread, it sends to that one.
    pub fn spawn_and_tell(
        &self,
        run: impl FnOnce(&Itself<M>) + Send + 'static,
        tell: impl FnOnce(Id) + Send + 'static,
    ) {
        let (run, tell): (Run<M>, Reply<Id>) = (Box::new(run), Box::new(tell));
        self.pid
            .send(Request::Spawn(Apart::new(run), Apart::new(tell)));
    }

    /// Sends `message` to a thread, whose handler is called with it. To an unknown id it is dropped.
    pub fn send(&self, id: Id, message: M) {
        self.request(id, Event::Message(message), drop);
    }

    /// As [`send`](Receptor::send), and waits until the receptor has accepted it for the thread, which may crash
    /// before it comes to it.
    ///
    /// # Errors
    /// [`ReceptorError::UnknownId`], [`ReceptorError::Ended`].
    pub async fn try_send(&self, id: Id, message: M) -> Result<(), ReceptorError> {
        self.ask(id, Event::Message(message)).await
    }

    /// Sets what is called with the messages of a thread, behind the events that it has not had yet.
    ///
    /// # Errors
    /// As [`try_send`](Receptor::try_send).
    pub async fn set_handler(
        &self,
        id: Id,
        handler: impl FnMut(M) + Send + 'static,
    ) -> Result<(), ReceptorError> {
        self.ask(id, Event::Handler(Some(Box::new(handler)))).await
    }

    /// Takes a thread's handler away, behind the events that it has not had yet: so it ends.
    ///
    /// # Errors
    /// As [`try_send`](Receptor::try_send).
    pub async fn end_thread(&self, id: Id) -> Result<(), ReceptorError> {
        self.ask(id, Event::Handler(None)).await
    }

    /// Ends the receptor and its threads.
    pub fn end(&self) {
        self.pid.kill();
    }

    /// The receptor's name and spawn site, for messages.
    pub fn name(&self) -> JobName {
        self.pid.name()
    }

    async fn ask(&self, id: Id, event: Event<M>) -> Result<(), ReceptorError> {
        let (sender, mut receiver) = oneshot::channel();
        self.request(id, event, move |accepted| {
            let _gone = sender.send(accepted);
        });
        let answer = receiver.receive().await;
        answer.unwrap_or(Err(ReceptorError::Ended))
    }

    fn request(
        &self,
        id: Id,
        event: Event<M>,
        reply: impl FnOnce(Result<(), ReceptorError>) + Send + 'static,
    ) {
        let reply: Reply<Result<(), ReceptorError>> = Box::new(reply);
        self.pid
            .send(Request::Send(id, Apart::new(event), Apart::new(reply)));
    }

    /// A thread has nothing more to do.
    fn tell_idle(&self, id: Id) {
        self.pid.send(Request::Idle(id));
    }
}

/// What the receptor's process knows.
struct Threads<M> {
    receptor: Receptor<M>,
    owner: Owner,
    alive: HashMap<Id, Arc<Thread<M>>>,
    next: u64,
}

impl<M: Send + 'static> Threads<M> {
    fn accept(&mut self, request: Request<M>) {
        match request {
            Request::Spawn(run, tell) => {
                let id = Id(self.next);
                self.next += 1;
                let thread = Arc::new(Thread::new());
                self.alive.insert(id, thread.clone());
                told(tell, id);
                self.hand_on(id, &thread, Apart::new(Event::Run(run.into_inner())));
            }
            Request::Send(id, event, reply) => match self.alive.get(&id).cloned() {
                Some(thread) if !thread.has_crashed() => {
                    self.hand_on(id, &thread, event);
                    told(reply, Ok(()));
                }
                _ => told(reply, Err(ReceptorError::UnknownId(id))),
            },
            Request::Idle(id) => {
                // Only this process hands events on: so none comes between the question and the removal.
                if self.alive.get(&id).is_some_and(|thread| thread.is_over()) {
                    self.alive.remove(&id);
                }
            }
        }
    }

    fn hand_on(&self, id: Id, thread: &Arc<Thread<M>>, event: Apart<Event<M>>) {
        let itself = Itself {
            id,
            receptor: self.receptor.clone(),
            thread: thread.clone(),
        };
        thread::push(itself, event, self.owner.clone());
    }
}

/// Tells without being harmed: what is told may be user code.
fn told<T>(tell: Apart<Reply<T>>, answer: T) {
    apart(|| tell.into_inner()(answer));
}

impl<M: Send + 'static> Itself<M> {
    /// The thread's own id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The receptor that the thread belongs to.
    pub fn receptor(&self) -> &Receptor<M> {
        &self.receptor
    }

    /// Sets what is called with the messages of this thread from now on.
    pub fn set_handler(&self, handler: impl FnMut(M) + Send + 'static) {
        self.thread.set_handler(Some(Box::new(handler)));
    }
}

impl<M> Clone for Receptor<M> {
    fn clone(&self) -> Receptor<M> {
        Receptor {
            pid: self.pid.clone(),
        }
    }
}

impl<M> fmt::Debug for Receptor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receptor").field(&self.pid).finish()
    }
}

impl<M> fmt::Debug for Itself<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Itself")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
