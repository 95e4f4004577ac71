//! The reverse proxies that are believed about their clients: addresses, and networks of them.

use std::net::IpAddr;
use std::str::FromStr;

/// A network of addresses, or a single one.
///
/// ```
/// use weald_board::{Network, NotANetwork};
///
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains("10.1.2.3".parse().unwrap()));
/// assert!(!network.contains("11.1.2.3".parse().unwrap()));
/// assert_eq!("10.0.0.0/33".parse::<Network>(), Err(NotANetwork::Prefix("10.0.0.0/33".to_owned())));
/// # Ok::<(), NotANetwork>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many of the first bits all of its addresses have in common.
    prefix: u32,
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotANetwork {
    /// What should be an address is none.
    #[error("`{0}` is neither an IP address nor a network such as 10.0.0.0/8")]
    Address(String),
    /// What stands behind the slash is no number of bits of such an address.
    #[error(
        "`{0}` needs a number of bits behind the slash: up to 32 of an IPv4 address, up to 128 of an IPv6 address"
    )]
    Prefix(String),
    /// The address has bits behind the prefix, so one of the two is a mistake.
    #[error(
        "`{0}` has bits behind its prefix; a network is written with zeros there, a single address without a slash"
    )]
    Bits(String),
}

impl Network {
    /// Whether an address belongs to it. An IPv4 address that is written as one of IPv6 is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, width) = bits(self.address);
        let (other, other_width) = bits(address.to_canonical());
        width == other_width && (own ^ other).checked_shr(width - self.prefix).unwrap_or(0) == 0
    }
}

/// Its bits as a number, and how many these are.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), u32::BITS),
        IpAddr::V6(address) => (address.to_bits(), u128::BITS),
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let (_, prefix) = bits(address);
        Self { address, prefix }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| NotANetwork::Address(text.to_owned()))?;
        let Some(prefix) = prefix else {
            return Ok(address.into());
        };
        let (own, width) = bits(address);
        let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix
            .parse::<u32>()
            .ok()
            .filter(|it| is_number && *it <= width);
        let prefix = prefix.ok_or_else(|| NotANetwork::Prefix(text.to_owned()))?;
        // All but the first bits.
        let rest = 1_u128
            .checked_shl(width - prefix)
            .map_or(u128::MAX, |it| it - 1);
        match own & rest {
            // An IPv4 address that is written as one of IPv6 has bits up to the 96th, so the prefix is no shorter.
            0 => Ok(Self {
                address: address.to_canonical(),
                prefix: prefix - (width - bits(address.to_canonical()).1),
            }),
            _ => Err(NotANetwork::Bits(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_a_network_by_its_first_bits() {
        for (network, address, belongs) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("192.168.4.0/22", "192.168.7.255", true),
            ("192.168.4.0/22", "192.168.8.0", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.2", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::/0", "2001:db8::1", true),
            ("::1/128", "::1", true),
            ("::1", "::2", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("::ffff:10.0.0.0/104", "10.255.0.1", true),
            ("::ffff:10.0.0.0/104", "::ffff:10.0.0.1", true),
            ("::ffff:10.0.0.0/104", "11.0.0.1", false),
            ("::ffff:10.0.0.1/128", "10.0.0.1", true),
            ("::ffff:0:0/96", "203.0.113.9", true),
            (" 10.0.0.1 ", "10.0.0.1", true),
        ] {
            let parsed: Network = network.parse().unwrap();
            let found = parsed.contains(address.parse().unwrap());
            assert_eq!(found, belongs, "{network} {address}");
        }
    }

    #[test]
    fn what_is_no_network_says_why() {
        let of = |text: &str| text.parse::<Network>().unwrap_err();
        for text in ["", "proxy", "10.0.0", "10.0.0.0.0/8", "/8"] {
            assert_eq!(of(text), NotANetwork::Address(text.to_owned()));
        }
        for text in [
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "fd00::/129",
        ] {
            assert_eq!(of(text), NotANetwork::Prefix(text.to_owned()));
        }
        for text in ["10.0.0.1/8", "fd00::1/8", "1.0.0.0/0"] {
            assert_eq!(of(text), NotANetwork::Bits(text.to_owned()));
        }
    }
}
