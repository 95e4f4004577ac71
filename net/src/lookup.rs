//! Host names. The system's resolver blocks, so it is called on a thread that may block.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
};

use weald_kernel::offload;

/// The resolver found no address. Returned inside an [`io::Error`] of the kind
/// [`NotFound`](io::ErrorKind::NotFound).
#[derive(Debug, thiserror::Error)]
#[error(
    "no address was found for the host {host:?}: {reason}; check the name, and whether the system's \
     configured resolver can be reached"
)]
#[non_exhaustive]
pub struct LookupError {
    /// The name that was looked up.
    pub host: String,
    /// The resolver's error.
    #[source]
    pub reason: io::Error,
}

/// Adds the name to an error of the resolver. Errors of the operating system and errors about names that
/// cannot be valid stay as they are.
fn explain(host: String, error: io::Error) -> io::Error {
    match (error.raw_os_error(), error.kind()) {
        (Some(_), _) | (None, io::ErrorKind::InvalidInput) => error,
        (None, _) => {
            let reason = error;
            io::Error::new(io::ErrorKind::NotFound, LookupError { host, reason })
        }
    }
}

/// Looks up the addresses of `host`, which is a name or an address. Each result has the port `port`.
///
/// Cancel-safe, although the system's resolver continues on its own. Set a deadline: a lookup may take half a
/// minute. The call is [offloaded](crate::offload()).
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let addresses = weald_net::lookup_host("127.0.0.1", 80).await?;
/// assert_eq!(addresses, ["127.0.0.1:80".parse().expect("an address")]);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// [`LookupError`] if the resolver finds no address; [`InvalidInput`](io::ErrorKind::InvalidInput) if `host`
/// cannot be a name; errors from the operating system. Fails if the runtime shuts down.
pub async fn lookup_host(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_owned();
    offload(move || match (host.as_str(), port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(explain(host, error)),
    })
    .await?
}
