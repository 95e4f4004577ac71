//! The attachment of a job: one value of a crate above, which is told how the job ended.
//!
//! - A job has at most one attachment, which stays until the job's last reference goes, so that it can still be asked
//!   after the end.
//! - It is told once, after the job's exit hooks and before its joiner is woken.

use std::{any::Any, mem, sync::Arc};

use crate::{
    job::{Header, extensions::Extensions},
    report::panic_site::PanicSite,
};

/// How a job ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// Its future is done.
    Returned,
    /// It was cancelled.
    Cancelled,
    /// It panicked.
    Panicked {
        /// The message of the panic.
        message: Box<str>,
        /// Where it panicked, if the panic hook was called and the program has not replaced it.
        site: Option<PanicSite>,
    },
    /// It had ended before something was attached to it.
    Gone,
}

/// What may be attached to a job.
pub trait Attachment: Any + Send + Sync {
    /// The job has ended: it is done, what it held is dropped, its exit hooks have run, and its joiner has not been
    /// woken yet. Called once, on the thread that ended the job. Must not wait.
    fn ended(&self, ending: Ending);

    /// The job has panicked, and continues: [`catch_panic`](crate::catch_panic) has caught the panic. Or it continues,
    /// for another reason, after [`Unit::tell_if_it_goes_on`](crate::Unit::tell_if_it_goes_on). Called in the job, or
    /// in a job that runs a part of its work, when nothing of that unwinds any longer; perhaps more than once for a
    /// panic.
    fn survived(&self) {}

    /// The job holds its thread, or is about to, and [`ended`](Attachment::ended) was called and may not have returned:
    /// user code blocks there. What is left to do should be done elsewhere. Called on any thread. Must not wait.
    fn takes_long(&self) {}

    /// Whether others are told of the job's end, or were. Called at the job's end, on any thread. Must not wait.
    fn is_watched(&self) -> bool {
        false
    }
}

/// An attachment, without its type.
pub(crate) struct AttachedValue {
    value: Arc<dyn Attachment>,
    was_told: bool,
}

impl AttachedValue {
    /// The call that tells it that the job takes long, if it was told of the end.
    pub(super) fn takes_long(&self) -> Option<impl FnOnce() + Send + 'static> {
        let value = self.value.clone();
        self.was_told.then_some(move || value.takes_long())
    }
}

/// The attachment of the job, if it has one of this type.
pub(crate) fn get<A: Attachment>(job: &Header) -> Option<Arc<A>> {
    let extensions = job.extensions.lock_existing()?;
    of_type(&extensions)
}

fn of_type<A: Attachment>(extensions: &Extensions) -> Option<Arc<A>> {
    let attached = extensions.attachment.as_ref()?;
    let value: Arc<dyn Any + Send + Sync> = attached.value.clone();
    value.downcast().ok()
}

/// The attachment of the job, created now if it had none. None if the job was done without one.
pub(crate) fn get_or_attach<A: Attachment>(
    job: &Header,
    make: impl FnOnce(u64) -> A,
) -> Option<Arc<A>> {
    let mut extensions = job.extensions.lock();
    if extensions.attachment.is_some() {
        return of_type(&extensions);
    }
    if !job.state.register_exit_hook() {
        return None;
    }
    let value = Arc::new(make(extensions.number()));
    extensions.attachment = Some(AttachedValue {
        value: value.clone(),
        was_told: false,
    });
    Some(value)
}

fn value_of(job: &Header) -> Option<Arc<dyn Attachment>> {
    let extensions = job.extensions.lock_existing()?;
    Some(extensions.attachment.as_ref()?.value.clone())
}

/// Tells the attachment, if there is one, that the job continues after a panic.
pub(crate) fn tell_survived(job: &Header) {
    if let Some(value) = value_of(job) {
        value.survived();
    }
}

/// Whether the job has an attachment that tells others of its end.
pub(crate) fn is_watched(job: &Header) -> bool {
    value_of(job).is_some_and(|value| value.is_watched())
}

/// How the job ended, if it is done: whether or not something is attached to it.
pub(crate) fn ending(job: &Header) -> Option<Ending> {
    if !job.state.is_done() {
        return None;
    }
    // The message and the site of a panic were noted before the job was done.
    let extensions = job.extensions.lock_existing();
    let panicked = extensions.and_then(|extensions| {
        let message = extensions.panic_message.clone()?;
        Some((message, extensions.panic_site.clone()))
    });
    Some(ending_of(job, panicked))
}

/// How the job ended, after a panic with this message at this site, if it panicked.
fn ending_of(job: &Header, panicked: Option<(Box<str>, Option<PanicSite>)>) -> Ending {
    match panicked {
        Some((message, site)) => Ending::Panicked { message, site },
        None if job.was_cancelled() => Ending::Cancelled,
        None => Ending::Returned,
    }
}

/// Tells the attachment, if there is one, how the job ended. Called once, by the thread that ends the job.
pub(crate) fn tell(job: &Header, panic: Option<Box<str>>) {
    let Some(mut extensions) = job.extensions.lock_existing() else {
        return;
    };
    let Some(attached) = &mut extensions.attachment else {
        return;
    };
    if mem::replace(&mut attached.was_told, true) {
        return;
    }
    let value = attached.value.clone();
    let site = extensions.panic_site.clone();
    drop(extensions);
    let panicked = panic.map(|message| (message, site));
    value.ended(ending_of(job, panicked));
}
