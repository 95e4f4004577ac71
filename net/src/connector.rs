//! Connects to one of several addresses, tried side by side ("happy eyeballs", RFC 8305).
//!
//! The addresses of the two families alternate, beginning with the family of the first. An attempt starts when the one
//! before it has failed, or has not ended for a while. The first that connects wins, and the others are dropped, which
//! closes their sockets. Unlike the RFC, both families are looked up in one call, because the system's resolver does
//! so.

use std::{
    collections::VecDeque,
    fmt::{self, Write},
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{Sleep, sleep};

use crate::{lookup::lookup_host, tcp::TcpStream};

/// Connects to hosts that have several addresses. They are tried side by side, so that one that does not answer costs a
/// quarter of a second and not minutes.
///
/// ```
/// use std::time::Duration;
/// use weald::net::{Connector, TcpListener};
///
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
/// let port = listener.local_addr()?.port();
/// let connector = Connector::new().attempt_limit(Duration::from_secs(2));
/// let stream = connector.connect_host("localhost", port).await?;
/// assert_eq!(stream.peer_addr()?.port(), port);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Connector {
    attempt_delay: Duration,
    attempt_limit: Duration,
}

/// No address answered. Returned inside an [`io::Error`] with the kind of the first failure.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConnectError {
    /// Each address, and why the attempt failed, in the order in which they failed.
    pub attempts: Vec<(SocketAddr, io::Error)>,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("there was no address to connect to");
        }
        f.write_str("no address could be connected to:")?;
        for (number, (address, error)) in self.attempts.iter().enumerate() {
            let separator = if number == 0 { " " } else { "; " };
            write!(f, "{separator}{address}: {error}")?;
        }
        f.write_char(';')?;
        f.write_str(" check whether the service runs, and the network")
    }
}

impl std::error::Error for ConnectError {}

type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// What goes on while addresses are tried.
struct Race {
    left: VecDeque<SocketAddr>,
    running: Vec<(SocketAddr, Attempt)>,
    failed: Vec<(SocketAddr, io::Error)>,
    /// When the next attempt starts, at the latest.
    delay: Option<Sleep>,
}

impl Connector {
    /// The defaults of the RFC, and a limit of 30 s for each attempt.
    pub fn new() -> Connector {
        Connector {
            attempt_delay: Duration::from_millis(250),
            attempt_limit: Duration::from_secs(30),
        }
    }

    /// How long an attempt goes on alone before the next address is tried as well. Default: 250 ms.
    #[must_use]
    pub fn attempt_delay(mut self, delay: Duration) -> Connector {
        self.attempt_delay = delay;
        self
    }

    /// How long one attempt may take. Default: 30 s.
    #[must_use]
    pub fn attempt_limit(mut self, limit: Duration) -> Connector {
        self.attempt_limit = limit;
        self
    }

    /// Looks up `host` and connects to one of its addresses. Cancel-safe: dropping the future closes all sockets.
    ///
    /// # Errors
    /// As [`TcpStream::connect_host`].
    #[track_caller]
    pub fn connect_host(
        &self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<TcpStream>> + Send + use<> {
        let (addresses, connector) = (lookup_host(host, port), self.clone());
        async move { connector.connect_any(&addresses.await?).await }
    }

    /// Connects to one of `addresses`. Cancel-safe: dropping the future closes all sockets.
    ///
    /// # Errors
    /// [`ConnectError`] with what each address said; [`NotFound`](io::ErrorKind::NotFound) if there is no address.
    pub async fn connect_any(&self, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
        let mut race = Race {
            left: interleave(addresses),
            running: Vec::new(),
            failed: Vec::new(),
            delay: None,
        };
        poll_fn(|cx| race.poll(self, cx)).await
    }

    fn attempt(&self, address: SocketAddr) -> Attempt {
        let limit = self.attempt_limit;
        Box::pin(async move {
            let connected = TcpStream::connect(address).within(limit).await;
            connected.unwrap_or_else(|_elapsed| {
                let text = format!("no answer within {limit:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            })
        })
    }
}

impl TcpStream {
    /// Looks up `host` and connects to the first of its addresses that answers. They are tried side by side; see
    /// [`Connector`], which also has the limits.
    ///
    /// Cancel-safe: dropping the future closes all sockets.
    ///
    /// # Errors
    /// Errors from [`lookup_host`](crate::lookup_host()); [`ConnectError`] with what each address
    /// said.
    #[track_caller]
    pub fn connect_host(
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<TcpStream>> + Send + use<> {
        Connector::new().connect_host(host, port)
    }
}

impl Default for Connector {
    fn default() -> Connector {
        Connector::new()
    }
}

impl Race {
    fn poll(&mut self, connector: &Connector, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        loop {
            if let Poll::Ready(stream) = self.poll_running(cx) {
                return Poll::Ready(Ok(stream));
            }
            let may_start = match &mut self.delay {
                None => true,
                Some(delay) => Pin::new(delay).poll(cx).is_ready(),
            };
            if !may_start {
                return Poll::Pending;
            }
            match self.left.pop_front() {
                Some(address) => {
                    self.running.push((address, connector.attempt(address)));
                    self.delay = Some(sleep(connector.attempt_delay));
                }
                None if self.running.is_empty() => return Poll::Ready(Err(self.error())),
                None => return Poll::Pending,
            }
        }
    }

    /// Ready if an attempt has won. After a failure the next one need not wait.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<TcpStream> {
        let mut at = 0;
        while let Some((_, attempt)) = self.running.get_mut(at) {
            match attempt.as_mut().poll(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(stream)) => return Poll::Ready(stream),
                Poll::Ready(Err(error)) => {
                    let (address, _) = self.running.remove(at);
                    self.failed.push((address, error));
                    self.delay = None;
                }
            }
        }
        Poll::Pending
    }

    fn error(&mut self) -> io::Error {
        let attempts = std::mem::take(&mut self.failed);
        let kind = attempts.first().map(|(_, error)| error.kind());
        let kind = kind.unwrap_or(io::ErrorKind::NotFound);
        io::Error::new(kind, ConnectError { attempts })
    }
}

/// The addresses, with the families in turn.
fn interleave(addresses: &[SocketAddr]) -> VecDeque<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut ours, mut others): (VecDeque<_>, VecDeque<_>) = addresses
        .iter()
        .copied()
        .partition(|address| address.is_ipv6() == first);
    let mut all = VecDeque::new();
    while !ours.is_empty() || !others.is_empty() {
        all.extend(ours.pop_front());
        all.extend(others.pop_front());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_families_take_turns() {
        let parse = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let given = ["[::1]:1", "[::2]:1", "[::3]:1", "127.0.0.1:1"].map(parse);
        let wanted = ["[::1]:1", "127.0.0.1:1", "[::2]:1", "[::3]:1"].map(parse);
        assert_eq!(interleave(&given), wanted);
        assert!(interleave(&[]).is_empty());
    }
}
