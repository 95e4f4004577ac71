//! The address of a supervisor, and the requests that others make.

use std::sync::{Arc, OnceLock};

use weald_kernel::{AsUnit, Unit};

use crate::{
    call::{CallError, Reply},
    exit::ExitReason,
    pid::Pid,
    signal::{
        monitor::monitor,
        signals::{ProcessId, Signals},
    },
    supervisor::{
        error::{GaveUp, StartError},
        spec::{ChildCounts, ChildSpec, ChildState, Message, SupervisorMessage},
    },
};

/// The address of a supervisor.
///
/// ```
/// use weald::process::{ChildSpec, Inbox, Name, StartError, Strategy, Supervisor};
///
/// static ROOM: Name<&str> = Name::new("the room of the example");
///
/// weald::block_on(async {
///     let rooms = Supervisor::new(Strategy::OneForOne).start().await?;
///     let room = ChildSpec::process_as(&ROOM, async |mut inbox: Inbox<&str>| loop {
///         inbox.receive().await;
///     });
///     rooms.start_child(room).await?;
///     assert!(ROOM.registered().await.unwrap().is_alive());
///     rooms.stop().await;
///     assert!(ROOM.whereis().is_err());
///     Ok::<(), StartError>(())
/// })?;
/// # Ok::<(), StartError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SupervisorPid {
    pid: Pid<SupervisorMessage>,
    /// Why it gave up, once it has.
    gave_up: Arc<OnceLock<GaveUp>>,
}

impl SupervisorPid {
    pub(crate) fn new(
        pid: Pid<SupervisorMessage>,
        gave_up: Arc<OnceLock<GaveUp>>,
    ) -> SupervisorPid {
        SupervisorPid { pid, gave_up }
    }

    /// The supervisor that has this pid, such as one that a [`Name`](crate::Name) leads to. If the supervisor has given
    /// up, only the address that its [start](crate::Supervisor::start) returned knows why.
    pub fn of(pid: Pid<SupervisorMessage>) -> SupervisorPid {
        SupervisorPid::new(pid, Arc::default())
    }

    /// The pid of its process.
    pub fn pid(&self) -> &Pid<SupervisorMessage> {
        &self.pid
    }

    /// Starts one more child, behind the others. The child needs an id that no other one has, by which
    /// [`terminate_child`](SupervisorPid::terminate_child) ends it. Others find the child by its name, for example that
    /// of [`ChildSpec::server_as`], or its start function sends its pid to them. If the future is dropped after its
    /// first poll, the supervisor starts the child all the same, and nobody hears of the result.
    ///
    /// While the supervisor waits for a child that is not ready, it looks once at each message in its mailbox. So
    /// [`stop`](SupervisorPid::stop) ends that wait before earlier requests are served.
    ///
    /// # Errors
    /// If it does not start, or there is one with its id, or the supervisor has ended. If this is called on behalf of a
    /// request with a deadline, [`StartError::TimedOut`] when the deadline has passed; the supervisor starts the child
    /// all the same.
    pub async fn start_child(&self, child: ChildSpec) -> Result<(), StartError> {
        self.ask(|reply| Message::Start(child, reply)).await
    }

    /// Ends a child and waits for that. The supervisor does not start it again because of that, but the strategies
    /// [`OneForAll`](crate::Strategy::OneForAll) and [`RestForOne`](crate::Strategy::RestForOne) do when another child
    /// ends, as in OTP. The supervisor keeps its spec, unless it is temporary. If the child is killed and does not
    /// wait, this lasts until it waits, and the supervisor does nothing else meanwhile. If the future is dropped after
    /// its first poll, the child is ended all the same.
    ///
    /// # Errors
    /// If there is no such child, or the supervisor has ended.
    pub async fn terminate_child(&self, id: &str) -> Result<(), StartError> {
        self.ask(|reply| Message::Terminate(id.to_owned(), reply))
            .await
    }

    /// Starts a child that was terminated, or has ended and was not started again. If the future is dropped after its
    /// first poll, the supervisor starts the child all the same.
    ///
    /// # Errors
    /// If there is no such child, or it runs or is to be started again, or does not start, or the supervisor has ended.
    pub async fn restart_child(&self, id: &str) -> Result<(), StartError> {
        self.ask(|reply| Message::Restart(id.to_owned(), reply))
            .await
    }

    /// Forgets a child that does not run. If the future is dropped after its first poll, the supervisor forgets the
    /// child all the same.
    ///
    /// # Errors
    /// If there is no such child, or it runs or is to be started again, or the supervisor has ended.
    pub async fn delete_child(&self, id: &str) -> Result<(), StartError> {
        self.ask(|reply| Message::Delete(id.to_owned(), reply))
            .await
    }

    /// The children, in order. Cancel-safe.
    ///
    /// # Errors
    /// If the supervisor has ended.
    pub async fn children(&self) -> Result<Vec<ChildState>, StartError> {
        let children = self
            .pid
            .call_at(None, |reply| SupervisorMessage(Message::Children(reply)))
            .await;
        children.map_err(|error| start_error_of(self, error))
    }

    /// How many children there are, and how many of them run: as `children`, without a copy of each. O(1). Cancel-safe.
    ///
    /// # Errors
    /// If the supervisor has ended.
    pub async fn count_children(&self) -> Result<ChildCounts, StartError> {
        let counts = self
            .pid
            .call_at(None, |reply| SupervisorMessage(Message::Count(reply)))
            .await;
        counts.map_err(|error| start_error_of(self, error))
    }

    /// Ends the supervisor, after its children, and waits for that. Anyone may call it, even a child, which then does
    /// not return from the call. If the future is dropped after its first poll, the supervisor ends all the same.
    ///
    /// # Panics
    /// In a start function of the supervisor itself.
    pub async fn stop(&self) {
        let down = monitor(&self.pid);
        self.pid.send(SupervisorMessage(Message::Stop));
        down.await;
    }

    /// The supervisor's number.
    pub fn id(&self) -> ProcessId {
        self.pid.id()
    }

    async fn ask(
        &self,
        request: impl FnOnce(Reply<Result<(), StartError>>) -> Message,
    ) -> Result<(), StartError> {
        let request = |reply| SupervisorMessage(request(reply));
        match self.pid.call_at(None, request).await {
            Ok(result) => result,
            Err(error) => Err(start_error_of(self, error)),
        }
    }
}

impl AsUnit for SupervisorPid {
    fn as_unit(&self) -> Option<Unit> {
        self.pid.as_unit()
    }
}

/// Why a supervisor did not answer.
pub(crate) fn start_error_of(supervisor: &SupervisorPid, error: CallError) -> StartError {
    if let Some(gave_up) = supervisor.gave_up.get() {
        return StartError::GaveUp(gave_up.clone());
    }
    match error {
        CallError::TimedOut => return StartError::TimedOut,
        CallError::Itself => return StartError::Itself,
        _ => {}
    }
    StartError::Ended(match error {
        CallError::Died(reason) if reason != ExitReason::NoProcess => reason,
        // It had ended before the call.
        _ => Signals::reason_of(&supervisor.pid.0.unit()),
    })
}

/// Ends a supervisor that nobody waits for any longer, while it starts its children or after that.
pub(crate) struct StopAtDrop(
    /// None once the supervisor is to live.
    Option<SupervisorPid>,
);

impl StopAtDrop {
    pub(crate) fn new(pid: SupervisorPid) -> StopAtDrop {
        StopAtDrop(Some(pid))
    }

    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopAtDrop {
    fn drop(&mut self) {
        if let Some(supervisor) = &self.0 {
            supervisor.pid.send(SupervisorMessage(Message::Stop));
        }
    }
}
