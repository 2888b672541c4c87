//! Where a server listens, and sockets bound there: the same rule for TCP and UDP, so that both of
//! a server's ports accept the same clients.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Every address of the host: one IPv6 socket that takes IPv4 too, or an IPv4 socket where
    /// there is no IPv6.
    Everywhere {
        /// The port.
        port: u16,
    },
    /// This address, or every one of its family if it is unspecified.
    At(SocketAddr),
}

/// Makes a socket of a family.
pub(super) type Make<'a> = &'a dyn Fn(Domain) -> io::Result<Socket>;
/// Sets what must be set before a socket is bound.
type Prepare<'a> = &'a dyn Fn(&Socket) -> io::Result<()>;

impl Listen {
    /// The same on another port.
    pub(crate) fn with_port(self, port: u16) -> Self {
        match self {
            Self::Everywhere { .. } => Self::Everywhere { port },
            Self::At(mut address) => {
                address.set_port(port);
                Self::At(address)
            }
        }
    }

    /// A bound socket, non-blocking; `prepare` sets what must be set before it is bound.
    pub(crate) fn bind(self, kind: Type, prepare: Prepare<'_>) -> io::Result<Socket> {
        self.bind_with(&|domain| Socket::new(domain, kind, None), prepare)
    }

    /// The same with a socket that `make` makes.
    pub(crate) fn bind_with(self, make: Make<'_>, prepare: Prepare<'_>) -> io::Result<Socket> {
        match self {
            Self::At(address) => bind(make, address, true, prepare),
            Self::Everywhere { port } => {
                let any_v6 = (Ipv6Addr::UNSPECIFIED, port).into();
                let any_v4 = (Ipv4Addr::UNSPECIFIED, port).into();
                match bind(make, any_v6, false, prepare) {
                    // The port is taken: IPv4 alone would hide that.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
                    Err(_) => bind(make, any_v4, true, prepare),
                    bound => bound,
                }
            }
        }
    }
}

/// A bound socket of `address`'s family, non-blocking.
pub(super) fn bind(
    make: Make<'_>,
    address: SocketAddr,
    only_v6: bool,
    prepare: Prepare<'_>,
) -> io::Result<Socket> {
    let socket = make(Domain::for_address(address))?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_nonblocking(true)?;
    prepare(&socket)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_an_error_and_no_fallback() {
        let everywhere = Listen::Everywhere { port: 0 };
        let taken = everywhere.bind(Type::DGRAM, &|_| Ok(())).unwrap();
        let port = taken.local_addr().unwrap().as_socket().unwrap().port();
        let again = Listen::Everywhere { port }.bind(Type::DGRAM, &|_| Ok(()));
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn an_ipv6_address_leaves_ipv4_to_others() {
        let Ok(v6) = Listen::At((Ipv6Addr::UNSPECIFIED, 0).into()).bind(Type::DGRAM, &|_| Ok(()))
        else {
            println!("skipped: this machine has no IPv6");
            return;
        };
        let port = v6.local_addr().unwrap().as_socket().unwrap().port();
        Listen::At((Ipv4Addr::UNSPECIFIED, port).into()).bind(Type::DGRAM, &|_| Ok(())).unwrap();
    }
}
