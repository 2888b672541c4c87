//! A server and clients on one stack, over smoltcp's loopback, in virtual time. Nothing is done
//! before somebody says that it is due, so that a wake-up which was not asked for stops everything.

use std::net::SocketAddr;

use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::StreamSummary;
use linerate_embedded::engine::session::{Ending, Event};
use linerate_embedded::engine::test::TestSettings;
use linerate_embedded::smoltcp::Server;
use linerate_embedded::{Config, Observer, Progress, ServerStorage, TurnedAway};
use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Loopback, Medium};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpEndpoint};

use super::client::Client;

pub(crate) const STREAMS: usize = 2;
pub(crate) const MTU: usize = 1500;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) net: Net,
    pub(crate) server: Server<STREAMS>,
    pub(crate) told: Told,
}

/// The stack, for whoever opens sockets on it.
pub(crate) struct Net {
    pub(crate) cable: Cable,
    pub(crate) interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
    next_port: u16,
}

/// What the server told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) events: Vec<Event>,
    pub(crate) endings: Vec<Ending>,
    pub(crate) summaries: Vec<StreamSummary>,
    pub(crate) turned_away: Vec<TurnedAway>,
}

impl World {
    pub(crate) fn new() -> Self {
        let now = Instant::from_secs(1);
        let mut cable = Cable { loopback: Loopback::new(Medium::Ip), loss: Loss::None, seed: 1 };
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
        let mut world = Self { now, net, server, told: Told::default() };
        world.step(None);
        world
    }

    /// Lets everybody do what is due, then goes on to when something is, at least a millisecond.
    pub(crate) fn step(&mut self, client: Option<&mut Client>) {
        let Self { now, net, server, told } = self;
        let polled = net.interface.poll(*now, &mut net.cable, &mut net.sockets);
        let server_next = server.poll(*now, &mut net.sockets, told);
        let client_next = client.and_then(|client| client.poll(*now, net));
        let stack_next = net.interface.poll_at(*now, &net.sockets);
        let next = [server_next, client_next, stack_next].into_iter().flatten().min();
        let soonest = *now + Duration::from_millis(1);
        let frames_fly = polled == PollResult::SocketStateChanged;
        *now = next.filter(|_| !frames_fly).unwrap_or(soonest).max(soonest);
    }

    /// Steps for so many milliseconds, one by one, whatever is due.
    pub(crate) fn pass(&mut self, mut client: Option<&mut Client>, millis: u64) {
        for _ in 0..millis {
            let next = self.now + Duration::from_millis(1);
            self.step(client.as_deref_mut());
            self.now = next;
        }
    }

    /// Steps until `is_done`, which must come within so many seconds of virtual time.
    pub(crate) fn run_until(
        &mut self,
        mut client: Option<&mut Client>,
        seconds: u64,
        mut is_done: impl FnMut(&mut Self, Option<&Client>) -> bool,
    ) {
        let deadline = self.now + Duration::from_secs(seconds);
        while !is_done(self, client.as_deref()) {
            let phase = client.as_ref().map(|client| client.phase());
            assert!(self.now < deadline, "not within {seconds} s: {phase:?}, {:?}", self.told);
            self.step(client.as_deref_mut());
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

    /// Runs a test to its end on both sides and returns the client.
    pub(crate) fn run_test(&mut self, settings: TestSettings) -> Client {
        let mut client = Client::start(self.now, &mut self.net, settings);
        let earlier = self.told.endings.len();
        self.run_until(Some(&mut client), 60, |world, client| {
            client.is_some_and(Client::is_over) && world.told.endings.len() > earlier
        });
        self.run_until(Some(&mut client), 15, |_, client| {
            client.is_some_and(|client| client.is_closed())
        });
        client.leave(&mut self.net);
        client
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

impl Observer<STREAMS> for Told {
    fn test_began(&mut self, _peer: SocketAddr, _cookie: Cookie) {
        self.events.clear();
        self.summaries.clear();
    }

    fn test_event(&mut self, event: Event, test: Progress<'_, STREAMS>) {
        self.events.push(event);
        if let Event::Finished(ending) = event {
            self.endings.push(ending);
            let summaries = (0..STREAMS).filter_map(|index| test.accounts.summary(index));
            self.summaries = summaries.collect();
        }
    }

    fn turned_away(&mut self, _peer: Option<SocketAddr>, why: TurnedAway) {
        self.turned_away.push(why);
    }
}

/// The loopback, with a fault in it.
pub(crate) struct Cable {
    loopback: Loopback,
    pub(crate) loss: Loss,
    seed: u64,
}

/// Which frames are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    None,
    /// One of so many, by chance.
    OneOf(u64),
    All,
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
        while self.loses_the_next() {
            self.loopback.receive(now)?;
        }
        self.loopback.receive(now)
    }

    fn transmit(&mut self, now: Instant) -> Option<Self::TxToken<'_>> {
        self.loopback.transmit(now)
    }
}

impl Cable {
    fn loses_the_next(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::All => true,
            Loss::OneOf(count) => {
                // Knuth's multiplier; the high bits are random enough to lose frames.
                self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (self.seed >> 33).is_multiple_of(count)
            }
        }
    }
}

/// Where the server and all clients are.
pub(crate) const HOST: IpAddress = IpAddress::v4(127, 0, 0, 1);
/// Where others are.
pub(crate) const OTHER_HOST: IpAddress = IpAddress::v4(10, 0, 0, 1);
pub(crate) const SERVER: IpEndpoint = IpEndpoint { addr: HOST, port: 5201 };
