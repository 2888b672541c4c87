//! Networks that are let in or kept out, as `ADDRESS/BITS`. An IPv4 address that came through an IPv6
//! socket is the IPv4 address that it maps, everywhere.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The addresses whose first bits are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The network that `address` is in, `bits` of it.
    pub fn of(address: IpAddr, bits: u8) -> Self {
        let (address, bits) = canonical(address, bits);
        Self { address: cut(address, bits), bits: bits.min(width(address)) }
    }

    /// Whether the address is in this network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && cut(address, self.bits) == self.address
    }
}

impl FromStr for Network {
    type Err = String;

    /// Bits beyond the prefix must be zero, and nothing may be spelled in two ways: a network that was not
    /// meant is worse than none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ALLOWED)?;
        let most = width(address);
        let digits = |text: &&str| {
            text.bytes().all(|byte| byte.is_ascii_digit())
                && (*text == "0" || !text.starts_with('0'))
        };
        let bits = match bits {
            Some(text) => Some(text)
                .filter(digits)
                .and_then(|text| text.parse().ok())
                .filter(|&bits: &u8| bits <= most)
                .ok_or(ALLOWED)?,
            None => most,
        };
        if cut(address, bits) != address {
            let network = cut(address, bits);
            return Err(format!(
                "has bits set beyond its prefix, must be {network}/{bits} or {address}"
            ));
        }
        Ok(Self::of(address, bits))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Who may have a test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks {
    /// Only these are let in, if there are any.
    pub allow: Vec<Network>,
    /// These are not, also where they are part of what is let in.
    pub deny: Vec<Network>,
}

impl Networks {
    /// Everybody.
    pub const ALL: Self = Self { allow: Vec::new(), deny: Vec::new() };

    /// Whether a client with this address is let in.
    pub fn admit(&self, address: IpAddr) -> bool {
        let is_in = |networks: &[Network]| networks.iter().any(|net| net.contains(address));
        !is_in(&self.deny) && (self.allow.is_empty() || is_in(&self.allow))
    }
}

/// Whose share of the server an address takes: its own, or that of the 64 bits which one subscriber
/// of IPv6 has.
pub(crate) fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => v4,
        v6 @ IpAddr::V6(_) => cut(v6, SUBSCRIBER_BITS),
    }
}

/// `::ffff:192.0.2.0/120` is `192.0.2.0/24`.
fn canonical(address: IpAddr, bits: u8) -> (IpAddr, u8) {
    match (address.to_canonical(), address) {
        (v4 @ IpAddr::V4(_), IpAddr::V6(_)) if bits >= MAPPED_BITS => (v4, bits - MAPPED_BITS),
        _ => (address, bits),
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with all bits beyond the first ones zero.
fn cut(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

const SUBSCRIBER_BITS: u8 = 64;
/// Before the IPv4 address in an IPv6 address that maps one.
const MAPPED_BITS: u8 = 96;
const ALLOWED: &str = "must be ADDRESS or ADDRESS/BITS, such as 192.0.2.0/24 or 2001:db8::/32";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_written() {
        for (text, written) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ] {
            let network: Network = text.parse().expect(text);
            assert_eq!(network.to_string(), written);
        }
        for (text, why) in [
            ("", ALLOWED),
            ("example.org", ALLOWED),
            ("192.0.2.0/33", ALLOWED),
            ("192.0.2.0/", ALLOWED),
            ("192.0.2.0/+4", ALLOWED),
            ("192.0.2/24", ALLOWED),
            ("2001:db8::/129", ALLOWED),
            ("fe80::1%eth0", ALLOWED),
            ("0.0.0.0/00", ALLOWED),
            ("192.0.2.0/024", ALLOWED),
            ("192.0.02.0/24", ALLOWED),
            (" 192.0.2.0/24", ALLOWED),
            ("192.0.2.0 /24", ALLOWED),
            ("192.0.2.1/24", "has bits set beyond its prefix, must be 192.0.2.0/24 or 192.0.2.1"),
            (
                "2001:db8::1/64",
                "has bits set beyond its prefix, must be 2001:db8::/64 or 2001:db8::1",
            ),
        ] {
            assert_eq!(text.parse::<Network>(), Err(why.into()), "{text}");
        }
    }

    #[test]
    fn denied_comes_before_allowed_and_mapped_addresses_are_ipv4() {
        let networks = |allow: &[&str], deny: &[&str]| {
            let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
            Networks { allow: all(allow), deny: all(deny) }
        };
        for (allow, deny, address, is_let_in) in [
            (&[][..], &[][..], "192.0.2.1", true),
            (&["192.0.2.0/24"], &[], "192.0.2.255", true),
            (&["192.0.2.0/24"], &[], "192.0.3.0", false),
            (&["192.0.2.0/24"], &[], "::ffff:192.0.2.9", true),
            (&["192.0.2.0/24"], &[], "2001:db8::1", false),
            (&["0.0.0.0/0"], &[], "2001:db8::1", false),
            (&["::/0"], &[], "::ffff:192.0.2.9", false),
            (&["0.0.0.0/0", "::/0"], &[], "192.0.2.9", true),
            (&["192.0.2.0/24"], &["192.0.2.128/25"], "192.0.2.129", false),
            (&["192.0.2.0/24"], &["192.0.2.128/25"], "192.0.2.127", true),
            (&[], &["2001:db8::/32"], "2001:db8:ffff::1", false),
            (&[], &["2001:db8::/32"], "2001:db9::1", true),
            (&[], &["::ffff:192.0.2.0/120"], "192.0.2.1", false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let admitted = networks(allow, deny).admit(address);
            assert_eq!(admitted, is_let_in, "{allow:?} {deny:?} {address}");
        }
    }

    #[test]
    fn a_subscriber_of_ipv6_has_64_bits() {
        for (address, whose) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(subscriber(address.parse().unwrap()).to_string(), whose);
        }
    }
}
