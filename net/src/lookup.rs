//! Names of hosts: asked of the system's resolver, which blocks, on a thread that may.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
};

use crate::offload::offload;

/// The addresses of `host`, a name or an address, each with `port`.
///
/// Cancel-safe; the system's resolver goes on by itself. Limit it, for it may take half a minute.
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
/// Those of the resolver; and if the runtime shuts down.
pub async fn lookup_host(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_owned();
    offload(move || Ok((host.as_str(), port).to_socket_addrs()?.collect())).await?
}
