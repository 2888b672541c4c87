//! Where a client's data sockets start: anywhere, at an address, or at ports that somebody chose
//! (`--cport`). Chosen ports are taken before the test begins, so that a port that cannot be had is
//! told before anything is connected, and the control connection gets none of them.

use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Socket};

use super::SocketOptions;
use super::socket::bind_local;
use crate::error::Error;
use crate::report::Warning;
use crate::sys;

/// Where one data socket starts.
#[derive(Debug)]
pub(crate) enum LocalPoint {
    /// Wherever the system likes.
    Any,
    /// At this address; port zero leaves the port to the system.
    At(SocketAddr),
    /// At the port that this socket is bound to.
    Held(Socket, Option<Warning>),
}

/// The ports of a test's data streams: a first one, and as many after it as there are further streams.
#[derive(Debug, Default)]
pub(crate) struct LocalPorts {
    /// By local address, since nobody knows yet which of the server's will answer.
    held: Vec<(IpAddr, Vec<Option<Bound>>)>,
}

type Bound = (Socket, Option<Warning>);

impl LocalPorts {
    /// Takes `count` ports from `first` on, at each of these addresses.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are not so many ports, [`Error::System`] with the port that cannot be
    /// had.
    pub(crate) fn take(
        first: u16,
        count: usize,
        addresses: &[SocketAddr],
        options: &SocketOptions,
    ) -> Result<Self, Error> {
        let last = usize::from(first) + count - 1;
        let Ok(last) = u16::try_from(last) else {
            return Err(Error::Usage(format!(
                "--cport {first}: {count} streams need the ports {first} to {last}, and ports end \
                 at 65535"
            )));
        };
        // An IPv6 socket would hold the IPv4 port, too.
        let only_v6 = addresses.iter().any(SocketAddr::is_ipv4);
        let mut held: Vec<(IpAddr, Vec<Option<Bound>>)> = Vec::new();
        for &address in addresses {
            if held.iter().any(|(ip, _)| *ip == address.ip()) {
                continue;
            }
            let take = |port| {
                // The zone of a link-local address stays.
                let mut address = address;
                address.set_port(port);
                bind(address, only_v6, options).map(Some)
            };
            match (first..=last).map(take).collect() {
                Ok(sockets) => held.push((address.ip(), sockets)),
                // A family that this machine lacks is no obstacle to the other.
                Err(error) if addresses.len() > 1 && is_family_missing(&error) => {}
                Err((port, error)) => {
                    return Err(Error::system(
                        format!("--cport {first}: local port {port}"),
                        &error,
                    ));
                }
            }
        }
        Ok(Self { held })
    }

    /// The place of the stream at `index`, for a server that is reached from `local`.
    pub(crate) fn give(&mut self, local: IpAddr, index: usize) -> Option<LocalPoint> {
        let (_, sockets) = self.held.iter_mut().find(|(ip, _)| {
            *ip == local || ip.is_unspecified() && ip.is_ipv4() == local.is_ipv4()
        })?;
        let (socket, warning) = sockets.get_mut(index)?.take()?;
        Some(LocalPoint::Held(socket, warning))
    }
}

/// A socket at a port, or the port and why not.
fn bind(
    address: SocketAddr,
    only_v6: bool,
    options: &SocketOptions,
) -> Result<Bound, (u16, std::io::Error)> {
    let taken = || {
        let (socket, warning) = options.socket(Domain::for_address(address))?;
        if address.is_ipv6() {
            socket.set_only_v6(only_v6)?;
        }
        if options.protocol().is_stream() {
            sys::reuse_ended(&socket)?;
        }
        bind_local(&socket, address, options)?;
        Ok((socket, warning))
    };
    taken().map_err(|error| (address.port(), error))
}

fn is_family_missing((_, error): &(u16, std::io::Error)) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, Unsupported};
    #[cfg(unix)]
    let is_missing = error.raw_os_error() == Some(libc::EAFNOSUPPORT);
    #[cfg(not(unix))]
    let is_missing = error.raw_os_error() == Some(10_047); // WSAEAFNOSUPPORT
    is_missing || matches!(error.kind(), AddrNotAvailable | Unsupported)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

    use linerate_core::test::{Protocol, TestSettings};

    use super::*;

    const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn options(protocol: Protocol) -> SocketOptions {
        SocketOptions::new(&TestSettings::new(protocol), None)
    }

    #[test]
    fn streams_get_the_ports_in_order_and_once() {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let first = free_ports();
            let mut ports = LocalPorts::take(first, 3, &[HERE], &options(protocol)).unwrap();
            for (index, expected) in (first..first + 3).enumerate() {
                let Some(LocalPoint::Held(socket, None)) = ports.give(HERE.ip(), index) else {
                    panic!("stream {index} has no port");
                };
                let local = socket.local_addr().unwrap().as_socket().unwrap();
                assert_eq!(local.port(), expected);
                assert!(ports.give(HERE.ip(), index).is_none(), "its port is gone");
            }
            assert!(ports.give(HERE.ip(), 3).is_none());
        }
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let listener = TcpListener::bind(HERE).unwrap();
        let socket = UdpSocket::bind(HERE).unwrap();
        for (protocol, port) in [
            (Protocol::Tcp, listener.local_addr().unwrap().port()),
            (Protocol::Udp, socket.local_addr().unwrap().port()),
        ] {
            let first = port - 1;
            let error = LocalPorts::take(first, 2, &[HERE], &options(protocol)).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("--cport {first}: local port ")), "{text}");
            assert!(text.ends_with("in use"), "{text}");
        }
    }

    #[test]
    fn ports_end_at_65535() {
        let options = options(Protocol::Udp);
        let error = LocalPorts::take(65_535, 2, &[HERE], &options).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{error}");
        assert!(error.to_string().contains("65535 to 65536"), "{error}");
    }

    #[test]
    fn both_families_have_the_same_ports() {
        let any = [(Ipv6Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::UNSPECIFIED, 0).into()];
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let first = free_ports();
            let mut ports = LocalPorts::take(first, 2, &any, &options(protocol)).unwrap();
            assert!(ports.give(HERE.ip(), 1).is_some(), "an address that the port is open on");
        }
    }

    /// The first of a few ports that nobody uses, below those that the system gives out.
    fn free_ports() -> u16 {
        use std::sync::atomic::{AtomicU16, Ordering};
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let base = 20_000 + (std::process::id() % 500) as u16 * 20;
        base + NEXT.fetch_add(4, Ordering::Relaxed)
    }
}
