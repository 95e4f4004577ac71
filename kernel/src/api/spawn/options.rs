//! The options that few spawns set: how reports call the job, and what kind of work it does.

use std::{borrow::Cow, sync::Arc};

use crate::{
    job::{runnable::Runnable, work_kind::WorkKind},
    report::Describe,
};

#[derive(Clone, Debug, Default)]
pub(super) struct SpawnOptions {
    pub(super) name: Option<Cow<'static, str>>,
    pub(super) description: Option<Arc<dyn Describe>>,
    pub(super) kind: Option<WorkKind>,
}

impl SpawnOptions {
    /// Gives them to a new job.
    #[inline(never)]
    pub(super) fn give_to(self, job: &Runnable) {
        let mut extensions = job.header().extensions.lock();
        if let Some(name) = self.name {
            extensions.name = Some(name.into());
        }
        if let Some(description) = self.description {
            extensions.description = Some(description);
        }
        if let Some(kind) = self.kind {
            extensions.kind = Some(kind);
        }
    }
}
