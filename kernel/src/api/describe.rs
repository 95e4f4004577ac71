//! The description of a running job, set by its own code: what reports call the job, and the kind of its work.

use std::sync::Arc;

use crate::{job::work_kind::WorkKind, report::Describe, scheduler::workers::context};

/// Sets what reports call the running job, and the kind of its work, in place of those that it was spawned with
/// ([`Spawn::described_by`](crate::Spawn::described_by), [`Spawn::kind`](crate::Spawn::kind)). For code that others
/// spawn without knowing what it does. Does nothing outside of jobs, and in callbacks.
///
/// ```
/// use std::sync::Arc;
/// use weald::{Describe, WorkKind, describe_job};
///
/// #[derive(Debug)]
/// struct Order(u32);
///
/// impl Describe for Order {
///     fn name(&self) -> String {
///         format!("order {}", self.0)
///     }
/// }
///
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let job = weald::spawn(async {
///     describe_job(Arc::new(Order(7)), WorkKind::new());
///     std::future::pending::<()>().await;
/// });
/// # while job.name().unwrap().name.is_none() {
/// #     weald::yield_now().await;
/// # }
/// assert_eq!(job.name().unwrap().name.as_deref(), Some("order 7"));
/// # });
/// ```
pub fn describe_job(description: Arc<dyn Describe>, kind: WorkKind) {
    let Some(job) = context::again().job_ref() else {
        return;
    };
    let header = job.header();
    if header.is_shared_by_units() {
        return;
    }
    let mut extensions = header.extensions.lock();
    let former = (
        extensions.description.replace(description),
        extensions.kind.replace(kind),
    );
    drop(extensions);
    // The description is a user's, and its destructor may run anything.
    drop(former);
}
