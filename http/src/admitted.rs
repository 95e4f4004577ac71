//! What a connection gets from its server when it is accepted.

use std::sync::Arc;

use crate::{
    limits::Limits,
    originals::Originals,
    registry::{ConnectionPermit, Entry},
};

/// See the head of this file.
pub(crate) struct Admitted<S> {
    pub(crate) limits: Arc<Limits>,
    pub(crate) entry: Entry,
    pub(crate) permit: ConnectionPermit,
    /// Where its clone of the service comes from.
    pub(crate) originals: Arc<Originals<S>>,
}
