//! How a server ended, and what had not.

use std::{fmt, io, net::SocketAddr};

use http::{Method, Uri};

/// How a server ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Drained {
    /// What connections did that had not ended at the deadline. They were stopped at their next wait.
    pub not_stopped: Vec<Unfinished>,
}

/// A connection that did not end in time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// Who is at the other end, if that has an address.
    pub peer: Option<SocketAddr>,
    /// The request that was in flight, or whose response was.
    pub request: Option<(Method, Uri)>,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.request {
            Some((method, uri)) => write!(f, "{method} {uri}")?,
            None => f.write_str("no request")?,
        }
        match self.peer {
            Some(peer) => write!(f, " from {peer}"),
            None => Ok(()),
        }
    }
}

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The listener is of no use any longer.
    #[error("the server's listener failed, so that nobody can connect; bind a new one: {0}")]
    Listener(#[from] io::Error),
}
