//! The server's UDP port. A listener stays open for all tests and takes greetings; each greeting
//! becomes a socket of its own, bound to the address the client called and connected to the
//! client, or a place at the listener itself where the system does not sort what comes by such sockets.
//! Greetings that name their test go to it. Those of stock clients name nothing, so one such
//! test of a client address at a time is in set-up; whatever nobody awaits is dropped.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting::{self, NamedGreeting};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::datagrams::GREETING_ROOM;
use super::listen::bind;
use super::options::enlarge_for_all;
use super::socket::canonical;
use super::sorter::Sorter;
use super::udp_setup::{NamedSetUp, SetUp};
use super::{DataSocket, Listen, SocketOptions};
use crate::sys::{self, Arrived, Route};

/// The open port. Dropping it closes the listener; streams that were set up stay.
#[derive(Debug)]
pub(crate) struct UdpDoor {
    shared: Arc<Shared>,
    /// Of greetings alone, where streams have sockets of their own.
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(super) struct Shared {
    local: SocketAddr,
    /// Where all streams share the listener.
    sorter: OnceLock<Arc<Sorter>>,
    /// Whose datagrams are taken.
    pub(super) guests: Guests,
    awaited: Mutex<Awaited>,
    /// One lock a client address.
    turns: Mutex<HashMap<IpAddr, Weak<tokio::sync::Mutex<()>>>>,
}

/// From where the streams of a test may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Guests {
    /// From the address of its control connection only: a server sends datagrams to nobody else.
    #[default]
    OfTheControlConnection,
    /// From everywhere, if the greeting names the test.
    Anyone,
}

/// What the streams have for sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sockets {
    /// Each its own, to which the system brings what its peer sends.
    OneEach,
    /// All the listener, which is sorted here.
    OneForAll,
}

impl Default for Sockets {
    fn default() -> Self {
        if sys::SORTS_UDP_PORT { Self::OneEach } else { Self::OneForAll }
    }
}

/// The set-ups in progress.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// Those of stock clients, by canonical address.
    pub(super) by_address: HashMap<IpAddr, mpsc::Sender<Arrived>>,
    /// Those whose clients name them.
    pub(super) by_cookie: HashMap<Cookie, mpsc::Sender<(u16, Arrived)>>,
}

impl UdpDoor {
    /// Opens the port. Must be called within a tokio runtime.
    ///
    /// `device` is the network device that it listens on, if not on all.
    pub(crate) fn bind(listen: Listen, device: Option<&str>, guests: Guests) -> io::Result<Self> {
        Self::bind_with(listen, device, guests, Sockets::default())
    }

    fn bind_with(
        listen: Listen,
        device: Option<&str>,
        guests: Guests,
        sockets: Sockets,
    ) -> io::Result<Self> {
        let prepare = |socket: &Socket| {
            if sockets == Sockets::OneEach {
                sys::share_port(socket)?;
            }
            device.map_or(Ok(()), |device| sys::bind_to_device(socket, device))
        };
        let socket = listen.bind(Type::DGRAM, &prepare)?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        // Without it, replies come from the address that the route to the client suggests.
        let _ = sys::request_destination(&socket, local.is_ipv6());
        let (sorter, awaited, turns) = Default::default();
        let shared = Arc::new(Shared { local, sorter, guests, awaited, turns });
        let door = shared.clone();
        let reader = match sockets {
            Sockets::OneEach => Some(tokio::spawn(read(UdpSocket::from_std(socket.into())?, door))),
            Sockets::OneForAll => {
                enlarge_for_all(&socket);
                let greet = move |datagram: &[u8], arrived| door.dispatch(datagram, arrived);
                let opened = Sorter::open(socket, greet)?;
                let _first = shared.sorter.set(opened);
                None
            }
        };
        Ok(Self { shared, reader })
    }

    /// The address it listens on.
    #[cfg(test)]
    pub(crate) fn local(&self) -> SocketAddr {
        self.shared.local
    }

    /// Waits until no other stock client of this address is in set-up, and takes its greetings
    /// from then on, until the returned value is dropped.
    pub(crate) async fn set_up(&self, client: IpAddr) -> SetUp {
        let client = client.to_canonical();
        let turn = self.shared.turn(client).lock_owned().await;
        let (sender, greetings) = mpsc::channel(MOST_GREETINGS);
        self.shared.awaited().by_address.insert(client, sender);
        SetUp::new(client, self.shared.clone(), greetings, turn)
    }

    /// Takes the greetings that name this test, from now on until the returned value is dropped. No
    /// other test has the same cookie.
    pub(crate) fn set_up_named(&self, client: IpAddr, cookie: Cookie, count: usize) -> NamedSetUp {
        let (sender, greetings) = mpsc::channel(MOST_GREETINGS);
        self.shared.awaited().by_cookie.insert(cookie, sender);
        let client = client.to_canonical();
        NamedSetUp::new(client, cookie, count, self.shared.clone(), greetings)
    }
}

impl Drop for UdpDoor {
    fn drop(&mut self) {
        self.reader.iter().for_each(JoinHandle::abort);
        self.shared.sorter.get().inspect(|sorter| sorter.close());
    }
}

impl Shared {
    fn turn(&self, client: IpAddr) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&client).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(client, Arc::downgrade(&turn));
        turn
    }

    pub(super) fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a greeting to whoever awaits it. Data that outlived its stream is none, and no test
    /// expects more greetings than it has room for.
    fn dispatch(&self, datagram: &[u8], arrived: Arrived) {
        let awaited = self.awaited();
        if let Some(NamedGreeting { cookie, index }) = NamedGreeting::of_hello(datagram) {
            if let Some(set_up) = awaited.by_cookie.get(&cookie) {
                let _ = set_up.try_send((index, arrived));
            }
        } else if greeting::is_hello(datagram)
            && let Some(set_up) = awaited.by_address.get(&arrived.from.ip().to_canonical())
        {
            let _ = set_up.try_send(arrived);
        }
    }

    /// Makes the stream's socket, or its place at the listener, and answers the greeting from it.
    pub(super) fn meet(
        &self,
        greeting: &Arrived,
        options: &SocketOptions,
        reply: &[u8],
    ) -> io::Result<DataSocket> {
        let client = canonical(greeting.from);
        let local = self.local_for(client, greeting.to)?;
        let Some(sorter) = self.sorter.get() else {
            return self.meet_apart(client, local, options, reply);
        };
        let mut route = Route { to: greeting.from, from: greeting.to, class: 0 };
        let warnings = options.apply_to_shared(sorter.socket(), client.is_ipv6(), &mut route);
        let seat = sorter.seat(client, route, options.mailbox())?;
        let socket = DataSocket::shared(seat, (local, client), options, warnings);
        socket.line().send(reply)?;
        Ok(socket)
    }

    fn meet_apart(
        &self,
        client: SocketAddr,
        local: SocketAddr,
        options: &SocketOptions,
        reply: &[u8],
    ) -> io::Result<DataSocket> {
        let make = |domain| Socket::new(domain, Type::DGRAM, None);
        let prepare = |socket: &Socket| {
            sys::share_port(socket)?;
            options.bind_to_device(socket)
        };
        let socket = bind(&make, local, true, &prepare)?;
        let (destination, warning) = options.destination(&socket, client);
        socket.connect(&destination.into())?;
        let mut warnings = options.apply(&socket, client.is_ipv6());
        warnings.extend(warning);
        // After the options, so that what another CPU was delivering meanwhile is there too.
        self.hand_back(&socket, client, local);
        socket.send_with_flags(reply, sys::SEND_FLAGS)?;
        DataSocket::new(socket, options, warnings)
    }

    /// The address that the client called, with the door's port.
    fn local_for(&self, client: SocketAddr, called: Option<SocketAddr>) -> io::Result<SocketAddr> {
        let mut local = match called {
            Some(called) => called,
            None if !self.local.ip().is_unspecified() => self.local,
            None => route_to(client)?,
        };
        local.set_port(self.local.port());
        Ok(canonical(local))
    }

    /// Between bind and connect the socket took everything that came to its address: greetings of
    /// other clients go back to the door. What the client itself sent is a doubled greeting.
    fn hand_back(&self, socket: &Socket, client: SocketAddr, local: SocketAddr) {
        let mut buffer = [0; GREETING_ROOM];
        for _ in 0..MOST_GREETINGS {
            let Ok(arrived) = sys::recv_with_destination(socket, &mut buffer) else { return };
            if canonical(arrived.from) != client {
                self.dispatch(&buffer[..arrived.len], Arrived { to: Some(local), ..arrived });
            }
        }
    }
}

/// Reads the listener for as long as the door is open.
async fn read(socket: UdpSocket, shared: Arc<Shared>) {
    loop {
        let mut buffer = [0; GREETING_ROOM];
        let receive = || sys::recv_with_destination(&SockRef::from(&socket), &mut buffer);
        match socket.async_io(Interest::READABLE, receive).await {
            Ok(arrived) => shared.dispatch(&buffer[..arrived.len], arrived),
            // Nothing a listener can be told ends it, but it must not spin on an error that stays.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// The local address from which the system would send to `client`.
fn route_to(client: SocketAddr) -> io::Result<SocketAddr> {
    let socket = Socket::new(Domain::for_address(client), Type::DGRAM, None)?;
    socket.connect(&client.into())?;
    Ok(socket.local_addr()?.as_socket().ok_or(io::ErrorKind::InvalidData)?)
}

/// As many as a test can have streams.
const MOST_GREETINGS: usize = 2 * linerate_core::test::MAX_PARALLEL as usize;

#[cfg(test)]
#[path = "udp_door_tests.rs"]
mod tests;
