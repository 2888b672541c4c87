//! The TCP sockets of a server and what each of them is doing. smoltcp has no backlog: every
//! connection needs a socket that listens before it comes. Two of them, the doors, always do when they
//! are free, so that the next client is not refused while the last one leaves; one a stream does while
//! streams are awaited. What a connection is shows its cookie, wherever it came in.

use linerate_core::accept::{Greeting, GreetingReader};
use linerate_core::time::{Duration, Instant};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, State};

use super::storage::TcpBuffers;

/// Sockets that listen whether or not a test runs.
pub(super) const DOORS: usize = 2;

/// All TCP sockets of a server.
#[derive(Debug)]
pub(super) struct Connections<const N: usize> {
    port: u16,
    /// How many of the streams' sockets listen when they are free.
    awaited: usize,
    streams: [Connection; N],
    doors: [Connection; DOORS],
}

#[derive(Debug)]
struct Connection {
    handle: SocketHandle,
    place: Place,
}

/// What a socket is doing.
#[derive(Debug)]
enum Place {
    /// Nothing, until a test awaits streams.
    Free,
    /// It waits for a connection.
    Listening,
    /// It reads a cookie, until its time is over; it has all the time once its cookie is here.
    Greeting(GreetingReader, Option<Instant>),
    /// It belongs to the running test.
    Taken,
    /// It is being closed, and is reset when the peer takes too long.
    Leaving(Instant),
}

/// What a connection that belongs to nobody says.
#[derive(Debug)]
pub(super) enum Visit {
    /// There is none, or its time is not over.
    Waiting,
    /// What its first bytes are, as far as they are here.
    Greeting(Greeting),
    /// It closed or broke.
    Gone,
    /// Its time is over.
    Silent,
}

impl<const N: usize> Connections<N> {
    /// Puts the sockets into the set. The streams' come first: of the sockets that listen, smoltcp
    /// gives a connection to the one that stands first.
    pub(super) fn new<'a>(
        port: u16,
        sockets: &mut SocketSet<'a>,
        streams: [TcpBuffers<'a>; N],
        doors: [TcpBuffers<'a>; DOORS],
    ) -> Self {
        let mut add = |buffers: TcpBuffers<'a>| {
            let mut socket = buffers.into_socket();
            socket.set_keep_alive(Some(KEEPALIVE));
            socket.set_timeout(Some(PEER_TIMEOUT));
            Connection { handle: sockets.add(socket), place: Place::Free }
        };
        Self { port, awaited: 0, streams: streams.map(&mut add), doors: doors.map(add) }
    }

    /// All sockets, in the order in which they take connections.
    pub(super) fn handles(&self) -> impl Iterator<Item = SocketHandle> + use<N> {
        let streams = self.streams.each_ref().map(|connection| connection.handle);
        streams.into_iter().chain(self.doors.each_ref().map(|connection| connection.handle))
    }

    /// Makes `count` sockets listen for streams. Streams of an earlier test that still leave are
    /// dropped; their peers hear of it when they send something.
    pub(super) fn await_streams(&mut self, sockets: &mut SocketSet<'_>, count: usize) {
        self.awaited = count;
        for connection in self.streams.iter_mut().take(count) {
            if matches!(connection.place, Place::Free | Place::Leaving(_)) {
                connection.listen(sockets, self.port);
            }
        }
    }

    /// Takes back the sockets that still listen for streams.
    pub(super) fn await_no_streams(&mut self, sockets: &mut SocketSet<'_>) {
        self.awaited = 0;
        for connection in &mut self.streams {
            if matches!(connection.place, Place::Listening) {
                sockets.get_mut::<Socket<'_>>(connection.handle).abort();
                connection.place = Place::Free;
            }
        }
    }

    /// What the connection on this socket says, if it belongs to nobody.
    pub(super) fn visit(
        &mut self,
        now: Instant,
        sockets: &mut SocketSet<'_>,
        handle: SocketHandle,
    ) -> Visit {
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        let place = &mut self.of(handle).place;
        if matches!(place, Place::Listening) && is_connected(socket) {
            socket.set_nagle_enabled(false);
            *place = Place::Greeting(GreetingReader::new(), Some(now + GREETING_TIMEOUT));
        }
        let Place::Greeting(reader, until) = place else { return Visit::Waiting };
        let mut greeting = reader.read(&[]).1;
        while greeting == Greeting::Incomplete && socket.can_recv() {
            greeting = socket.recv(|bytes| reader.read(bytes)).unwrap_or(greeting);
        }
        if greeting != Greeting::Incomplete {
            *until = None;
            return Visit::Greeting(greeting);
        }
        if !socket.may_recv() {
            return Visit::Gone;
        }
        if until.is_some_and(|until| now >= until) {
            Visit::Silent
        } else {
            Visit::Greeting(greeting)
        }
    }

    /// The connection becomes a part of the running test.
    pub(super) fn take(&mut self, handle: SocketHandle) {
        self.of(handle).place = Place::Taken;
    }

    /// Ends a connection: what is queued is still sent, then its end; what still comes is thrown
    /// away.
    pub(super) fn leave(
        &mut self,
        now: Instant,
        sockets: &mut SocketSet<'_>,
        handle: SocketHandle,
    ) {
        sockets.get_mut::<Socket<'_>>(handle).close();
        self.of(handle).place = Place::Leaving(now + LEAVING_TIMEOUT);
    }

    /// Moves on what leaves, and makes those listen that should.
    pub(super) fn tidy(&mut self, now: Instant, sockets: &mut SocketSet<'_>) {
        for (index, connection) in self.streams.iter_mut().enumerate() {
            connection.tidy(now, sockets, (index < self.awaited).then_some(self.port));
        }
        for door in &mut self.doors {
            door.tidy(now, sockets, Some(self.port));
        }
    }

    /// When something is to be done about a connection even if nothing comes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let all = self.streams.iter().chain(&self.doors);
        all.filter_map(|connection| match connection.place {
            Place::Greeting(_, until) => until,
            Place::Leaving(until) => Some(until),
            Place::Free | Place::Listening | Place::Taken => None,
        })
        .min()
    }

    fn of(&mut self, handle: SocketHandle) -> &mut Connection {
        let mut all = self.streams.iter_mut().chain(&mut self.doors);
        all.find(|connection| connection.handle == handle).expect("handles are those of new")
    }
}

impl Connection {
    fn listen(&mut self, sockets: &mut SocketSet<'_>, port: u16) {
        let socket = sockets.get_mut::<Socket<'_>>(self.handle);
        socket.abort();
        socket.listen(port).expect("the socket was closed, and the port is not zero");
        self.place = Place::Listening;
    }

    fn tidy(&mut self, now: Instant, sockets: &mut SocketSet<'_>, listen: Option<u16>) {
        let socket = sockets.get_mut::<Socket<'_>>(self.handle);
        let is_over = match self.place {
            Place::Leaving(until) => {
                while socket.can_recv() && socket.recv(|bytes| (bytes.len(), ())).is_ok() {}
                if now >= until {
                    socket.abort();
                }
                // What TIME-WAIT guards against, a late segment, the stack answers with a reset.
                matches!(socket.state(), State::TimeWait | State::Closed)
            }
            // It broke before it stood.
            Place::Listening => socket.state() == State::Closed,
            Place::Free => true,
            Place::Greeting(..) | Place::Taken => false,
        };
        if is_over {
            self.place = Place::Free;
            if let Some(port) = listen {
                self.listen(sockets, port);
            }
        }
    }
}

fn is_connected(socket: &Socket<'_>) -> bool {
    !matches!(socket.state(), State::Listen | State::SynReceived | State::Closed)
}

/// iperf3 since 3.15 gives a client as long for its cookie.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a peer may take to close its side.
const LEAVING_TIMEOUT: Duration = Duration::from_secs(10);
/// A peer that answers nothing for so long is gone.
const PEER_TIMEOUT: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(20);
/// How often a silent peer is asked whether it is there.
const KEEPALIVE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(5);
