//! Two embassy-net stacks with a cable between them, a server on one and clients on the other, in virtual
//! time.

use std::cell::{Ref, RefCell};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Deref;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use embassy_net::tcp::TcpSocket;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{Config, Ipv4Cidr, Ipv6Cidr, Stack, StackResources};
use embassy_net_driver_channel::driver::{HardwareAddress, LinkState};
use embassy_net_driver_channel::{Runner, State};
use linerate_embedded::embassy;
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::session::{ClientConfig, Phase};
use linerate_embedded::engine::test::TestSettings;
use linerate_embedded::{ClientStorage, NotBegun, ServerStorage};

use super::clock;
use super::loss::{Loss, Lottery};
use super::pair::{Break, MTU, Pair, Peer, STREAMS};
use super::random_peer::{Anarchy, OTHER_PORT};
use super::tasks::{Bell, Tasks};
use super::told::{ClientTold, ServerTold};

pub(crate) struct World {
    tasks: Tasks,
    /// The clients' stack.
    stack: Stack<'static>,
    server_stack: Stack<'static>,
    server: Rc<RefCell<embassy::Server<'static, STREAMS>>>,
    server_bell: Bell,
    told: Rc<RefCell<ServerTold>>,
    losses: Rc<RefCell<Lottery>>,
    address: IpAddr,
    clients: u8,
    peers: Vec<TcpSocket<'static>>,
    datagrams: Option<UdpSocket<'static>>,
}

pub(crate) struct Client {
    /// None once it is gone.
    client: Rc<RefCell<Option<embassy::Client<'static, 'static, STREAMS>>>>,
    told: Rc<RefCell<ClientTold>>,
    bell: Bell,
}

impl World {
    pub(crate) fn over_ipv6() -> Self {
        Self::at(SERVER_HOST.v6.into())
    }

    fn at(address: IpAddr) -> Self {
        let mut tasks = Tasks::default();
        let (server_stack, server_port) = plug_in(&mut tasks, SERVER_HOST);
        let (stack, client_port) = plug_in(&mut tasks, CLIENT_HOST);
        let losses = Rc::new(RefCell::new(Lottery::new()));
        tasks.spawn(Cable::new([server_port, client_port], Rc::clone(&losses)).run());
        let storage = Box::leak(Box::new(ServerStorage::<STREAMS, 512, 8192, 8192>::new()));
        let metadata = Box::leak(Box::new([[PacketMetadata::EMPTY; 16]; 2]));
        let config = linerate_embedded::Config::default();
        let server = embassy::Server::new(config, server_stack, storage.buffers(metadata));
        let server = Rc::new(RefCell::new(server));
        let told = Rc::new(RefCell::new(ServerTold::default()));
        let server_bell = tasks.spawn(serve(Rc::clone(&server), Rc::clone(&told)));
        Self {
            tasks,
            stack,
            server_stack,
            server,
            server_bell,
            told,
            losses,
            address,
            clients: 0,
            peers: Vec::new(),
            datagrams: None,
        }
    }
}

impl Pair for World {
    type Client = Client;

    const BREAKS: &'static [Break] = &[Break::Forget, Break::Cut];

    fn new() -> Self {
        Self::at(SERVER_HOST.v4.into())
    }

    fn server(&self) -> SocketAddr {
        SocketAddr::new(self.address, 5201)
    }

    fn lose(&mut self, loss: Loss) {
        self.losses.borrow_mut().loss = loss;
    }

    fn try_start(
        &mut self,
        server: SocketAddr,
        settings: TestSettings,
    ) -> Result<Client, NotBegun> {
        let storage = Box::leak(Box::new(ClientStorage::<STREAMS, 512, 8192, 8192>::new()));
        let metadata = Box::leak(Box::new([[[PacketMetadata::EMPTY; 16]; 2]; STREAMS]));
        let mut client = embassy::Client::new(MTU, self.stack, storage.buffers(metadata));
        self.clients = self.clients.wrapping_add(1);
        let cookie = Cookie::from_random([self.clients; 36]);
        client.start(server, ClientConfig::new(settings), cookie)?;
        let client = Rc::new(RefCell::new(Some(client)));
        let told = Rc::new(RefCell::new(ClientTold::default()));
        let bell = self.tasks.spawn(run(Rc::clone(&client), Rc::clone(&told)));
        Ok(Client { client, told, bell })
    }

    fn run_until(
        &mut self,
        client: Option<&mut Client>,
        seconds: u64,
        mut is_done: impl FnMut(&mut Self, Option<&Client>) -> bool,
    ) {
        let deadline = clock::now() + seconds * 1_000_000;
        while !is_done(self, client.as_deref()) {
            let goes_on = clock::now() < deadline && self.tasks.step();
            let client = client.as_ref().map(|client| (client.running(), client.told.borrow()));
            assert!(goes_on, "not within {seconds} s: {client:?}, {:?}", self.told.borrow());
        }
    }

    fn told(&self) -> impl Deref<Target = ServerTold> {
        self.told.borrow()
    }

    fn is_busy(&self) -> bool {
        self.server.borrow().is_busy()
    }

    fn interrupt_server(&mut self) {
        self.server.borrow_mut().interrupt();
        self.server_bell.ring();
    }

    fn interrupt_client(&mut self, client: &mut Client) {
        if let Some(inner) = &mut *client.client.borrow_mut() {
            inner.interrupt();
        }
        client.bell.ring();
    }

    fn break_off(&mut self, client: &mut Client, how: Break) {
        match how {
            Break::Forget => client.leave(),
            Break::Cut => self.lose(Loss::All),
            Break::Close | Break::Reset => unreachable!("the client's sockets are its own"),
        }
    }
}

impl Anarchy for World {
    fn open(&mut self) {
        let mut peer = peer(self.stack);
        let begun = once(peer.connect(self.server()));
        assert!(begun.is_none(), "there is a way to the server");
        self.peers.push(peer);
    }

    fn listen(&mut self) {
        let mut peer = peer(self.server_stack);
        let accepted = once(peer.accept(OTHER_PORT));
        assert!(accepted.is_none(), "it was closed");
        self.peers.push(peer);
    }

    fn opened(&self) -> usize {
        self.peers.len()
    }

    fn say(&mut self, connection: usize, bytes: &[u8]) {
        // One that is not connected says nothing.
        let _ = once(self.peers[connection].write(bytes));
    }

    fn hear(&mut self, connection: usize) {
        let mut bytes = [0; 8192];
        while matches!(once(self.peers[connection].read(&mut bytes)), Some(Ok(1..))) {}
    }

    fn close(&mut self, connection: usize) {
        self.peers[connection].close();
    }

    fn reset(&mut self, connection: usize) {
        self.peers[connection].abort();
    }

    fn forget(&mut self) {
        self.peers.clear();
        self.datagrams = None;
    }

    fn send_datagram(&mut self, bytes: &[u8]) {
        let peer = self.datagrams.get_or_insert_with(|| {
            let buffer = || Box::leak(Box::new([0; 8192]));
            let metadata = || Box::leak(Box::new([PacketMetadata::EMPTY; 16]));
            let mut peer = UdpSocket::new(self.stack, metadata(), buffer(), metadata(), buffer());
            peer.bind(0).expect("it was closed");
            peer
        });
        // What there is no room for is lost.
        let _ = once(peer.send_to(bytes, SocketAddr::new(self.address, 5201)));
    }

    fn pass(&mut self, _client: Option<&mut Client>, millis: u64) {
        let until = clock::now() + millis * 1000;
        embassy_time_driver::schedule_wake(until, Waker::noop());
        while clock::now() < until {
            assert!(self.tasks.step());
        }
    }
}

fn peer(stack: Stack<'static>) -> TcpSocket<'static> {
    let buffer = || Box::leak(Box::new([0; 8192]));
    TcpSocket::new(stack, buffer(), buffer())
}

/// What comes of it at once.
fn once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl Peer for Client {
    fn told(&self) -> impl Deref<Target = ClientTold> {
        self.told.borrow()
    }

    fn running(&self) -> Option<Phase> {
        self.client.borrow().as_ref().and_then(embassy::Client::phase)
    }

    fn is_closed(&self) -> bool {
        !self.client.borrow().as_ref().is_some_and(embassy::Client::is_busy)
    }
}

impl Client {
    /// Drops its future and its sockets.
    fn leave(&self) {
        self.client.borrow_mut().take();
        self.bell.ring();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Runs a server. Each poll has a future of its own, which is as good as one for all.
async fn serve(
    server: Rc<RefCell<embassy::Server<'static, STREAMS>>>,
    told: Rc<RefCell<ServerTold>>,
) {
    poll_fn(|cx| {
        let (mut server, mut told) = (server.borrow_mut(), told.borrow_mut());
        let _ = pin!(server.run(&mut *told)).poll(cx);
        Poll::Pending
    })
    .await
}

/// Runs a client in the same way, until it has ended or is gone.
async fn run(
    client: Rc<RefCell<Option<embassy::Client<'static, 'static, STREAMS>>>>,
    told: Rc<RefCell<ClientTold>>,
) {
    poll_fn(|cx| match &mut *client.borrow_mut() {
        Some(client) => pin!(client.run(&mut *told.borrow_mut())).poll(cx),
        None => Poll::Ready(()),
    })
    .await
}

/// Makes a stack that runs, and returns the end of the cable that belongs to it.
fn plug_in(tasks: &mut Tasks, host: Host) -> (Stack<'static>, Port) {
    let state = Box::leak(Box::new(State::<FRAME, 8, 8>::new()));
    let mac = HardwareAddress::Ethernet([0x02, 0, 0, 0, 0, host.v4.octets()[3]]);
    let (mut port, device) = embassy_net_driver_channel::new(state, mac);
    port.set_link_state(LinkState::Up);
    let mut config = Config::default();
    config.ipv4 = embassy_net::ConfigV4::Static(embassy_net::StaticConfigV4 {
        address: Ipv4Cidr::new(host.v4, 24),
        gateway: None,
        dns_servers: Default::default(),
    });
    config.ipv6 = embassy_net::ConfigV6::Static(embassy_net::StaticConfigV6 {
        address: Ipv6Cidr::new(host.v6, 64),
        gateway: None,
        dns_servers: Default::default(),
    });
    let resources = Box::leak(Box::new(StackResources::<16>::new()));
    let seed = host.v4.to_bits().into();
    let (stack, mut runner) = embassy_net::new(device, config, resources, seed);
    tasks.spawn(async move { runner.run().await });
    (stack, port)
}

type Port = Runner<'static, FRAME>;

/// A cable whose two directions carry 20 Mbit/s each, one frame after the other.
struct Cable {
    ports: [Port; 2],
    /// What is on its way from each port, and when its last bit arrives.
    flying: [Option<(Vec<u8>, u64)>; 2],
    losses: Rc<RefCell<Lottery>>,
}

impl Cable {
    fn new(ports: [Port; 2], losses: Rc<RefCell<Lottery>>) -> Self {
        Self { ports, flying: [None, None], losses }
    }

    async fn run(mut self) {
        poll_fn(|cx| {
            (0..2).for_each(|from| self.carry(cx, from));
            Poll::Pending
        })
        .await
    }

    /// Carries frames from one port to the other until there is none, or the next takes its time.
    fn carry(&mut self, cx: &mut Context<'_>, from: usize) {
        loop {
            if let Some((_, arrives)) = &self.flying[from]
                && clock::now() < *arrives
            {
                embassy_time_driver::schedule_wake(*arrives, cx.waker());
                return;
            }
            if let Some((frame, _)) = self.flying[from].take()
                && !self.losses.borrow_mut().loses_the_next()
            {
                // One that nobody fetches in time is lost, as in a controller.
                let port = &mut self.ports[1 - from];
                if let Some(room) = port.try_rx_buf() {
                    room[..frame.len()].copy_from_slice(&frame);
                    port.rx_done(frame.len());
                }
            }
            let Poll::Ready(frame) = self.ports[from].poll_tx_buf(cx) else { return };
            let takes = (frame.len() as u64 * 8).div_ceil(MEGABITS_PER_SEC);
            self.flying[from] = Some((frame.to_vec(), clock::now() + takes));
            self.ports[from].tx_done();
        }
    }
}

/// A host's addresses.
#[derive(Debug, Clone, Copy)]
struct Host {
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

const SERVER_HOST: Host =
    Host { v4: Ipv4Addr::new(10, 0, 2, 15), v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x15) };
const CLIENT_HOST: Host =
    Host { v4: Ipv4Addr::new(10, 0, 2, 2), v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2) };

/// With the header of Ethernet.
const FRAME: usize = MTU + 14;
const MEGABITS_PER_SEC: u64 = 20;
