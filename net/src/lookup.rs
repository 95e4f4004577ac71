//! Names of hosts: asked of the system's resolver, which blocks, on a thread that may.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
};

use crate::offload::offload;

/// The resolver found no address. It comes within an [`io::Error`] of the kind
/// [`NotFound`](io::ErrorKind::NotFound).
#[derive(Debug, thiserror::Error)]
#[error(
    "no address was found for the host {host:?}: {reason}; check the name, and whether the resolver that the \
     system is set to can be reached"
)]
#[non_exhaustive]
pub struct LookupError {
    /// The name that was looked up.
    pub host: String,
    /// What the resolver says.
    #[source]
    pub reason: io::Error,
}

/// What the resolver failed with, as an error that says which name it was. Those of the system, and of names
/// that cannot be one, stay what they are.
fn explain(host: String, error: io::Error) -> io::Error {
    match (error.raw_os_error(), error.kind()) {
        (Some(_), _) | (None, io::ErrorKind::InvalidInput) => error,
        (None, _) => {
            let reason = error;
            io::Error::new(io::ErrorKind::NotFound, LookupError { host, reason })
        }
    }
}

/// The addresses of `host`, a name or an address, each with `port`.
///
/// Cancel-safe; the system's resolver goes on by itself. Limit it, for it may take half a minute. It is
/// [offloaded](crate::offload()): nothing that is offloaded itself may wait for it.
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
/// [`LookupError`] if the name has no address or nobody knows; those of the system; and if the runtime shuts
/// down. [`InvalidInput`](io::ErrorKind::InvalidInput) for what cannot be a name.
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
