//! Reads what Winsock writes into byte buffers: socket addresses and control messages. Layouts and
//! numbers are those of `ws2def.h` and `ws2ipdef.h`; nothing here calls the system.

use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address in a `SOCKADDR_IN` or `SOCKADDR_IN6`.
pub(crate) fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(array(bytes, 0)?);
    let port = u16::from_be_bytes(array(bytes, 2)?);
    match family {
        AF_INET => Some((Ipv4Addr::from(array::<4>(bytes, 4)?), port).into()),
        AF_INET6 => {
            let flow = u32::from_ne_bytes(array(bytes, 4)?);
            let address = Ipv6Addr::from(array::<16>(bytes, 8)?);
            let scope = u32::from_ne_bytes(array(bytes, 24)?);
            Some(SocketAddrV6::new(address, port, flow, scope).into())
        }
        _ => None,
    }
}

/// The local address of a datagram, from the control messages that came with it; its port is 0.
pub(crate) fn destination(control: &[u8]) -> Option<SocketAddr> {
    ControlMessages(control).find_map(|message| match (message.level, message.kind) {
        // `IN_PKTINFO`: the address in the datagram's header, then the interface.
        (IPPROTO_IP, IP_PKTINFO) => Some((Ipv4Addr::from(array::<4>(message.data, 0)?), 0).into()),
        // `IN6_PKTINFO`: likewise; the interface is the scope of a link-local address.
        (IPPROTO_IPV6, IPV6_PKTINFO) => {
            let address = Ipv6Addr::from(array::<16>(message.data, 0)?);
            let index = u32::from_ne_bytes(array(message.data, 16)?);
            let scope = if address.is_unicast_link_local() { index } else { 0 };
            Some(SocketAddrV6::new(address, 0, 0, scope).into())
        }
        _ => None,
    })
}

/// One control message.
struct ControlMessage<'a> {
    level: i32,
    kind: i32,
    data: &'a [u8],
}

/// The messages of a control buffer. Each begins with a `CMSGHDR`, its length (header and data, a
/// word) before level and kind; header and data end on multiples of a word.
struct ControlMessages<'a>(&'a [u8]);

impl<'a> Iterator for ControlMessages<'a> {
    type Item = ControlMessage<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0;
        let len = usize::from_ne_bytes(array(rest, 0)?);
        let level = i32::from_ne_bytes(array(rest, WORD)?);
        let kind = i32::from_ne_bytes(array(rest, WORD + 4)?);
        let data = rest.get(HEADER..len)?;
        self.0 = rest.get(len.next_multiple_of(WORD)..).unwrap_or_default();
        Some(ControlMessage { level, kind, data })
    }
}

/// `N` bytes at a place, if there are as many.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

const WORD: usize = size_of::<usize>();
const HEADER: usize = (WORD + 8).next_multiple_of(WORD);

const AF_INET: u16 = 2;
const AF_INET6: u16 = 23;
const IPPROTO_IP: i32 = 0;
const IPPROTO_IPV6: i32 = 41;
const IP_PKTINFO: i32 = 19;
const IPV6_PKTINFO: i32 = 19;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(WORD), 0);
        bytes
    }

    fn packet_info(address: &[u8], interface: u32) -> Vec<u8> {
        [address, &interface.to_ne_bytes()].concat()
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let v4 = [&AF_INET.to_ne_bytes()[..], &[0x14, 0x51, 192, 0, 2, 7], &[0; 8]].concat();
        assert_eq!(socket_address(&v4), Some("192.0.2.7:5201".parse().unwrap()));

        let address: Ipv6Addr = "fe80::1".parse().unwrap();
        let family = AF_INET6.to_ne_bytes();
        let scope = 3u32.to_ne_bytes();
        let v6 = [&family[..], &[0x14, 0x51], &[0; 4], &address.octets(), &scope].concat();
        let expected = SocketAddrV6::new(address, 5201, 0, 3);
        assert_eq!(socket_address(&v6), Some(expected.into()));

        assert_eq!(socket_address(&v6[..27]), None, "a cut address is none");
        assert_eq!(socket_address(&[0; 28]), None, "no family, no address");
    }

    #[test]
    fn the_destination_is_found_among_other_messages() {
        let other = message(IPPROTO_IP, 50, &[1; 5]);
        let v4 = message(IPPROTO_IP, IP_PKTINFO, &packet_info(&[192, 0, 2, 7], 4));
        let expected = "192.0.2.7:0".parse().unwrap();
        assert_eq!(destination(&[&other[..], &v4].concat()), Some(expected));

        let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let v6 = message(IPPROTO_IPV6, IPV6_PKTINFO, &packet_info(&address.octets(), 4));
        assert_eq!(destination(&v6), Some((address, 0).into()));
    }

    #[test]
    fn a_link_local_destination_has_its_interface() {
        let address: Ipv6Addr = "fe80::1".parse().unwrap();
        let info = message(IPPROTO_IPV6, IPV6_PKTINFO, &packet_info(&address.octets(), 4));
        assert_eq!(destination(&info), Some(SocketAddrV6::new(address, 0, 0, 4).into()));
    }

    #[test]
    fn broken_control_messages_end_the_search() {
        let whole = message(IPPROTO_IP, IP_PKTINFO, &packet_info(&[192, 0, 2, 7], 4));
        for len in [0, 1, WORD] {
            let mut short = whole.clone();
            short[..WORD].copy_from_slice(&usize::to_ne_bytes(len));
            assert_eq!(destination(&short), None, "length {len}");
        }
        let mut long = whole.clone();
        long[..WORD].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(destination(&long), None);
        for cut in 0..HEADER + 4 {
            assert_eq!(destination(&whole[..cut]), None, "cut at {cut}");
        }
    }
}
