//! Reaching a server: what is checked and taken before the first connection, and the control
//! connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::error_text;
use linerate_core::test::Protocol;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

use crate::config::ClientConfig;
use crate::connect::{Pair, Target, connect, of_family, resolve};
use crate::device;
use crate::error::{Error, words};
use crate::stream::{LocalPorts, OwnOptions, SocketOptions};
use crate::sys;

/// A server that was reached, and what its test's data sockets will need.
pub(crate) struct Reached {
    pub(crate) control: TcpStream,
    pub(crate) remote: SocketAddr,
    pub(crate) own: OwnOptions,
    pub(crate) ports: LocalPorts,
}

/// Connects to the server, once it is known that this machine can do what is asked of it.
pub(crate) async fn reach(config: &ClientConfig) -> Result<Reached, Error> {
    if let Some(name) = &config.congestion {
        check_congestion(name)?;
    }
    if let Some(bytes) =
        config.settings.mss_bytes.filter(|_| config.settings.protocol == Protocol::Tcp)
    {
        check_mss(bytes)?;
    }
    if config.settings.protocol == Protocol::Sctp {
        check_sctp()?;
    }
    device::check(config.bind_device.as_deref())?;
    let own = OwnOptions {
        device: config.bind_device.clone(),
        send_timeout: config.send_timeout,
        sctp_streams: config.sctp.streams,
        sctp_addresses: sctp_addresses(config).await?,
    };
    let target = Target {
        host: &config.host,
        port: config.port,
        bind: config.bind.as_deref(),
        device: config.bind_device.as_deref(),
        family: config.family,
    };
    let take = |pairs: &[Pair]| {
        check_flow_label(config, pairs)?;
        take_ports(config, &own, pairs)
    };
    let ((control, remote), ports) = connect(target, config.connect_timeout, take).await?;
    Ok(Reached { control, remote, own, ports })
}

/// A congestion control that this system does not have would be replaced by another without a word.
fn check_congestion(name: &str) -> Result<(), Error> {
    let probe = Socket::new(Domain::IPV4, Type::STREAM, None)
        .map_err(|error| Error::system("no socket", &error))?;
    match sys::set_congestion(&probe, name) {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => {
            let text = error_text::text(error_number::SET_CONGESTION).unwrap_or_default();
            Err(Error::Usage(format!("-C {name}: {text}")))
        }
        _ => Ok(()),
    }
}

/// The least that a system takes is its own choice; a test without the size would measure something
/// else.
fn check_mss(bytes: u32) -> Result<(), Error> {
    let probe = Socket::new(Domain::IPV4, Type::STREAM, None)
        .map_err(|error| Error::system("no socket", &error))?;
    match sys::set_mss(&probe, bytes) {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => {
            let text = error_text::text(error_number::SET_MSS).unwrap_or_default();
            Err(Error::Usage(format!("-M {bytes}: {text}: {}", words(&error))))
        }
        _ => Ok(()),
    }
}

/// IPv4 has no flow labels.
fn check_flow_label(config: &ClientConfig, pairs: &[Pair]) -> Result<(), Error> {
    let Some(label) = config.settings.flow_label else { return Ok(()) };
    if pairs.iter().any(|(remote, _)| remote.is_ipv6()) {
        return Ok(());
    }
    let text = error_text::text(error_number::FLOW_LABEL).unwrap_or_default();
    Err(Error::Usage(format!("-L {label}: {text}: {} has no IPv6 address", config.host)))
}

fn check_sctp() -> Result<(), Error> {
    let probe = sys::sctp_socket(Domain::IPV4).or_else(|_| sys::sctp_socket(Domain::IPV6));
    probe.map(drop).map_err(|error| {
        let text = error_text::text(error_number::NO_SCTP).unwrap_or_default();
        Error::Usage(format!("--sctp: {text}: {}", words(&error)))
    })
}

/// The addresses of `-X`.
async fn sctp_addresses(config: &ClientConfig) -> Result<Vec<IpAddr>, Error> {
    let mut addresses = Vec::new();
    for name in &config.sctp.bind {
        let failed = |error| Error::system(format!("-X {name}"), &error);
        let found = of_family(name, resolve(name, 0).await.map_err(failed)?, config.family)?;
        addresses.push(found[0].ip());
    }
    Ok(addresses)
}

/// The ports of `--cport`, at the addresses that a connection may start from.
fn take_ports(
    config: &ClientConfig,
    own: &OwnOptions,
    pairs: &[Pair],
) -> Result<LocalPorts, Error> {
    let Some(first) = config.client_port else { return Ok(LocalPorts::default()) };
    let options = SocketOptions::new(&config.settings, None).with_own(own.clone());
    let start = |&(remote, local): &Pair| local.unwrap_or_else(|| anywhere(remote));
    let addresses: Vec<_> = pairs.iter().map(start).collect();
    LocalPorts::take(first, config.settings.stream_count(), &addresses, &options)
}

/// Every address of this machine, in the family of `remote`.
fn anywhere(remote: SocketAddr) -> SocketAddr {
    match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
