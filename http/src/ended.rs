//! Reports of how a server ended, and which connections had not.

use std::{fmt, io, net::SocketAddr};

use http::{Method, Uri};

/// How a server ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Drained {
    /// The connections that had not ended by the deadline. Each was stopped at its next wait.
    pub not_stopped: Vec<Unfinished>,
}

/// A connection that did not end in time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The address of the client, if it has one.
    pub peer: Option<SocketAddr>,
    /// The request that was in flight, whose response was still being written, or whose body was kept after the
    /// response.
    pub request: Option<(Method, Uri)>,
    /// What else the connection was doing.
    pub step: Step,
}

/// What a connection does, apart from a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Nothing else.
    #[default]
    Serving,
    /// It waits for its clone of the service. A request that has arrived was not read.
    Opening,
    /// It drops its clone of the service.
    Ending,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.request {
            Some((method, uri)) => write!(f, "{method} {uri}")?,
            None => f.write_str("no request")?,
        }
        if let Some(peer) = self.peer {
            write!(f, " from {peer}")?;
        }
        match self.step {
            Step::Serving => Ok(()),
            Step::Opening => f.write_str(", whose connection waits for its clone of the service"),
            Step::Ending => f.write_str(", whose connection drops its clone of the service"),
        }
    }
}

/// Why a server stopped serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The listener can no longer accept.
    #[error("the server's listener failed, so no client can connect; bind a new one: {0}")]
    Listener(#[from] io::Error),
}
