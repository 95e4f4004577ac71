//! What a connection is doing, as bits. Its [`Activity`](crate::activity::Activity) changes them.

/// Set while the service works on a request, and until hyper drops the response's body. Also while the connection gets
/// its clone of the service or drops it, and for a request that is foreseen: one that has arrived and waits in
/// quarantine.
pub(crate) const IN_FLIGHT: u8 = 1;
/// Set when bytes were written but have not all been sent.
pub(crate) const UNFLUSHED: u8 = 2;
/// Set when a write found no room, because the peer does not read.
pub(crate) const BLOCKED: u8 = 4;
/// Set when bytes have arrived that belong to no request yet.
pub(crate) const HEAD: u8 = 8;
/// Set when the last request had a body; its [`Reading`](crate::reading::Reading) knows whether the end has arrived.
pub(crate) const BODY: u8 = 16;
/// Set when the service has returned a response to the last request.
pub(crate) const ANSWERED: u8 = 32;
/// Set when the reader of the last response is metered, because it made a write wait.
pub(crate) const METERED: u8 = 64;
/// Set when everything has been sent, and the connection only waits for its client to notice.
pub(crate) const LINGERING: u8 = 128;
/// While one of these is set, the connection works on its last request.
pub(crate) const AT_WORK: u8 = IN_FLIGHT | UNFLUSHED | BLOCKED;
