//! The way into a server: each connection that was accepted gets its job here. At the end of the server, those that
//! the system has accepted and the server has not are let in, too.
//!
//! A client whose connection waits in the system's queue may have sent all of its request. When the listener is closed,
//! the system resets what is left in the queue, and that client does not know whether its request was done.

use std::{io, net::SocketAddr, panic::Location, sync::Arc, time::Instant};

use weald_kernel::Spawn;
use weald_net::{Stream, Transport, is_exhausted, is_final};

use crate::{
    accepted::Accepted, activity::Activity, admitted::Admitted, handler::Serve,
    known_routes::KnownRoutes, limits::Limits, listen::Listen, originals::Originals,
    registry::Registry, wire::Wire,
};

/// The most connections that are let in at the end, as many as the system queues: a crowd that goes on coming must not
/// keep the server from ending.
const MOST_QUEUED: usize = 4096;
/// How many are let in at a time, before other jobs have their turn: each takes some microseconds.
const AT_ONCE: usize = 64;

/// What a server gives to each of its connections.
pub(crate) struct Entrance<S> {
    pub(crate) limits: Arc<Limits>,
    pub(crate) originals: Arc<Originals<S>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) known_routes: Arc<KnownRoutes>,
    /// Where the server was made.
    pub(crate) site: &'static Location<'static>,
}

impl<S: Serve> Entrance<S> {
    /// Spawns the job of a connection.
    pub(crate) fn admit<T: Transport>(&self, stream: Stream<T>, peer: Option<SocketAddr>) {
        let activity = Activity::new(peer, std::any::type_name::<S>(), self.known_routes.clone());
        activity.begin_waiting();
        let (entry, permit) = self.registry.enter(&activity);
        let admitted = Admitted {
            limits: self.limits.clone(),
            entry,
            permit,
            originals: Arc::downgrade(&self.originals),
        };
        let wire = Wire::new(stream, activity.clone());
        let accepted = Accepted::new(wire, admitted, self.originals.clone());
        described(&activity, self.site).spawn(accepted).detach();
    }

    /// Lets in what waits in the system's queue, as long as there are fewer than `most` connections, and until
    /// `deadline`, if there is one; but the first part in any case. Those that have sent no request leave again when
    /// the server drains.
    pub(crate) async fn admit_queued<L: Listen>(
        &self,
        listener: &L,
        most: usize,
        deadline: Option<Instant>,
    ) {
        for count in 1..=MOST_QUEUED {
            if !self.registry.has_room_below(most) {
                return;
            }
            match listener.next_queued() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if is_over(&error) => return,
                Err(error) => tracing::debug!(%error, "a connection failed before it was accepted"),
            }
            if count.is_multiple_of(AT_ONCE) {
                // The requests of those that were let in have their turn now, and may take long.
                weald_kernel::yield_now().await;
                if deadline.is_some_and(|deadline| deadline <= weald_kernel::now()) {
                    return;
                }
            }
        }
    }
}

/// Whether the queue is empty, or gives nothing more.
fn is_over(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || is_exhausted(error) || is_final(error)
}

/// A connection's job. The name is for a report at the job's very end, when it has no description any more.
fn described(activity: &Arc<Activity>, site: &'static Location<'static>) -> Spawn {
    Spawn::new()
        .name(format!("a connection of {}", activity.service()))
        .described_by(activity.clone())
        .kind(activity.kind())
        .site(site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_connection_has_a_name_also_without_its_description() {
        let activity = Activity::new(None, "a service", Arc::default());
        let job = format!("{:?}", described(&activity, Location::caller()));
        assert!(job.contains("\"a connection of a service\""), "{job}");
    }
}
