//! Processes with mailboxes of other kinds that have a name from before they run.
//!
//! A bounded process has its bound before it can be found by its name, so that nobody finds a pid without a bound.

use std::{num::NonZeroU32, sync::Arc};

use crate::{
    admission::{Admission, Overflow},
    inbox::Inbox,
    kinds::{
        bounded::{BoundedInbox, BoundedPid, bind},
        bounded_message::Bounded,
        bounded_priority::BoundedPriorityInbox,
        prioritized::{Prioritized, PriorityPid},
        priority::PriorityInbox,
        sorted::Sorted,
    },
    names::{Name, RegisterError},
    spawn::{Builder, Process},
};

/// A process with a bounded mailbox, and its address.
type WithBoundedPid<M, T> = (Process<Bounded<M>, T>, BoundedPid<M>);

impl<M: Send + 'static> Name<Bounded<M>> {
    /// As [`Builder::spawn_bounded`]; the process has the name before it runs. If the name is taken, nothing is
    /// spawned.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::num::NonZeroU32;
    /// use weald::process::{Bounded, BoundedInbox, BoundedPid, Builder, Name, Overflow};
    ///
    /// static PRINTER: Name<Bounded<&str>> = Name::new("printer");
    ///
    /// let body = async |mut inbox: BoundedInbox<&'static str>| inbox.receive().await;
    /// let (printer, _pid) = PRINTER
    ///     .spawn_bounded(Builder::new(), NonZeroU32::MIN, Overflow::Reject, body)
    ///     .unwrap();
    /// let found = BoundedPid::of(PRINTER.whereis().unwrap()).unwrap();
    /// assert_eq!(found.try_send("page"), Ok(()));
    /// assert_eq!(printer.await, Ok("page"));
    /// # });
    /// ```
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[allow(
        clippy::too_many_arguments,
        reason = "those of the builder's method, and itself"
    )]
    #[track_caller]
    pub fn spawn_bounded<F, Fut>(
        &self,
        builder: Builder,
        capacity: NonZeroU32,
        overflow: Overflow,
        body: F,
    ) -> Result<WithBoundedPid<M, Fut::Output>, RegisterError>
    where
        F: FnOnce(BoundedInbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let admission = Admission::new(capacity, overflow);
        self.spawn_admitting(builder, admission, |inbox, admission| {
            body(BoundedInbox { inbox, admission })
        })
    }

    #[track_caller]
    pub(super) fn spawn_admitting<Fut>(
        &self,
        builder: Builder,
        admission: Admission,
        body: impl FnOnce(Inbox<Bounded<M>>, Arc<Admission>) -> Fut,
    ) -> Result<WithBoundedPid<M, Fut::Output>, RegisterError>
    where
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let admission = Arc::new(admission);
        let process = self.spawn_prepared(
            builder,
            |inbox| bind(inbox, &admission),
            |inbox| body(inbox, admission.clone()),
        )?;
        let pid = process.pid().clone();
        Ok((process, BoundedPid { pid, admission }))
    }
}

impl<M: Send + 'static> Name<Bounded<Prioritized<M>>> {
    /// As [`Builder::spawn_bounded_priority`]; the process has the name before it runs. If the name is taken, nothing
    /// is spawned.
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[allow(
        clippy::too_many_arguments,
        reason = "those of the builder's method, and itself"
    )]
    #[track_caller]
    pub fn spawn_bounded_priority<F, Fut>(
        &self,
        builder: Builder,
        capacity: NonZeroU32,
        overflow: Overflow,
        body: F,
    ) -> Result<WithBoundedPid<Prioritized<M>, Fut::Output>, RegisterError>
    where
        F: FnOnce(BoundedPriorityInbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let admission = Admission::with_urgent(capacity, overflow);
        self.spawn_admitting(builder, admission, |inbox, admission| {
            let sorted = Sorted::new(inbox);
            body(BoundedPriorityInbox { sorted, admission })
        })
    }
}

impl<M: Send + 'static> Name<Prioritized<M>> {
    /// As [`Builder::spawn_priority`]; the process has the name before it runs. If the name is taken, nothing is
    /// spawned.
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[allow(clippy::type_complexity, reason = "a process and its address")]
    #[track_caller]
    pub fn spawn_priority<F, Fut>(
        &self,
        builder: Builder,
        body: F,
    ) -> Result<(Process<Prioritized<M>, Fut::Output>, PriorityPid<M>), RegisterError>
    where
        F: FnOnce(PriorityInbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let process = self.spawn(builder, |inbox| body(PriorityInbox(Sorted::new(inbox))))?;
        let pid = PriorityPid(process.pid().clone());
        Ok((process, pid))
    }
}
