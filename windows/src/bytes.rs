//! Reads what Winsock writes into byte buffers, and writes what it reads there: socket addresses and control
//! messages. Layouts and
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

/// Writes an address as a `SOCKADDR_IN` or `SOCKADDR_IN6`, and returns its length.
pub(crate) fn write_socket_address(address: SocketAddr, bytes: &mut [u8]) -> usize {
    let port = address.port().to_be_bytes();
    match address {
        SocketAddr::V4(v4) => {
            let parts = [&AF_INET.to_ne_bytes()[..], &port, &v4.ip().octets(), &[0; 8]];
            fill(bytes, &parts)
        }
        SocketAddr::V6(v6) => {
            let (flow, scope) = (v6.flowinfo().to_ne_bytes(), v6.scope_id().to_ne_bytes());
            let family = AF_INET6.to_ne_bytes();
            fill(bytes, &[&family[..], &port, &flow, &v6.ip().octets(), &scope])
        }
    }
}

/// Writes the control messages of a datagram or a row of such that leaves from a local address, cut into
/// datagrams of so many bytes, and returns their length. An IPv6 socket sends IPv4 from a mapped address.
pub(crate) fn write_control(
    from: Option<SocketAddr>,
    segment_bytes: Option<u16>,
    bytes: &mut [u8],
) -> usize {
    let mut len = 0;
    let from = from.map(|from| match from.ip().to_canonical() {
        ip if ip.is_ipv4() => SocketAddr::new(ip, from.port()),
        _ => from,
    });
    // The interface is the one of the route, but for addresses that mean nothing without it.
    match from {
        Some(SocketAddr::V4(v4)) => {
            let info = [&v4.ip().octets()[..], &[0; 4]].concat();
            len += write_message(IPPROTO_IP, IP_PKTINFO, &info, &mut bytes[len..]);
        }
        Some(SocketAddr::V6(v6)) => {
            let info = [&v6.ip().octets()[..], &v6.scope_id().to_ne_bytes()].concat();
            len += write_message(IPPROTO_IPV6, IPV6_PKTINFO, &info, &mut bytes[len..]);
        }
        None => {}
    }
    if let Some(segment_bytes) = segment_bytes {
        let data = u32::from(segment_bytes).to_ne_bytes();
        len += write_message(IPPROTO_UDP, UDP_SEND_MSG_SIZE, &data, &mut bytes[len..]);
    }
    len
}

fn write_message(level: i32, kind: i32, data: &[u8], bytes: &mut [u8]) -> usize {
    let len = (HEADER + data.len()).to_ne_bytes();
    fill(bytes, &[&len, &level.to_ne_bytes(), &kind.to_ne_bytes()]);
    fill(&mut bytes[HEADER..], &[data]);
    (HEADER + data.len()).next_multiple_of(WORD)
}

/// Puts the parts one behind the other, and returns their length.
fn fill(bytes: &mut [u8], parts: &[&[u8]]) -> usize {
    let mut len = 0;
    for part in parts {
        bytes[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    len
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

/// Bytes of each datagram but the last of a message that the system joined, from the control messages that
/// came with it.
pub(crate) fn segment_bytes(control: &[u8]) -> Option<usize> {
    ControlMessages(control).find_map(|message| match (message.level, message.kind) {
        (IPPROTO_UDP, UDP_COALESCED_INFO) => {
            usize::try_from(u32::from_ne_bytes(array(message.data, 0)?))
                .ok()
                .filter(|&bytes| bytes > 0)
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
const IPPROTO_UDP: i32 = 17;
const IPPROTO_IPV6: i32 = 41;
const IP_PKTINFO: i32 = 19;
const IPV6_PKTINFO: i32 = 19;
/// Since Windows 10 2004.
const UDP_COALESCED_INFO: i32 = 3;
const UDP_SEND_MSG_SIZE: i32 = 2;

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
    fn what_is_written_is_what_would_be_read() {
        for address in
            ["192.0.2.7:5201", "[2001:db8::1]:5201", "[fe80::1%3]:7", "[::ffff:192.0.2.7]:1"]
        {
            let address: SocketAddr = address.parse().unwrap();
            let (mut name, mut control) = ([0; 128], [0; 128]);
            let len = write_socket_address(address, &mut name);
            assert_eq!(
                (socket_address(&name[..len]), len),
                (Some(address), if address.is_ipv4() { 16 } else { 28 })
            );
            let len = write_control(Some(address), Some(1400), &mut control);
            let found = destination(&control[..len]).unwrap();
            assert_eq!(found.ip(), address.ip().to_canonical());
            let cut = ControlMessages(&control[..len]).nth(1).unwrap();
            assert_eq!((cut.level, cut.kind), (IPPROTO_UDP, UDP_SEND_MSG_SIZE));
            assert_eq!(cut.data, 1400u32.to_ne_bytes());
            assert!(ControlMessages(&control[..len]).nth(2).is_none());
        }
        assert_eq!(write_control(None, None, &mut []), 0);
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
    fn the_length_of_joined_datagrams_is_found_beside_the_destination() {
        let to = message(IPPROTO_IP, IP_PKTINFO, &packet_info(&[192, 0, 2, 7], 4));
        let joined = |bytes: u32| message(IPPROTO_UDP, UDP_COALESCED_INFO, &bytes.to_ne_bytes());
        assert_eq!(segment_bytes(&[&to[..], &joined(1400)].concat()), Some(1400));
        assert_eq!(segment_bytes(&to), None);
        assert_eq!(segment_bytes(&joined(0)), None, "none are joined");
        assert_eq!(segment_bytes(&message(IPPROTO_UDP, UDP_COALESCED_INFO, &[1, 2])), None);
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
