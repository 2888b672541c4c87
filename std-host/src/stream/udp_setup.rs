//! The UDP streams of one test while they come in: of a stock client one after the other, of one whose
//! greetings name the test in any order. The door hands greetings over; what they become is here.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting::{self, NamedGreeting};
use tokio::sync::{OwnedMutexGuard, mpsc};

use super::datagrams::GREETING_ROOM;
use super::socket::Line;
use super::socket::canonical;
use super::udp_door::{Guests, Shared};
use super::{DataSocket, SocketOptions};
use crate::sys::{self, Arrived};

/// One test's turn to have its streams set up.
#[derive(Debug)]
pub(crate) struct SetUp {
    client: IpAddr,
    shared: Arc<Shared>,
    greetings: mpsc::Receiver<Arrived>,
    /// Whose greetings became streams already: the network may double one.
    met: Vec<SocketAddr>,
    _turn: OwnedMutexGuard<()>,
}

impl SetUp {
    /// `greetings` come from this canonical address, and are nobody else's while `turn` is held.
    pub(super) const fn new(
        client: IpAddr,
        shared: Arc<Shared>,
        greetings: mpsc::Receiver<Arrived>,
        turn: OwnedMutexGuard<()>,
    ) -> Self {
        Self { client, shared, greetings, met: Vec::new(), _turn: turn }
    }

    /// The client's next stream, its greeting answered. Waits for ever; drop the future to give
    /// up, which loses no greeting.
    pub(crate) async fn next(&mut self, options: &SocketOptions) -> io::Result<DataSocket> {
        loop {
            let greeting = self.greetings.recv().await.ok_or(io::ErrorKind::BrokenPipe)?;
            let client = canonical(greeting.from);
            if !self.met.contains(&client) {
                let socket = self.shared.meet(&greeting, options, &greeting::REPLY)?;
                self.met.push(client);
                return Ok(socket);
            }
        }
    }
}

impl Drop for SetUp {
    fn drop(&mut self) {
        self.shared.awaited().by_address.remove(&self.client);
    }
}

/// A test whose client names it, while its streams are set up.
#[derive(Debug)]
pub(crate) struct NamedSetUp {
    client: IpAddr,
    cookie: Cookie,
    shared: Arc<Shared>,
    greetings: mpsc::Receiver<(u16, Arrived)>,
    /// The streams that are there, by their place in the order of creation.
    met: Vec<Option<(SocketAddr, Line)>>,
    is_stranger_told: bool,
}

impl NamedSetUp {
    /// A test of so many streams, whose control connection comes from this canonical address.
    /// `greetings` have its cookie.
    pub(super) fn new(
        client: IpAddr,
        cookie: Cookie,
        count: usize,
        shared: Arc<Shared>,
        greetings: mpsc::Receiver<(u16, Arrived)>,
    ) -> Self {
        let met = std::iter::repeat_with(|| None).take(count).collect();
        Self { client, cookie, shared, greetings, met, is_stranger_told: false }
    }

    /// The next stream that comes, its greeting answered. Waits for ever; drop the future to give up,
    /// which loses nothing that does not come again.
    pub(crate) async fn next(&mut self, options: &SocketOptions) -> io::Result<Met> {
        loop {
            let arrived = tokio::select! {
                arrived = self.greetings.recv() => arrived,
                () = tokio::time::sleep(ANSWER_AGAIN) => {
                    self.answer_again();
                    continue;
                }
            };
            let (index, greeting) = arrived.ok_or(io::ErrorKind::BrokenPipe)?;
            let client = canonical(greeting.from);
            if client.ip() != self.client && self.shared.guests != Guests::Anyone {
                if std::mem::replace(&mut self.is_stranger_told, true) {
                    continue;
                }
                return Ok(Met::Stranger(client));
            }
            let is_met = self.met.iter().flatten().any(|&(met, _)| met == client);
            let reply = NamedGreeting { cookie: self.cookie, index }.reply();
            match self.met.get_mut(usize::from(index)) {
                Some(place @ None) if !is_met => {
                    let socket = self.shared.meet(&greeting, options, &reply)?;
                    *place = Some((client, socket.line().clone()));
                    return Ok(Met::Stream(index, socket));
                }
                // Where the socket is shared, copies come here.
                Some(Some((met, line @ Line::Shared(_)))) if *met == client => {
                    let _ = line.send(&reply);
                }
                _ => {}
            }
        }
    }

    /// A client that greets a stream again did not get the answer. There is no data before the last
    /// stream has come.
    fn answer_again(&self) {
        let mut buffer = [0; GREETING_ROOM];
        for (_, line) in self.met.iter().flatten() {
            let Line::Own(socket) = line else { continue };
            for _ in 0..MOST_COPIES {
                let Ok(arrived) = sys::recv_with_destination(socket, &mut buffer) else { break };
                let greeting = NamedGreeting::of_hello(&buffer[..arrived.len]);
                if let Some(greeting) = greeting.filter(|greeting| greeting.cookie == self.cookie) {
                    let _ = line.send(&greeting.reply());
                }
            }
        }
    }
}

impl Drop for NamedSetUp {
    fn drop(&mut self) {
        self.shared.awaited().by_cookie.remove(&self.cookie);
    }
}

/// What comes to a test that awaits streams that name it.
#[derive(Debug)]
pub(crate) enum Met {
    /// A stream, and its place in the order of creation.
    Stream(u16, DataSocket),
    /// The first greeting from an address that is not its control connection's; nobody answers it.
    Stranger(SocketAddr),
}

/// How often copies of greetings are looked for that were answered already.
const ANSWER_AGAIN: Duration = Duration::from_millis(200);
/// Copies of one stream's greeting that are looked at at once.
const MOST_COPIES: usize = 16;
