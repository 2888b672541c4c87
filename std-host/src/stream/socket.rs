//! One data connection before and while a stream runs on it: how clients open one, how servers
//! adopt one. Knows no session; what is measured on it is the flows' business.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting;
use linerate_core::test::Protocol;
use socket2::{Domain, SockRef, Socket};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use super::outcome::{Remedy, remedy};
use super::sorter::Seat;
use super::{LocalPoint, SocketOptions};
use crate::report::{SocketBuffers, Warning};
use crate::sys::{self, Channel, Mark};

/// A connected data socket, non-blocking, with the test's options applied.
#[derive(Debug)]
pub(crate) struct DataSocket {
    /// Ends before the socket.
    _mark: Option<Mark>,
    line: Line,
    protocol: Protocol,
    local: SocketAddr,
    peer: SocketAddr,
    buffers: SocketBuffers,
    warnings: Vec<Warning>,
}

/// What a stream sends on.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// A connected socket of its own.
    Own(Arc<Socket>),
    /// A place at one that it shares.
    Shared(Arc<Seat>),
}

impl Line {
    pub(super) fn socket(&self) -> &Arc<Socket> {
        match self {
            Self::Own(socket) => socket,
            Self::Shared(seat) => seat.socket(),
        }
    }

    pub(super) fn seat(&self) -> Option<&Arc<Seat>> {
        match self {
            Self::Own(_) => None,
            Self::Shared(seat) => Some(seat),
        }
    }

    /// For the thread of the stream.
    pub(super) fn channel(&self) -> io::Result<Channel> {
        match self {
            Self::Own(socket) => Channel::new(socket.clone()),
            Self::Shared(seat) => Channel::unconnected(seat.socket().clone(), Some(*seat.route())),
        }
    }

    /// Sends one datagram.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Own(socket) => socket.send_with_flags(bytes, sys::SEND_FLAGS).map(drop),
            Self::Shared(seat) => sys::send_along(seat.socket(), seat.route(), bytes),
        }
    }
}

/// Client: opens a TCP, MPTCP or SCTP data connection and names its test.
///
/// `local` is where it starts. Waits as long as the system does; drop the future to give up earlier.
pub(crate) async fn connect_stream(
    remote: SocketAddr,
    local: LocalPoint,
    cookie: &Cookie,
    options: &SocketOptions,
) -> io::Result<DataSocket> {
    let (socket, remote, mut warnings) = open(remote, local, options)?;
    let mut stream = TcpSocket::from_std_stream(socket.into()).connect(remote).await?;
    warnings.extend(options.after_connect(&SockRef::from(&stream)));
    stream.write_all(cookie.as_bytes()).await?;
    DataSocket::new(stream.into_std()?.into(), options, warnings)
}

/// Client: the socket of a UDP stream, of which the server knows nothing yet.
pub(crate) fn open_datagrams(
    remote: SocketAddr,
    local: LocalPoint,
    options: &SocketOptions,
) -> io::Result<DataSocket> {
    let (socket, remote, warnings) = open(remote, local, options)?;
    socket.connect(&remote.into())?;
    DataSocket::new(socket, options, warnings)
}

/// What becomes of the greetings of a UDP stream. It takes nothing out of the socket: data that comes
/// before the reply is counted when the stream runs, and a reply is passed over then.
pub(crate) struct Ear(UdpSocket);

/// What the network said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Something came from the server, so the greeting has arrived.
    Answer,
    /// Nobody listened there.
    Refusal,
    /// It did not even leave, as the network is for now.
    Unsent,
}

impl Ear {
    /// Must be made within a tokio runtime.
    pub(crate) fn new(socket: &DataSocket) -> io::Result<Self> {
        Ok(Self(UdpSocket::from_std(socket.socket().try_clone()?.into())?))
    }

    /// Waits for the next that the network says; once there is an answer, it stays.
    pub(crate) async fn next(&self) -> io::Result<Heard> {
        let mut beginning = [MaybeUninit::uninit(); greeting::MOST_BYTES];
        loop {
            let peek = || SockRef::from(&self.0).peek(&mut beginning);
            match self.0.async_io(Interest::READABLE | Interest::ERROR, peek).await {
                Ok(_) => return Ok(Heard::Answer),
                Err(error) if is_cut(&error) => return Ok(Heard::Answer),
                Err(error) => match remedy(Protocol::Udp, &error) {
                    Remedy::Again if error.kind() == io::ErrorKind::Interrupted => {}
                    Remedy::Again | Remedy::Pause(_) => return Ok(Heard::Refusal),
                    Remedy::Wait => {}
                    Remedy::GiveUp => return Err(error),
                },
            }
        }
    }
}

/// On Windows, a receive into less room than the datagram takes fails.
fn is_cut(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(10040) // WSAEMSGSIZE
}

/// Server: makes a data socket of an accepted connection whose cookie was read.
pub(crate) fn adopt_stream(stream: TcpStream, options: &SocketOptions) -> io::Result<DataSocket> {
    // An IPv6 socket may carry IPv4, which its options have to reach.
    let is_ipv6 = canonical(stream.peer_addr()?).is_ipv6();
    let socket = Socket::from(stream.into_std()?);
    let mut warnings = options.apply(&socket, is_ipv6);
    warnings.extend(options.after_accept(is_ipv6));
    DataSocket::new(socket, options, warnings)
}

impl DataSocket {
    /// Wraps a connected, non-blocking socket that has its options already.
    pub(super) fn new(
        socket: Socket,
        options: &SocketOptions,
        mut warnings: Vec<Warning>,
    ) -> io::Result<Self> {
        let address = |address: socket2::SockAddr| {
            address.as_socket().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        let (mark, warning) = options.mark(&socket);
        warnings.extend(warning);
        Ok(Self {
            _mark: mark,
            protocol: options.protocol(),
            local: canonical(address(socket.local_addr()?)?),
            peer: canonical(address(socket.peer_addr()?)?),
            buffers: options.buffers(&socket),
            warnings,
            line: Line::Own(Arc::new(socket)),
        })
    }

    /// A stream between these addresses that shares its socket.
    pub(super) fn shared(
        seat: Seat,
        (local, peer): (SocketAddr, SocketAddr),
        options: &SocketOptions,
        warnings: Vec<Warning>,
    ) -> Self {
        Self {
            _mark: None,
            protocol: options.protocol(),
            local,
            peer,
            buffers: options.buffers(seat.socket()),
            warnings,
            line: Line::Shared(Arc::new(seat)),
        }
    }

    /// This end's address.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The other end's address.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The system's number of the socket, or one for this stream alone where it shares it.
    pub(crate) fn number(&self) -> i32 {
        match &self.line {
            Line::Own(socket) => sys::socket_number(socket),
            Line::Shared(seat) => seat.socket_number(),
        }
    }

    /// Buffer sizes, asked for and reported.
    pub(crate) fn buffers(&self) -> SocketBuffers {
        self.buffers
    }

    /// Name of the congestion control; none for UDP or where the system does not tell.
    pub(crate) fn congestion(&self) -> Option<String> {
        match self.protocol {
            Protocol::Tcp => sys::congestion(self.socket()),
            Protocol::Udp | Protocol::Sctp => None,
        }
    }

    /// MTU that the kernel knows towards the peer.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        sys::path_mtu(self.socket(), self.peer.is_ipv6())
    }

    /// What the options asked for and the system did not give.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Client: sends a greeting; `false` if it did not leave, as the network is for now.
    pub(crate) fn greet(&self, greeting: &[u8]) -> io::Result<bool> {
        let send = || self.line.send(greeting);
        // The first call may fail for what the network said of an earlier greeting.
        match send().or_else(|_| send()) {
            Ok(()) => Ok(true),
            Err(error) if remedy(self.protocol, &error) == Remedy::GiveUp => Err(error),
            Err(_) => Ok(false),
        }
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn socket(&self) -> &Arc<Socket> {
        self.line.socket()
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }
}

/// A non-blocking socket for `remote` with its options, bound if wanted, and where to connect it.
fn open(
    remote: SocketAddr,
    local: LocalPoint,
    options: &SocketOptions,
) -> io::Result<(Socket, SocketAddr, Vec<Warning>)> {
    let (socket, warning) = match local {
        LocalPoint::Held(socket, warning) => (socket, warning),
        LocalPoint::Any => options.socket(Domain::for_address(remote))?,
        LocalPoint::At(address) => {
            let (socket, warning) = options.socket(Domain::for_address(remote))?;
            bind_local(&socket, address, options)?;
            (socket, warning)
        }
    };
    let mut warnings = Vec::from_iter(warning);
    warnings.extend(options.apply(&socket, canonical(remote).is_ipv6()));
    let (destination, warning) = options.destination(&socket, remote);
    warnings.extend(warning);
    Ok((socket, destination, warnings))
}

/// Binds a client's socket, and an SCTP one to its further addresses, too.
pub(super) fn bind_local(
    socket: &Socket,
    address: SocketAddr,
    options: &SocketOptions,
) -> io::Result<()> {
    socket.bind(&address.into())?;
    let further = options.sctp_addresses().iter().filter(|&&ip| ip != address.ip());
    let port = socket.local_addr()?.as_socket().map_or(0, |local| local.port());
    let further: Vec<_> = further.map(|&ip| SocketAddr::new(ip, port)).collect();
    if further.is_empty() { Ok(()) } else { sys::bind_sctp_also(socket, &further) }
}

/// IPv4 addresses in their own form, also when they come from an IPv6 socket.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => SocketAddr::new(ip, address.port()),
        _ => address,
    }
}
