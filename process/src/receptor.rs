//! The receptor: a process that takes closures and messages, and runs them as callback threads with ids.
//!
//! It only accepts and dispatches, so it never blocks; the code of a thread runs as callbacks that the
//! process owns.
//!
//! - A thread is a closure that runs once, and then a handler. Its events run one after the other, in the order in
//!   which they were accepted; those of different threads run concurrently.
//! - Ids are 0, 1, 2, ... and are never used again. An id that names no thread is an error, not a crash.
//! - A panic of a closure or handler ends its thread, and no other. A thread also ends when it has run and has no
//!   handler.
//! - A user's value may panic when it is dropped: that harms neither the receptor nor another thread.

mod isolated;

mod thread;

use std::{collections::BTreeMap, fmt, panic::Location, sync::Arc};

use isolated::{Isolated, isolate};
use thread::{Thread, ThreadEvent, ThreadOrigin};
use weald_kernel::{JobName, SpawnError, callback::Owner};
use weald_sync::oneshot;

use crate::{
    inbox::Inbox,
    pid::Pid,
    spawn::{Process, spawn},
};

/// The number of a thread of a receptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    /// The number: how many threads the receptor had started before this one.
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

/// Why a receptor refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceptorError {
    /// No thread has this id.
    #[error(
        "no callback thread has the id {0}: it has ended, crashed, or never existed; a thread outlives \
         its closure only if it sets a handler"
    )]
    UnknownId(Id),
    /// The receptor has ended.
    #[error("the receptor has ended and accepts nothing more; start another one")]
    Ended,
}

type Run<M> = Box<dyn FnOnce(&Itself<M>) + Send>;
type Tell<T> = Box<dyn FnOnce(T) + Send>;

/// A message to the receptor's process.
enum Request<M> {
    Spawn(ThreadOrigin<M>, Isolated<Run<M>>, Isolated<Tell<Id>>),
    Send(
        Id,
        Isolated<ThreadEvent<M>>,
        Isolated<Tell<Result<(), ReceptorError>>>,
    ),
    /// The thread has nothing left to do, unless an event is on its way.
    Idle(Id),
}

/// A receptor whose threads take messages `M`. Clones refer to the same receptor.
///
/// ```
/// use weald::process::receptor::Receptor;
///
/// # weald::Runtime::test(1).block_on(async {
/// let receptor = Receptor::start()?;
/// let (sender, seen) = std::sync::mpsc::channel();
/// let id = receptor
///     .spawn_with_id(move |thread| thread.set_handler(move |n: u32| sender.send(n).unwrap()))
///     .await?;
/// receptor.try_send(id, 42).await?;
/// weald::sleep(std::time::Duration::from_millis(1)).await;
/// assert_eq!(seen.try_recv(), Ok(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Receptor<M> {
    pid: Pid<Request<M>>,
}

/// A closure's view of the thread that it runs as.
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
                alive: BTreeMap::new(),
                next: 0,
            };
            loop {
                let request = inbox.receive().await;
                threads.accept(request);
            }
        });
        let process: Process<_, std::convert::Infallible> = process?;
        Ok(Receptor {
            pid: process.into_pid(),
        })
    }

    /// Runs `run` as a thread of its own. Never waits; callable from any thread. Reports name the thread by the type
    /// of `run` and the line of this call.
    #[track_caller]
    pub fn spawn(&self, run: impl FnOnce(&Itself<M>) + Send + 'static) {
        self.spawn_and_tell(run, drop);
    }

    /// As [`spawn`](Receptor::spawn), and waits for the thread's id. Dropping the future loses the id, and nothing
    /// else.
    ///
    /// # Errors
    /// [`ReceptorError::Ended`].
    #[track_caller]
    pub fn spawn_with_id(
        &self,
        run: impl FnOnce(&Itself<M>) + Send + 'static,
    ) -> impl Future<Output = Result<Id, ReceptorError>> {
        let site = Location::caller();
        async move {
            let (sender, mut receiver) = oneshot::channel();
            self.spawn_at(site, run, move |id| {
                let _gone = sender.send(id);
            });
            let answer = receiver.receive().await;
            answer.map_err(|_| ReceptorError::Ended)
        }
    }

    /// As [`spawn`](Receptor::spawn). The receptor calls `tell` with the thread's id before the thread runs. `tell`
    /// must not block; it may pass the id to another thread by sending a message to it.
    #[track_caller]
    pub fn spawn_and_tell(
        &self,
        run: impl FnOnce(&Itself<M>) + Send + 'static,
        tell: impl FnOnce(Id) + Send + 'static,
    ) {
        self.spawn_at(Location::caller(), run, tell);
    }

    fn spawn_at<R: FnOnce(&Itself<M>) + Send + 'static>(
        &self,
        site: &'static Location<'static>,
        run: R,
        tell: impl FnOnce(Id) + Send + 'static,
    ) {
        let origin = ThreadOrigin::of::<R>(site);
        let (run, tell): (Run<M>, Tell<Id>) = (Box::new(run), Box::new(tell));
        let (run, tell) = (Isolated::new(run), Isolated::new(tell));
        self.pid.send(Request::Spawn(origin, run, tell));
    }

    /// Sends `message` to a thread, whose handler is called with it. If the id is unknown, the message is dropped.
    pub fn send(&self, id: Id, message: M) {
        self.request(id, ThreadEvent::Message(message), drop);
    }

    /// As [`send`](Receptor::send), and waits until the receptor has accepted the message for the thread. The thread
    /// may still crash before it handles the message. If the future is dropped after its first poll, the receptor
    /// passes the message on all the same, and nobody hears of the result.
    ///
    /// # Errors
    /// [`ReceptorError::UnknownId`], [`ReceptorError::Ended`].
    pub async fn try_send(&self, id: Id, message: M) -> Result<(), ReceptorError> {
        self.ask(id, ThreadEvent::Message(message)).await
    }

    /// Sets the handler of a thread's messages, after the events that are already queued. If the future is dropped
    /// after its first poll, the receptor sets it all the same.
    ///
    /// # Errors
    /// As [`try_send`](Receptor::try_send).
    pub async fn set_handler(
        &self,
        id: Id,
        handler: impl FnMut(M) + Send + 'static,
    ) -> Result<(), ReceptorError> {
        self.ask(id, ThreadEvent::Handler(Some(Box::new(handler))))
            .await
    }

    /// Removes a thread's handler, after the events that are already queued. This ends the thread. If the future is
    /// dropped after its first poll, the thread ends all the same.
    ///
    /// # Errors
    /// As [`try_send`](Receptor::try_send).
    pub async fn end_thread(&self, id: Id) -> Result<(), ReceptorError> {
        self.ask(id, ThreadEvent::Handler(None)).await
    }

    /// Ends the receptor and its threads.
    pub fn end(&self) {
        self.pid.kill();
    }

    /// The receptor's name and spawn site, for reports.
    pub fn name(&self) -> JobName {
        self.pid.name()
    }

    async fn ask(&self, id: Id, event: ThreadEvent<M>) -> Result<(), ReceptorError> {
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
        event: ThreadEvent<M>,
        reply: impl FnOnce(Result<(), ReceptorError>) + Send + 'static,
    ) {
        let reply: Tell<Result<(), ReceptorError>> = Box::new(reply);
        self.pid.send(Request::Send(
            id,
            Isolated::new(event),
            Isolated::new(reply),
        ));
    }

    /// Reports that a thread has nothing left to do.
    fn report_idle(&self, id: Id) {
        self.pid.send(Request::Idle(id));
    }
}

/// The state of the receptor's process.
struct Threads<M> {
    receptor: Receptor<M>,
    owner: Owner,
    /// In the order of their creation, which is also the order in which they are dropped.
    alive: BTreeMap<Id, Arc<Thread<M>>>,
    next: u64,
}

impl<M: Send + 'static> Threads<M> {
    fn accept(&mut self, request: Request<M>) {
        match request {
            Request::Spawn(origin, run, tell) => {
                let id = Id(self.next);
                self.next += 1;
                let thread = Arc::new(Thread::new(origin));
                self.alive.insert(id, thread.clone());
                call(tell, id);
                let event = ThreadEvent::Run(run.into_inner());
                self.dispatch(id, &thread, Isolated::new(event));
            }
            Request::Send(id, event, reply) => match self.alive.get(&id).cloned() {
                Some(thread) if !thread.has_crashed() => {
                    self.dispatch(id, &thread, event);
                    call(reply, Ok(()));
                }
                _ => call(reply, Err(ReceptorError::UnknownId(id))),
            },
            Request::Idle(id) => {
                // Only this process dispatches events, so no event comes between the check and the removal.
                if self.alive.get(&id).is_some_and(|thread| thread.is_over()) {
                    self.alive.remove(&id);
                }
            }
        }
    }

    fn dispatch(&self, id: Id, thread: &Arc<Thread<M>>, event: Isolated<ThreadEvent<M>>) {
        let itself = Itself {
            id,
            receptor: self.receptor.clone(),
            thread: thread.clone(),
        };
        thread::push(itself, event, self.owner.clone());
    }
}

/// Calls `reply`, which may be user code, in isolation.
fn call<T>(reply: Isolated<Tell<T>>, answer: T) {
    isolate(|| reply.into_inner()(answer));
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

    /// Sets the handler of this thread's messages, at once.
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
