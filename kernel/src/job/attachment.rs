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
pub trait Attachment: Send + Sync + 'static {
    /// The job has ended: it is done, what it held is dropped, its exit hooks have run, and its joiner has not been
    /// woken yet. Called once, on the thread that ended the job. Must not wait.
    fn ended(&self, ending: Ending);

    /// The job has panicked, and continues: [`catch_panic`](crate::catch_panic) has caught the panic. Or it continues,
    /// for another reason, after [`Unit::tell_if_it_goes_on`](crate::Unit::tell_if_it_goes_on). Called in the job, or
    /// in a part of its forks, when nothing of that unwinds any longer; perhaps more than once for a panic.
    fn survived(&self) {}

    /// The job holds its thread, or is about to, and [`ended`](Attachment::ended) was called and may not have returned: user
    /// code blocks there. What is left to do should be done elsewhere. Called on any thread. Must not wait.
    fn takes_long(&self) {}

    /// Whether others are told of the job's end, or were. Called at the job's end, on any thread. Must not wait.
    fn is_watched(&self) -> bool {
        false
    }
}

/// An attachment, without its type.
pub(crate) struct AttachedValue {
    value: Arc<dyn Any + Send + Sync>,
    ended: fn(&(dyn Any + Send + Sync), Ending),
    survived: fn(&(dyn Any + Send + Sync)),
    takes_long: fn(&(dyn Any + Send + Sync)),
    is_watched: fn(&(dyn Any + Send + Sync)) -> bool,
    was_told: bool,
}

impl AttachedValue {
    fn new<A: Attachment>(value: Arc<A>) -> AttachedValue {
        AttachedValue {
            value,
            ended: |value, ending| {
                let value = value.downcast_ref::<A>();
                value.expect("it was made of this type").ended(ending);
            },
            survived: |value| {
                let value = value.downcast_ref::<A>();
                value.expect("it was made of this type").survived();
            },
            takes_long: |value| {
                let value = value.downcast_ref::<A>();
                value.expect("it was made of this type").takes_long();
            },
            is_watched: |value| {
                let value = value.downcast_ref::<A>();
                value.expect("it was made of this type").is_watched()
            },
            was_told: false,
        }
    }
}

impl AttachedValue {
    /// The call that tells it that the job takes long, if it was told of the end.
    pub(super) fn takes_long(&self) -> Option<impl FnOnce() + Send + 'static> {
        let (value, takes_long) = (self.value.clone(), self.takes_long);
        self.was_told.then_some(move || takes_long(&*value))
    }
}

/// The attachment of the job, if it has one of this type.
pub(crate) fn get<A: Attachment>(job: &Header) -> Option<Arc<A>> {
    let extensions = job.extensions.lock_existing()?;
    of_type(&extensions)
}

fn of_type<A: Attachment>(extensions: &Extensions) -> Option<Arc<A>> {
    let attached = extensions.attachment.as_ref()?;
    attached.value.clone().downcast().ok()
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
    if !job.state.announce_tells() {
        return None;
    }
    let value = Arc::new(make(extensions.number()));
    extensions.attachment = Some(AttachedValue::new(value.clone()));
    Some(value)
}

/// Tells the attachment, if there is one, that the job continues after a panic.
pub(crate) fn tell_survived(job: &Header) {
    let told = job.extensions.lock_existing().and_then(|extensions| {
        let attached = extensions.attachment.as_ref()?;
        Some((attached.value.clone(), attached.survived))
    });
    if let Some((value, survived)) = told {
        survived(&*value);
    }
}

/// Whether the job has an attachment that tells others of its end.
pub(crate) fn is_watched(job: &Header) -> bool {
    let asked = job.extensions.lock_existing().and_then(|extensions| {
        let attached = extensions.attachment.as_ref()?;
        Some((attached.value.clone(), attached.is_watched))
    });
    asked.is_some_and(|(value, is_watched)| is_watched(&*value))
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
    Some(match panicked {
        Some((message, site)) => Ending::Panicked { message, site },
        None if job.was_cancelled() => Ending::Cancelled,
        None => Ending::Returned,
    })
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
    let (value, ended) = (attached.value.clone(), attached.ended);
    let site = extensions.panic_site.clone();
    drop(extensions);
    ended(
        &*value,
        match panic {
            Some(message) => Ending::Panicked { message, site },
            None if job.was_cancelled() => Ending::Cancelled,
            None => Ending::Returned,
        },
    );
}
