//! Reaching a server by name: all its addresses are tried, each a little after the one before, and
//! the first that answers wins (RFC 8305). Look-up counts into the time that a person gives.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::task::JoinSet;

use crate::config::Family;
use crate::error::{Error, words};
use crate::sys;

/// A control connection, and the server's address that it leads to.
pub(crate) type Connected = (TcpStream, SocketAddr);

/// Whom to connect to, and from where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// Name or address of this machine to start from.
    pub(crate) bind: Option<&'a str>,
    /// Network device to use.
    pub(crate) device: Option<&'a str>,
    pub(crate) family: Option<Family>,
}

/// A control connection. `prepare` sees the addresses before the first attempt.
pub(crate) async fn connect<T>(
    target: Target<'_>,
    timeout: Option<Duration>,
    prepare: impl FnOnce(&[Pair]) -> Result<T, Error>,
) -> Result<(Connected, T), Error> {
    let Target { host, port, bind, device, family } = target;
    let failed = |error: io::Error| Error::Connect {
        server: format!("{host} TCP port {port}"),
        message: match error.kind() {
            io::ErrorKind::TimedOut => format!("{} ({SILENCE})", words(&error)),
            _ => words(&error),
        },
    };
    let connecting = async {
        let local = match bind {
            Some(name) => own_addresses(name, family).await?,
            None => Vec::new(),
        };
        let remote = resolve(host, port).await.map_err(failed)?;
        let remote = of_family(host, remote, family)?;
        let pairs = pairs(&remote, &local)?;
        let prepared = prepare(&pairs)?;
        Ok((race(pairs, device).await.map_err(failed)?, prepared))
    };
    match timeout {
        Some(limit) => tokio::time::timeout(limit, connecting).await.unwrap_or_else(|_| {
            Err(failed(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")))
        }),
        None => connecting.await,
    }
}

/// Addresses of this machine, which can be bound.
async fn own_addresses(name: &str, family: Option<Family>) -> Result<Vec<SocketAddr>, Error> {
    let failed = |error| Error::system(format!("-B {name}"), &error);
    let found = of_family(name, resolve(name, 0).await.map_err(failed)?, family)?;
    // As the connection will be: a datagram socket may get an address that no connection can have.
    let bind = |&address: &SocketAddr| {
        Socket::new(Domain::for_address(address), Type::STREAM, None)?.bind(&address.into())
    };
    // What a link-local address lacks is said when it is used.
    found.iter().filter(|address| !lacks_zone(address)).try_for_each(bind).map_err(failed)?;
    Ok(found)
}

/// Those of the family that the user wants.
pub(crate) fn of_family(
    name: &str,
    mut addresses: Vec<SocketAddr>,
    family: Option<Family>,
) -> Result<Vec<SocketAddr>, Error> {
    let (option, version) = match family {
        None => return Ok(addresses),
        Some(Family::V4) => ("-4", "IPv4"),
        Some(Family::V6) => ("-6", "IPv6"),
    };
    addresses.retain(|address| address.is_ipv4() == (family == Some(Family::V4)));
    if addresses.is_empty() {
        return Err(Error::Usage(format!(
            "{option}: {name} has no {version} address, and {option} allows no other"
        )));
    }
    Ok(addresses)
}

/// The addresses of `name`, at least one.
pub(crate) async fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let found: Vec<_> = lookup_host((bare, port)).await?.collect();
    match found.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} has no address"))),
        false => Ok(found),
    }
}

/// An address to reach, and one of ours to start from.
pub(crate) type Pair = (SocketAddr, Option<SocketAddr>);

/// Every remote address, with a local one of the same family where some are asked for.
fn pairs(remote: &[SocketAddr], local: &[SocketAddr]) -> Result<Vec<Pair>, Error> {
    if local.is_empty() {
        return Ok(remote.iter().map(|&address| (address, None)).collect());
    }
    let same_family =
        |address: &SocketAddr| local.iter().find(|own| own.is_ipv4() == address.is_ipv4()).copied();
    let pairs: Vec<_> = remote
        .iter()
        .filter_map(|&address| Some((address, Some(same_family(&address)?))))
        .collect();
    if pairs.is_empty() {
        let own = local[0].ip();
        return Err(Error::Usage(format!("-B {own}: the server has no address of this family")));
    }
    Ok(pairs)
}

/// The first connection that stands. The next address is tried when the one before has failed, or
/// has not answered for a while.
async fn race(pairs: Vec<Pair>, device: Option<&str>) -> io::Result<Connected> {
    let mut waiting = pairs.into_iter();
    let mut attempts = JoinSet::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some((remote, local)) = waiting.next() {
            let device = device.map(str::to_owned);
            attempts.spawn(async move { Ok((dial(remote, local, device).await?, remote)) });
        }
        let head_start = async {
            match waiting.len() {
                0 => std::future::pending().await,
                _ => tokio::time::sleep(HEAD_START).await,
            }
        };
        tokio::select! {
            joined = attempts.join_next() => match joined {
                Some(Ok(Ok(connected))) => return Ok(connected),
                Some(Ok(Err(error))) => last_error = error,
                Some(Err(_)) => {}
                None if waiting.len() == 0 => return Err(last_error),
                None => {}
            },
            () = head_start => {}
        }
    }
}

async fn dial(
    remote: SocketAddr,
    local: Option<SocketAddr>,
    device: Option<String>,
) -> io::Result<TcpStream> {
    let socket = if remote.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    let connecting = async {
        if let Some(device) = device {
            sys::bind_to_device(&SockRef::from(&socket), &device)?;
        }
        if let Some(local) = local {
            socket.bind(local)?;
        }
        socket.connect(remote).await
    };
    connecting.await.map_err(|error| match local.into_iter().chain([remote]).find(lacks_zone) {
        Some(address) => {
            let ip = address.ip();
            let text = format!("a link-local address needs its interface, as in {ip}%eth0");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        }
        None => error,
    })
}

/// Every interface has such addresses; the system does not know which one is meant.
fn lacks_zone(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// Windows and most other firewalls drop what they do not let in.
const SILENCE: &str = "a firewall there or on the way may drop the packets without a word";
/// How long one address may take before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn local_addresses_go_with_remote_ones_of_their_family() {
        let remote = [address("[::1]:5201"), address("127.0.0.1:5201")];
        let local = [address("127.0.0.2:0")];
        let only_v4 = pairs(&remote, &local).expect("one fits");
        assert_eq!(only_v4, [(remote[1], Some(local[0]))]);
        assert!(pairs(&remote[..1], &local).is_err());
    }

    #[tokio::test]
    async fn a_link_local_address_without_its_interface_is_named() {
        let remote = address("[fe80::1]:5201");
        let error = race(vec![(remote, None)], None).await.expect_err("it has no interface");
        assert!(error.to_string().contains("fe80::1%eth0"), "{error}");
    }

    #[tokio::test]
    async fn a_dead_address_does_not_keep_from_the_next() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let alive = listener.local_addr().expect("bound");
        let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let dead = closed.local_addr().expect("bound");
        drop(closed);
        let (stream, remote) =
            race(vec![(dead, None), (alive, None)], None).await.expect("one is alive");
        assert_eq!((stream.peer_addr().expect("connected"), remote), (alive, alive));
    }
}
