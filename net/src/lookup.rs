//! Host names. The system's resolver blocks, so it is called on a thread that may block.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
};

use weald_kernel::{OperationName, offload_operation};

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

/// Adds the name to an error of the resolver. Errors of the operating system stay as they are.
fn explain(host: String, error: io::Error) -> io::Error {
    match (error.raw_os_error(), error.kind()) {
        (Some(_), _) => error,
        // The error speaks of a file's name.
        (None, kind @ io::ErrorKind::InvalidInput) => {
            io::Error::new(kind, format!("{host:?} cannot be the name of a host"))
        }
        (None, _) => {
            let reason = error;
            io::Error::new(io::ErrorKind::NotFound, LookupError { host, reason })
        }
    }
}

/// Looks up the addresses of `host`, which is a name or an address. Each result has the port `port`.
///
/// Cancel-safe, although the system's resolver continues on its own. Set a deadline: a lookup may take half a minute.
/// Lookups have threads of their own, so a name server that does not answer stops no file, and no other name while
/// fewer than 192 lookups wait for it (an eighth of
/// [`Builder::held_operations`](weald_kernel::Builder::held_operations) and of
/// [`Builder::blocking_threads`](weald_kernel::Builder::blocking_threads) together; raise both where more clients than
/// that can have dead names looked up at once). With as many, every other name is an error after a second, and a
/// deadline does not end the lookups that wait: the resolver does, commonly after 10 to 30 seconds. A lookup that takes
/// a second is reported. An address of IPv6 may be in brackets, as in a URL.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let addresses = weald::net::lookup_host("127.0.0.1", 80).await?;
/// assert_eq!(addresses, ["127.0.0.1:80".parse().expect("an address")]);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// [`LookupError`] if the resolver finds no address; [`InvalidInput`](io::ErrorKind::InvalidInput) if `host` cannot be
/// a name; errors from the operating system; [`ResourceBusy`](io::ErrorKind::ResourceBusy) if too many lookups wait for
/// a server ([`NoFreeThread`](weald_kernel::NoFreeThread)). Fails if the runtime shuts down.
#[track_caller]
pub fn lookup_host(
    host: &str,
    port: u16,
) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send + use<> {
    let known = address(host).map(|address| SocketAddr::new(address, port));
    let host: Arc<str> = host.into();
    let name = OperationName::lookup(host.clone());
    async move {
        if let Some(known) = known {
            return Ok(vec![known]);
        }
        offload_operation(name, move || match (&*host, port).to_socket_addrs() {
            Ok(addresses) => Ok(addresses.collect()),
            Err(error) => Err(explain(host.to_string(), error)),
        })
        .await
    }
}

/// The address, if the host is one.
fn address(host: &str) -> Option<IpAddr> {
    let unbracketed = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let bracketed = unbracketed.and_then(|address| address.parse().ok());
    bracketed.map(IpAddr::V6).or_else(|| host.parse().ok())
}
