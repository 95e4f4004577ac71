//! What a connection gets from its server when it is accepted.

use std::sync::{Arc, Weak};

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
    /// Where it leaves its clone of the service. Not held: the service must not outlive its server because a client
    /// lingers.
    pub(crate) originals: Weak<Originals<S>>,
}
