//! What the sockets of an embassy-net stack are to an endpoint: its [`Net`]. Their operations are futures;
//! here each is asked once, so that it is done now or not at all, and the task's waker goes to the
//! sockets when all is done.

use core::future::Future;
use core::net::{IpAddr, SocketAddr};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use embassy_net::tcp::{self, ConnectError, TcpSocket};
use embassy_net::udp::{PacketMetadata, UdpMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_time::Duration;

use crate::net::{Net, Path, Received, TcpState, Unsent};
use crate::storage::{TcpBuffers, UdpBuffers};

/// The sockets of an endpoint: of TCP `N` for streams and `D` for control, `U` of UDP.
pub(super) struct Sockets<'d, const N: usize, const D: usize, const U: usize> {
    streams: [TcpSocket<'d>; N],
    control: [TcpSocket<'d>; D],
    udp: [UdpSocket<'d>; U],
}

impl<'d, const N: usize, const D: usize, const U: usize> Sockets<'d, N, D, U> {
    /// Of those that listen, the stack gives a connection to the one that was made first.
    pub(super) fn new(
        stack: Stack<'d>,
        streams: [TcpBuffers<'d>; N],
        control: [TcpBuffers<'d>; D],
        udp: [UdpBuffers<'d, PacketMetadata>; U],
    ) -> Self {
        let tcp = |buffers: TcpBuffers<'d>| {
            let mut socket = TcpSocket::new(stack, buffers.receive, buffers.transmit);
            socket.set_keep_alive(Some(KEEPALIVE));
            socket.set_timeout(Some(PEER_TIMEOUT));
            socket
        };
        let (streams, control) = (streams.map(tcp), control.map(tcp));
        let udp = udp.map(|buffers| {
            let UdpBuffers { receive_metadata, receive, transmit_metadata, transmit } = buffers;
            UdpSocket::new(stack, receive_metadata, receive, transmit_metadata, transmit)
        });
        Self { streams, control, udp }
    }

    /// Has the sockets wake the task when one of them has something to do.
    pub(super) fn wake(&mut self, cx: &mut Context<'_>) {
        // Whether it is ready is found out at the next poll, and one that is has nothing to wake for.
        for socket in self.streams.iter_mut().chain(&mut self.control) {
            let _ = pin!(socket.wait_read_ready()).poll(cx);
            let _ = pin!(socket.wait_write_ready()).poll(cx);
            // What is sent comes to be acknowledged.
            let _ = pin!(socket.flush()).poll(cx);
        }
        for socket in &mut self.udp {
            let _ = socket.poll_recv_ready(cx);
            // One that takes a shorter datagram is ready, though the next may not fit.
            let _ = pin!(socket.flush()).poll(cx);
        }
    }

    fn tcp(&self, socket: usize) -> &TcpSocket<'d> {
        match socket.checked_sub(N) {
            Some(door) => &self.control[door],
            None => &self.streams[socket],
        }
    }

    fn tcp_mut(&mut self, socket: usize) -> &mut TcpSocket<'d> {
        match socket.checked_sub(N) {
            Some(door) => &mut self.control[door],
            None => &mut self.streams[socket],
        }
    }
}

impl<const N: usize, const D: usize, const U: usize> Net for Sockets<'_, N, D, U> {
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
        let accepted = once(socket.accept(port));
        assert!(accepted.is_none(), "the socket was closed, and the port is not zero");
    }

    fn connect(&mut self, socket: usize, to: SocketAddr) -> bool {
        let socket = self.tcp_mut(socket);
        socket.abort();
        once(socket.connect(IpEndpoint::from(to))) != Some(Err(ConnectError::NoRoute))
    }

    fn set_no_delay(&mut self, socket: usize, is_on: bool) {
        self.tcp_mut(socket).set_nagle_enabled(!is_on);
    }

    fn receive(&mut self, socket: usize, take: impl FnOnce(&[u8]) -> usize) -> Received {
        match once(self.tcp_mut(socket).read_with(|bytes| (take(bytes), ()))) {
            Some(Ok(())) => Received::Bytes,
            Some(Err(_)) => Received::End,
            None => Received::Nothing,
        }
    }

    fn send(&mut self, socket: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let socket = self.tcp_mut(socket);
        once(socket.write_with(|room| (fill(room), ()))) == Some(Ok(()))
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
        let socket = &mut self.udp[socket];
        socket.close();
        socket.bind(port).expect("the socket was closed");
    }

    fn unbind(&mut self, socket: usize) {
        self.udp[socket].close();
    }

    fn receive_datagram(&mut self, socket: usize, take: impl FnOnce(&[u8], Path)) -> bool {
        let socket = &mut self.udp[socket];
        once(socket.recv_from_with(|datagram, from| take(datagram, path(from)))).is_some()
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
        let fill = |room: &mut [u8]| (bytes, fill(&mut room[..bytes]));
        match once(self.udp[socket].send_to_with(bytes, meta, fill)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(Unsent::Unreachable),
            None => Err(Unsent::Full),
        }
    }

    fn datagram_room(&self, socket: usize) -> usize {
        let socket = &self.udp[socket];
        socket.payload_recv_capacity().min(socket.payload_send_capacity())
    }
}

/// What comes of it at once.
fn once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn address(endpoint: IpEndpoint) -> SocketAddr {
    SocketAddr::new(endpoint.addr.into(), endpoint.port)
}

fn path(from: UdpMetadata) -> Path {
    Path { peer: address(from.endpoint), local: from.local_address.map(IpAddr::from) }
}

/// A peer that answers nothing for so long is gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a silent peer is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(5);
