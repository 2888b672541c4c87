//! What the sockets of a smoltcp set are to an endpoint: its [`Net`].

use core::net::{IpAddr, SocketAddr};

use smoltcp::iface::{Context, SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, SendError, UdpMetadata};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::Duration;
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::FIRST_PORT;
use crate::net::{Net, Path, Received, TcpState, Unsent};
use crate::storage::{TcpBuffers, UdpBuffers};

/// Where the sockets of an endpoint are in the set: of TCP `N` for streams and `D` for control, `U` of UDP.
#[derive(Debug)]
pub(super) struct Handles<const N: usize, const D: usize, const U: usize> {
    streams: [SocketHandle; N],
    control: [SocketHandle; D],
    udp: [SocketHandle; U],
}

/// The set, and which of it belongs to the endpoint.
pub(super) struct Sockets<'p, 's> {
    set: &'p mut SocketSet<'s>,
    streams: &'p [SocketHandle],
    control: &'p [SocketHandle],
    udp: &'p [SocketHandle],
    dialer: Option<Dialer<'p>>,
}

/// What it takes to connect.
pub(super) struct Dialer<'p> {
    pub(super) context: &'p mut Context,
    /// The next port of this end.
    pub(super) port: &'p mut u16,
}

impl<const N: usize, const D: usize, const U: usize> Handles<N, D, U> {
    /// Puts the sockets into the set. Of those that listen, smoltcp gives a connection to the one that
    /// stands first.
    pub(super) fn new<'a>(
        set: &mut SocketSet<'a>,
        streams: [TcpBuffers<'a>; N],
        control: [TcpBuffers<'a>; D],
        udp: [UdpBuffers<'a, PacketMetadata>; U],
    ) -> Self {
        let mut add = |buffers: TcpBuffers<'a>| {
            let receive = tcp::SocketBuffer::new(buffers.receive);
            let mut socket = tcp::Socket::new(receive, tcp::SocketBuffer::new(buffers.transmit));
            socket.set_keep_alive(Some(KEEPALIVE));
            socket.set_timeout(Some(PEER_TIMEOUT));
            set.add(socket)
        };
        let (streams, control) = (streams.map(&mut add), control.map(&mut add));
        let udp = udp.map(|buffers| {
            let receive = PacketBuffer::new(buffers.receive_metadata, buffers.receive);
            let transmit = PacketBuffer::new(buffers.transmit_metadata, buffers.transmit);
            set.add(udp::Socket::new(receive, transmit))
        });
        Self { streams, control, udp }
    }
}

impl<'p, 's> Sockets<'p, 's> {
    pub(super) fn new<const N: usize, const D: usize, const U: usize>(
        set: &'p mut SocketSet<'s>,
        handles: &'p Handles<N, D, U>,
        dialer: Option<Dialer<'p>>,
    ) -> Self {
        let Handles { streams, control, udp } = handles;
        Self { set, streams, control, udp, dialer }
    }

    fn tcp_handle(&self, socket: usize) -> SocketHandle {
        match socket.checked_sub(self.streams.len()) {
            Some(door) => self.control[door],
            None => self.streams[socket],
        }
    }

    fn tcp(&self, socket: usize) -> &tcp::Socket<'s> {
        self.set.get(self.tcp_handle(socket))
    }

    fn tcp_mut(&mut self, socket: usize) -> &mut tcp::Socket<'s> {
        self.set.get_mut(self.tcp_handle(socket))
    }

    fn udp_mut(&mut self, socket: usize) -> &mut udp::Socket<'s> {
        self.set.get_mut(self.udp[socket])
    }
}

impl Net for Sockets<'_, '_> {
    fn state(&self, socket: usize) -> TcpState {
        match self.tcp(socket).state() {
            // What TIME-WAIT guards against, a late segment, the stack answers with a reset.
            tcp::State::TimeWait | tcp::State::Closed => TcpState::Closed,
            tcp::State::Listen => TcpState::Listening,
            tcp::State::SynSent | tcp::State::SynReceived => TcpState::Opening,
            _ => TcpState::Open,
        }
    }

    fn may_send(&self, socket: usize) -> bool {
        self.tcp(socket).may_send()
    }

    fn peer(&self, socket: usize) -> Option<SocketAddr> {
        self.tcp(socket).remote_endpoint().map(address)
    }

    fn listen(&mut self, socket: usize, port: u16) {
        let socket = self.tcp_mut(socket);
        socket.abort();
        socket.listen(port).expect("the socket was closed, and the port is not zero");
    }

    fn connect(&mut self, socket: usize, to: SocketAddr) -> bool {
        let handle = self.tcp_handle(socket);
        let Some(Dialer { context, port }) = &mut self.dialer else { return false };
        let local = core::mem::replace(*port, FIRST_PORT | port.wrapping_add(1));
        let socket = self.set.get_mut::<tcp::Socket<'_>>(handle);
        socket.abort();
        socket.connect(context, to, local).is_ok()
    }

    fn set_no_delay(&mut self, socket: usize, is_on: bool) {
        self.tcp_mut(socket).set_nagle_enabled(!is_on);
    }

    fn receive(&mut self, socket: usize, take: impl FnOnce(&[u8]) -> usize) -> Received {
        let socket = self.tcp_mut(socket);
        if socket.can_recv() && socket.recv(|bytes| (take(bytes), ())).is_ok() {
            Received::Bytes
        } else if socket.may_recv() {
            Received::Nothing
        } else {
            Received::End
        }
    }

    fn send(&mut self, socket: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let socket = self.tcp_mut(socket);
        socket.can_send() && socket.send(|room| (fill(room), ())).is_ok()
    }

    fn unacknowledged_bytes(&self, socket: usize) -> usize {
        self.tcp(socket).send_queue()
    }

    fn close(&mut self, socket: usize) {
        self.tcp_mut(socket).close();
    }

    fn abort(&mut self, socket: usize) {
        self.tcp_mut(socket).abort();
    }

    fn bind(&mut self, socket: usize, port: u16) {
        let port = match &mut self.dialer {
            Some(Dialer { port: next, .. }) if port == 0 => {
                core::mem::replace(*next, FIRST_PORT | next.wrapping_add(1))
            }
            _ => port,
        };
        let socket = self.udp_mut(socket);
        socket.close();
        socket.bind(port).expect("the socket was closed, and the port is not zero");
    }

    fn unbind(&mut self, socket: usize) {
        self.udp_mut(socket).close();
    }

    fn receive_datagram(&mut self, socket: usize, take: impl FnOnce(&[u8], Path)) -> bool {
        let arrived = self.udp_mut(socket).recv();
        arrived.map(|(datagram, from)| take(datagram, path(from))).is_ok()
    }

    fn send_datagram(
        &mut self,
        socket: usize,
        to: Path,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Unsent> {
        let meta = UdpMetadata {
            local_address: to.local.map(IpAddress::from),
            ..UdpMetadata::from(IpEndpoint::from(to.peer))
        };
        match self.udp_mut(socket).send(bytes, meta) {
            Ok(room) => {
                fill(room);
                Ok(())
            }
            Err(SendError::BufferFull) => Err(Unsent::Full),
            Err(SendError::Unaddressable) => Err(Unsent::Unreachable),
        }
    }

    fn datagram_room(&self, socket: usize) -> usize {
        let socket = self.set.get::<udp::Socket<'_>>(self.udp[socket]);
        socket.payload_recv_capacity().min(socket.payload_send_capacity())
    }
}

pub(super) fn address(endpoint: IpEndpoint) -> SocketAddr {
    SocketAddr::new(endpoint.addr.into(), endpoint.port)
}

fn path(from: UdpMetadata) -> Path {
    Path { peer: address(from.endpoint), local: from.local_address.map(IpAddr::from) }
}

/// A peer that answers nothing for so long is gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a silent peer is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(5);
