//! Where a client's connections come from: what is checked and taken before the first of them, the
//! control connection, and the data streams one after the other as the session asks for them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::error_text;
use linerate_core::session::{Client as ClientExchange, Phase, SessionError, StreamEvent};
use linerate_core::test::{Protocol, StreamId};
use linerate_core::time::Instant;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::config::ClientConfig;
use crate::connect::{Pair, Target, connect, of_family, resolve};
use crate::control::{Backend, MAX_STREAMS, TestSession};
use crate::device;
use crate::error::{Error, words};
use crate::stream::{
    DataFile, DataSocket, LocalPoint, LocalPorts, OwnOptions, SocketOptions, connect_stream,
    connect_udp,
};
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

/// Opens the client's streams, one after the other as the session asks.
pub(crate) struct Dialler<'a> {
    config: &'a ClientConfig,
    remote: SocketAddr,
    /// The address of this machine that the control connection has.
    local: SocketAddr,
    cookie: Cookie,
    options: Arc<SocketOptions>,
    ports: LocalPorts,
    inputs: mpsc::UnboundedSender<Opened>,
    dialling: Option<AbortHandle>,
    /// The file that the streams send or store in.
    pub(crate) file: Option<DataFile>,
}

/// A stream was opened, or could not be.
pub(crate) struct Opened(StreamId, io::Result<DataSocket>);

impl<'a> Dialler<'a> {
    pub(crate) fn new(
        config: &'a ClientConfig,
        control: &TcpStream,
        remote: SocketAddr,
        cookie: Cookie,
        options: SocketOptions,
        ports: LocalPorts,
        inputs: mpsc::UnboundedSender<Opened>,
    ) -> Result<Self, Error> {
        let failed = |error| Error::system("control connection", &error);
        let mut local = control.local_addr().map_err(failed)?;
        local.set_port(0);
        let options = Arc::new(options);
        Ok(Self {
            config,
            remote,
            local,
            cookie,
            options,
            ports,
            inputs,
            dialling: None,
            file: None,
        })
    }

    /// Where the stream at `index` starts.
    fn local_point(&mut self, index: usize) -> io::Result<LocalPoint> {
        if self.config.client_port.is_some() {
            return self.ports.give(self.local.ip(), index).ok_or_else(|| {
                let text = "no local port was kept for this stream";
                io::Error::new(io::ErrorKind::AddrNotAvailable, text)
            });
        }
        let of_sctp = self.options.sctp_addresses();
        let of_sctp = of_sctp.iter().find(|ip| ip.is_ipv4() == self.remote.is_ipv4());
        Ok(match (&self.config.bind, of_sctp) {
            (Some(_), _) => LocalPoint::At(self.local),
            (None, Some(&ip)) => LocalPoint::At((ip, 0).into()),
            (None, None) => LocalPoint::Any,
        })
    }

    /// The local port that was asked for, for messages.
    fn chosen_port(&self, id: StreamId) -> Option<u16> {
        let first = self.config.client_port?;
        u16::try_from(usize::from(first) + id.index()).ok()
    }
}

impl<'a> Backend for Dialler<'a> {
    type Exchange = ClientExchange<'a, MAX_STREAMS>;
    type Input = Opened;

    fn open_stream(&mut self, id: StreamId, _session: &TestSession<Self>) {
        let local = self.local_point(id.index());
        let (remote, cookie, port) = (self.remote, self.cookie, self.chosen_port(id));
        let (options, inputs) = (self.options.clone(), self.inputs.clone());
        let limit = self.config.connect_timeout.unwrap_or(DATA_LIMIT);
        let dialling = tokio::spawn(async move {
            let opening = async {
                match options.protocol() {
                    Protocol::Tcp | Protocol::Sctp => {
                        connect_stream(remote, local?, &cookie, &options).await
                    }
                    Protocol::Udp => connect_udp(remote, local?, &options).await,
                }
            };
            let opened = tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
            });
            // The test may be over already; then nobody wants the stream.
            let _ = inputs.send(Opened(id, opened.map_err(|error| explain(error, port))));
        });
        self.dialling = Some(dialling.abort_handle());
    }

    fn file(&self) -> Option<&DataFile> {
        self.file.as_ref()
    }

    fn cpu(&self) -> Option<u16> {
        self.config.affinity
    }

    fn on_input(
        &mut self,
        session: &mut TestSession<Self>,
        sockets: &mut Vec<DataSocket>,
        now: Instant,
        Opened(id, opened): Opened,
    ) -> Result<(), Error> {
        match opened {
            Ok(socket) => {
                sockets.push(socket);
                session.handle_stream(now, id, StreamEvent::Connected);
                Ok(())
            }
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(0);
                session.handle_stream(now, id, StreamEvent::Failed { code });
                Err(Error::Stream {
                    number: id.number(),
                    protocol: self.options.protocol(),
                    port: self.config.port,
                    message: words(&error),
                })
            }
        }
    }

    fn explain(&self, error: SessionError, session: &TestSession<Self>) -> Error {
        // Words that say no more than the number are those of the number, and its cause is known here.
        if let (SessionError::Refused(refusal), Some(text)) = (error, session.explanation())
            && text != error.to_string()
        {
            return Error::Refused { refusal, text: text.to_owned() };
        }
        match error {
            SessionError::ControlClosed(Phase::Preparing) if self.config.credentials.is_some() => {
                Error::LoginUnanswered
            }
            _ => Error::Session(error),
        }
    }
}

impl Drop for Dialler<'_> {
    fn drop(&mut self) {
        if let Some(dialling) = &self.dialling {
            dialling.abort();
        }
    }
}

/// A chosen port can be free and yet not be used: towards the same server it carries one connection,
/// and rests for a while after that has ended.
fn explain(error: io::Error, port: Option<u16>) -> io::Error {
    match (error.kind(), port) {
        (io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse, Some(port)) => {
            let text = format!(
                "local port {port} has a connection to this server, or had one until a minute ago; \
                 choose another --cport"
            );
            io::Error::new(error.kind(), text)
        }
        _ => error,
    }
}

/// How long one data connection may take when nobody says: a few attempts of the system's.
const DATA_LIMIT: Duration = Duration::from_secs(20);
