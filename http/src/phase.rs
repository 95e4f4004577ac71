//! What a connection waits for, as its `Activity` tells and as the watchdog times it.

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The next request: no byte has arrived since the last response, or since the connection was accepted.
    Quiet,
    /// The rest of a request's head.
    Head,
    /// The service.
    InFlight,
    /// More of the request's body, for the service.
    Body,
    /// Room to write, which the peer must make.
    Blocked,
    /// The client's end, after the last answer.
    Lingering,
}

/// Distinguishes a phase from earlier ones of the same kind.
pub(crate) type Generation = (u32, u32);
