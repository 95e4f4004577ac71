//! The limits of a connection: times, buffers, and what a half-closed client means. Also where it counts the buffers
//! that it gives back.

use std::{sync::Arc, time::Duration};

use hyper::server::conn::http1::Builder;

use crate::{freed::Freed, rate::MinRate};

/// How often a client is looked for that hyper does not read from, and may be gone.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// What happens to a request whose client has shut down its direction of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfClosed {
    Dropped,
    Answered,
}

/// The limits of one connection; see the setters of [`Server`](crate::Server).
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) header: Duration,
    pub(crate) body: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
    pub(crate) body_rate: MinRate,
    pub(crate) write_rate: MinRate,
    pub(crate) buffer: Option<usize>,
    pub(crate) half_closed: HalfClosed,
    pub(crate) freed: Arc<Freed>,
}

impl Limits {
    /// How hyper serves.
    pub(crate) fn builder(&self) -> Builder {
        let mut builder = Builder::new();
        builder
            .half_close(self.half_closed == HalfClosed::Answered)
            // The time limits are the watchdog's.
            .header_read_timeout(None)
            // See `piece`.
            .writev(false);
        if let Some(most) = self.buffer {
            builder.max_buf_size(most);
        }
        builder
    }
}
