//! A server and clients on one stack, over smoltcp's loopback, in virtual time. Nothing is done
//! before somebody says that it is due, so that a wake-up which was not asked for stops everything.

use std::net::SocketAddr;
use std::ops::Deref;

use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::test::TestSettings;
use linerate_embedded::smoltcp::Server;
use linerate_embedded::{Config, NotBegun, ServerStorage};
use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{
    ChecksumCapabilities, Device, DeviceCapabilities, Loopback, Medium, TxToken as _,
};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    HardwareAddress, IpAddress, IpCidr, IpEndpoint, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr,
    TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

use super::client::Client;
use super::loss::{Loss, Lottery};
use super::pair::{Break, MTU, Pair, Peer, STREAMS};
use super::random_peer::{Anarchy, OTHER_PORT};
use super::told::ServerTold;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) net: Net,
    pub(crate) server: Server<STREAMS>,
    pub(crate) told: ServerTold,
    peers: Vec<SocketHandle>,
    datagrams: Option<SocketHandle>,
}

/// The stack, for whoever opens sockets on it.
pub(crate) struct Net {
    pub(crate) cable: Cable,
    pub(crate) interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
    next_port: u16,
}

impl Pair for World {
    type Client = Client;

    const BREAKS: &'static [Break] = &[Break::Close, Break::Reset, Break::Forget, Break::Cut];

    fn new() -> Self {
        let now = Instant::from_secs(1);
        let mut cable = Cable { loopback: Loopback::new(Medium::Ip), losses: Lottery::new() };
        let config = smoltcp::iface::Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut cable, now);
        interface.update_ip_addrs(|addresses| {
            for host in [HOST, OTHER_HOST] {
                addresses.push(IpCidr::new(host, 8)).expect("two fit");
            }
        });
        let mut sockets = SocketSet::new(Vec::new());
        let storage = Box::leak(Box::new(ServerStorage::<STREAMS, 512, 8192, 8192>::new()));
        let metadata = Box::leak(Box::new([[udp::PacketMetadata::EMPTY; 16]; 2]));
        let buffers = storage.buffers(metadata);
        let server = Server::new(Config::default(), &mut sockets, buffers);
        let net = Net { cable, interface, sockets, next_port: 50_000 };
        let mut world = Self {
            now,
            net,
            server,
            told: ServerTold::default(),
            peers: Vec::new(),
            datagrams: None,
        };
        world.step(None);
        world
    }

    fn server(&self) -> SocketAddr {
        SocketAddr::new(SERVER.addr.into(), SERVER.port)
    }

    fn lose(&mut self, loss: Loss) {
        self.net.cable.losses.loss = loss;
    }

    fn try_start(
        &mut self,
        server: SocketAddr,
        settings: TestSettings,
    ) -> Result<Client, NotBegun> {
        Client::try_start(server.into(), self.now, &mut self.net, settings)
    }

    fn run_until(
        &mut self,
        mut client: Option<&mut Client>,
        seconds: u64,
        mut is_done: impl FnMut(&mut Self, Option<&Client>) -> bool,
    ) {
        let deadline = self.now + Duration::from_secs(seconds);
        while !is_done(self, client.as_deref()) {
            let phase = client.as_ref().map(|client| client.running());
            assert!(self.now < deadline, "not within {seconds} s: {phase:?}, {:?}", self.told);
            self.step(client.as_deref_mut());
        }
    }

    fn told(&self) -> impl Deref<Target = ServerTold> {
        &self.told
    }

    fn is_busy(&self) -> bool {
        self.server.is_busy()
    }

    fn interrupt_server(&mut self) {
        self.server.interrupt();
    }

    fn interrupt_client(&mut self, client: &mut Client) {
        client.interrupt();
    }

    fn break_off(&mut self, client: &mut Client, how: Break) {
        match how {
            Break::Close => client.close(&mut self.net),
            Break::Reset => client.reset(&mut self.net),
            Break::Forget => client.leave(&mut self.net),
            Break::Cut => self.lose(Loss::All),
        }
    }
}

impl Anarchy for World {
    fn open(&mut self) {
        let peer = self.net.connect();
        self.peers.push(peer);
    }

    fn listen(&mut self) {
        let buffer = || tcp::SocketBuffer::new(vec![0; 8192]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.listen(OTHER_PORT).expect("it was closed");
        self.peers.push(self.net.sockets.add(socket));
    }

    fn opened(&self) -> usize {
        self.peers.len()
    }

    fn say(&mut self, connection: usize, bytes: &[u8]) {
        // One that is not connected says nothing.
        let _ = self.peer(connection).send_slice(bytes);
    }

    fn hear(&mut self, connection: usize) {
        let peer = self.peer(connection);
        while peer.recv(|bytes| (bytes.len(), bytes.len())).is_ok_and(|count| count > 0) {}
    }

    fn close(&mut self, connection: usize) {
        self.peer(connection).close();
    }

    fn reset(&mut self, connection: usize) {
        self.peer(connection).abort();
    }

    fn forget(&mut self) {
        for peer in self.peers.drain(..).chain(self.datagrams.take()) {
            self.net.sockets.remove(peer);
        }
    }

    fn send_datagram(&mut self, bytes: &[u8]) {
        let handle = *self.datagrams.get_or_insert_with(|| self.net.datagrams(HOST));
        let socket = self.net.sockets.get_mut::<udp::Socket<'_>>(handle);
        // What there is no room for is lost.
        let _ = socket.send_slice(bytes, SERVER);
    }

    fn pass(&mut self, mut client: Option<&mut Client>, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.now < until {
            let goes_on = self.step(client.as_deref_mut());
            self.now = if goes_on { self.now.min(until) } else { until };
        }
    }
}

impl World {
    fn peer(&mut self, connection: usize) -> &mut tcp::Socket<'static> {
        self.net.sockets.get_mut(self.peers[connection])
    }

    /// Lets everybody do what is due, then goes on to when something is, at least a millisecond. `false`
    /// if nothing will ever be.
    pub(crate) fn step(&mut self, client: Option<&mut Client>) -> bool {
        let Self { now, net, server, told, .. } = self;
        let polled = net.interface.poll(*now, &mut net.cable, &mut net.sockets);
        let server_next = server.poll(*now, &mut net.sockets, told);
        let client_next = client.and_then(|client| client.poll(*now, net));
        let stack_next = net.interface.poll_at(*now, &net.sockets);
        let next = [server_next, client_next, stack_next].into_iter().flatten().min();
        let soonest = *now + Duration::from_millis(1);
        let frames_fly = polled == PollResult::SocketStateChanged;
        *now = next.filter(|_| !frames_fly).unwrap_or(soonest).max(soonest);
        next.is_some() || frames_fly
    }

    /// Steps for so many milliseconds, one by one, whatever is due.
    pub(crate) fn pass_with(&mut self, mut client: Option<&mut Client>, millis: u64) {
        for _ in 0..millis {
            let next = self.now + Duration::from_millis(1);
            self.step(client.as_deref_mut());
            self.now = next;
        }
    }

    /// Says what a client says up to its streams, which it never opens; `parameters` is its document.
    pub(crate) fn client_without_streams(&mut self, parameters: &str) -> SocketHandle {
        let handle = self.net.connect();
        self.run_until(None, 1, |world, _| {
            world.net.sockets.get::<tcp::Socket<'_>>(handle).may_send()
        });
        let length = (parameters.len() as u32).to_be_bytes();
        let cookie = Cookie::from_random([7; 36]);
        let words = [cookie.as_bytes(), &length[..], parameters.as_bytes()].concat();
        let socket = self.net.sockets.get_mut::<tcp::Socket<'_>>(handle);
        socket.send_slice(&words).expect("it is connected");
        handle
    }
}

impl Net {
    /// A socket that connects to the server's port.
    pub(crate) fn connect(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; 8192]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        let port = self.port();
        socket.connect(self.interface.context(), SERVER, port).expect("the port is free");
        self.sockets.add(socket)
    }

    /// Sends the first segment of a connection with the server, and is never heard of again.
    pub(crate) fn call_and_vanish(&mut self, now: Instant) {
        let from = Ipv4Address::new(127, 0, 0, 9);
        let IpAddress::Ipv4(to) = HOST else { unreachable!("it is one of IPv4") };
        let segment = TcpRepr {
            src_port: self.port(),
            dst_port: SERVER.port,
            control: TcpControl::Syn,
            seq_number: TcpSeqNumber(0),
            ack_number: None,
            window_len: 1000,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        };
        let packet = Ipv4Repr {
            src_addr: from,
            dst_addr: to,
            next_header: IpProtocol::Tcp,
            payload_len: segment.buffer_len(),
            hop_limit: 64,
        };
        let checksums = ChecksumCapabilities::default();
        let header_bytes = packet.buffer_len();
        let token = self.cable.transmit(now).expect("it takes all there is");
        token.consume(header_bytes + packet.payload_len, |bytes| {
            packet.emit(&mut Ipv4Packet::new_unchecked(&mut *bytes), &checksums);
            let mut room = TcpPacket::new_unchecked(&mut bytes[header_bytes..]);
            segment.emit(&mut room, &from.into(), &HOST, &checksums);
        });
    }

    /// A datagram socket at this address.
    pub(crate) fn datagrams(&mut self, address: IpAddress) -> SocketHandle {
        let buffer =
            || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], vec![0; 65536]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind((address, self.port())).expect("the port is free");
        self.sockets.add(socket)
    }

    /// A local port that nobody has had.
    pub(crate) fn port(&mut self) -> u16 {
        self.next_port += 1;
        self.next_port
    }
}

/// The loopback, with a fault in it.
pub(crate) struct Cable {
    loopback: Loopback,
    losses: Lottery,
}

impl Device for Cable {
    type RxToken<'a> = <Loopback as Device>::RxToken<'a>;
    type TxToken<'a> = <Loopback as Device>::TxToken<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = self.loopback.capabilities();
        capabilities.max_transmission_unit = MTU;
        capabilities
    }

    fn receive(&mut self, now: Instant) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        while self.losses.loses_the_next() {
            self.loopback.receive(now)?;
        }
        self.loopback.receive(now)
    }

    fn transmit(&mut self, now: Instant) -> Option<Self::TxToken<'_>> {
        self.loopback.transmit(now)
    }
}

/// Where the server and all clients are.
pub(crate) const HOST: IpAddress = IpAddress::v4(127, 0, 0, 1);
/// Where others are.
pub(crate) const OTHER_HOST: IpAddress = IpAddress::v4(10, 0, 0, 1);
pub(crate) const SERVER: IpEndpoint = IpEndpoint { addr: HOST, port: 5201 };
