//! The origin of a request: the address of the client, even behind named proxies, and whether the request came through
//! TLS.
//!
//! Invariant: what a client says about itself counts only if it is a named proxy.

use std::net::{IpAddr, Ipv4Addr};

use axum::http::HeaderMap;

use super::limiter::network;
use super::proxies::Network;

/// From where a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    pub(crate) is_secure: bool,
    /// Whether this machine itself has connected: the client, or a proxy that passes on what others ask.
    pub(crate) has_local_peer: bool,
}

impl Client {
    /// The part of the address by which requests are counted.
    pub(crate) fn network(self) -> IpAddr {
        network(self.address)
    }

    /// The client of a request that came from `peer`; without one it came through a local socket.
    pub(crate) fn of(peer: Option<IpAddr>, headers: &HeaderMap, proxies: &[Network]) -> Self {
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.to_canonical());
        let is_proxy = |address| proxies.iter().any(|it| it.contains(address));
        let has_local_peer = peer.is_loopback();
        if !is_proxy(peer) {
            return Self {
                address: peer,
                is_secure: false,
                has_local_peer,
            };
        }
        let all = |name: &str| {
            let values = headers.get_all(name).into_iter();
            let values: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
            values.join(",")
        };
        let forwarded = all("x-forwarded-for");
        let hops = forwarded
            .rsplit(',')
            .map(|hop| hop.trim().parse::<IpAddr>());
        let mut address = peer;
        for hop in hops {
            let Ok(hop) = hop else { break };
            address = hop.to_canonical();
            if !is_proxy(address) {
                break;
            }
        }
        let is_secure = all("x-forwarded-proto")
            .rsplit(',')
            .next()
            .is_some_and(|it| it.trim() == "https");
        Self {
            address,
            is_secure,
            has_local_peer,
        }
    }

    /// Whether a request comes from this machine, and no proxy says that it passes it on for another one.
    pub(crate) fn is_of_this_machine(self, headers: &HeaderMap) -> bool {
        let is_passed_on = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
        let is_passed_on = is_passed_on.iter().any(|it| headers.contains_key(*it));
        self.has_local_peer && !is_passed_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &str) -> (String, bool) {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        let proxies = ["10.0.0.1", "10.0.0.2", "172.16.0.0/16"].map(|it| it.parse().unwrap());
        let client = Client::of(Some(peer.parse().unwrap()), &headers, &proxies);
        (client.address.to_string(), client.is_secure)
    }

    #[test]
    fn a_request_that_is_passed_on_is_not_of_this_machine() {
        let peer = |peer: &str, headers: &HeaderMap| {
            let client = Client::of(peer.parse().ok(), headers, &["127.0.0.1".parse().unwrap()]);
            client.is_of_this_machine(headers)
        };
        let own = HeaderMap::new();
        for (address, is_it) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.2", true),
            ("192.0.2.1", false),
        ] {
            assert_eq!(peer(address, &own), is_it, "{address}");
        }
        for name in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
            let mut headers = HeaderMap::new();
            headers.insert(name, "127.0.0.1".parse().unwrap());
            assert!(!peer("127.0.0.1", &headers), "{name}");
        }
    }

    #[test]
    fn only_named_proxies_are_believed() {
        assert_eq!(
            client("192.0.2.1", "198.51.100.7"),
            ("192.0.2.1".to_owned(), false)
        );
        assert_eq!(
            client("10.0.0.1", "198.51.100.7"),
            ("198.51.100.7".to_owned(), true)
        );
        assert_eq!(
            client("10.0.0.1", "1.1.1.1, 198.51.100.7, 10.0.0.2").0,
            "198.51.100.7"
        );
        assert_eq!(client("10.0.0.1", "nonsense").0, "10.0.0.1");
        assert_eq!(
            client("10.0.0.1", "198.51.100.7, 172.16.3.4").0,
            "198.51.100.7"
        );
        assert_eq!(
            client("10.0.0.1", "1.1.1.1, nonsense, 10.0.0.2").0,
            "10.0.0.2"
        );
    }
}
