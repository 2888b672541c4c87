//! The server's UDP port. A listener stays open for all tests and takes greetings; each greeting
//! becomes a socket of its own, bound to the address the client called and connected to the
//! client. Greetings that name their test go to it. Those of stock clients name nothing, so one such
//! test of a client address at a time is in set-up; whatever nobody awaits is dropped.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting::{self, NamedGreeting};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::listen::bind;
use super::socket::canonical;
use super::udp_setup::{NamedSetUp, SetUp};
use super::{DataSocket, Listen, SocketOptions};
use crate::sys::{self, Arrived};

/// The open port. Dropping it closes the listener; streams that were set up stay.
#[derive(Debug)]
pub(crate) struct UdpDoor {
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
pub(super) struct Shared {
    local: SocketAddr,
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
        let prepare = |socket: &Socket| {
            sys::share_port(socket)?;
            device.map_or(Ok(()), |device| sys::bind_to_device(socket, device))
        };
        let socket = listen.bind(Type::DGRAM, &prepare)?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        // Without it, replies come from the address that the route to the client suggests.
        let _ = sys::request_destination(&socket, local.is_ipv6());
        let socket = UdpSocket::from_std(socket.into())?;
        let (awaited, turns) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { local, guests, awaited, turns });
        let reader = tokio::spawn(read(socket, shared.clone()));
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
        self.reader.abort();
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

    /// Makes the stream's socket and answers the greeting from it.
    pub(super) fn meet(
        &self,
        client: SocketAddr,
        called: Option<SocketAddr>,
        options: &SocketOptions,
        reply: &[u8],
    ) -> io::Result<DataSocket> {
        let local = self.local_for(client, called)?;
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

/// One byte more than a greeting has tells it from data.
pub(super) const GREETING_ROOM: usize = greeting::MOST_BYTES + 1;
/// As many as a test can have streams.
const MOST_GREETINGS: usize = 2 * linerate_core::test::MAX_PARALLEL as usize;

#[cfg(test)]
#[path = "udp_door_tests.rs"]
mod tests;
