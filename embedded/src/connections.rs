//! The TCP sockets of an endpoint and what each of them is doing. Small stacks have no backlog: every
//! connection needs a socket that listens before it comes. A server's doors always do when they are
//! free, so that the next client is not refused while the last one leaves; one socket a stream does
//! while streams are awaited. What a connection is shows its cookie, wherever it came in.

use core::ops::Range;

use linerate_core::accept::{Greeting, GreetingReader};
use linerate_core::time::{Duration, Instant};

use crate::net::{self, Net, Received, TcpState};

/// All TCP sockets: those of the `N` streams come first, then the `D` for control connections. Of the
/// sockets that listen, stacks give a connection to the one that stands first.
#[derive(Debug)]
pub(crate) struct Connections<const N: usize, const D: usize> {
    /// Where doors listen; zero if they do not.
    port: u16,
    /// How many of the streams' sockets listen when they are free.
    awaited: usize,
    streams: [Place; N],
    doors: [Place; D],
}

/// What a socket is doing.
#[derive(Debug)]
enum Place {
    /// Nothing, until it is needed.
    Free,
    /// It waits for a connection.
    Listening,
    /// Somebody begins one, who has until then.
    Opening(Instant),
    /// It reads a cookie, until its time is over; it has all the time once its cookie is here.
    Greeting(GreetingReader, Option<Instant>),
    /// It belongs to the running test.
    Taken,
    /// All is said, and the peer closes first, until then.
    Parting(Instant),
    /// It is being closed, and is reset when the peer takes too long.
    Leaving(Instant),
}

/// What a connection that belongs to nobody says.
#[derive(Debug)]
pub(crate) enum Visit {
    /// There is none, or its time is not over.
    Waiting,
    /// What its first bytes are, as far as they are here.
    Greeting(Greeting),
    /// It closed or broke.
    Gone,
    /// Its time is over.
    Silent,
}

impl<const N: usize, const D: usize> Connections<N, D> {
    /// The number of the first door.
    pub(crate) const DOOR: usize = N;
    /// All sockets, in the order in which they take connections.
    pub(crate) const ALL: Range<usize> = 0..N + D;

    /// Nothing listens before the first [`tidy`](Self::tidy).
    pub(crate) const fn new(port: u16) -> Self {
        Self {
            port,
            awaited: 0,
            streams: [const { Place::Free }; N],
            doors: [const { Place::Free }; D],
        }
    }

    /// Makes `count` sockets listen for streams. Streams of an earlier test that still leave are
    /// dropped, and so is who was turned away; their peers hear of it when they send something.
    pub(crate) fn await_streams(&mut self, net: &mut impl Net, count: usize) {
        self.awaited = count;
        for (socket, place) in self.streams.iter_mut().enumerate().take(count) {
            if matches!(place, Place::Free | Place::Parting(_) | Place::Leaving(_)) {
                net.listen(socket, self.port);
                *place = Place::Listening;
            }
        }
    }

    /// Takes back the sockets that still listen for streams.
    pub(crate) fn await_no_streams(&mut self, net: &mut impl Net) {
        self.awaited = 0;
        for (socket, place) in self.streams.iter_mut().enumerate() {
            if matches!(place, Place::Listening | Place::Opening(_)) {
                net.abort(socket);
                *place = Place::Free;
            }
        }
    }

    /// What the connection on this socket says, if it belongs to nobody.
    pub(crate) fn visit(&mut self, now: Instant, net: &mut impl Net, socket: usize) -> Visit {
        let place = self.place(socket);
        if matches!(place, Place::Listening | Place::Opening(_)) {
            match net.state(socket) {
                TcpState::Listening => *place = Place::Listening,
                TcpState::Opening => match *place {
                    Place::Opening(until) if now < until => {}
                    Place::Opening(_) => {
                        net.abort(socket);
                        *place = Place::Free;
                    }
                    _ => *place = Place::Opening(now + OPENING_TIMEOUT),
                },
                // It broke before it stood.
                TcpState::Closed => *place = Place::Free,
                TcpState::Open => {
                    net.set_no_delay(socket, true);
                    let until = now + GREETING_TIMEOUT;
                    *place = Place::Greeting(GreetingReader::new(), Some(until));
                }
            }
        }
        let Place::Greeting(reader, until) = place else { return Visit::Waiting };
        let mut greeting = reader.read(&[]).1;
        while greeting == Greeting::Incomplete {
            let received = net.receive(socket, |bytes| {
                let (taken, read) = reader.read(bytes);
                greeting = read;
                taken
            });
            match received {
                Received::Bytes => {}
                Received::Nothing => break,
                Received::End => return Visit::Gone,
            }
        }
        if greeting != Greeting::Incomplete {
            *until = None;
            return Visit::Greeting(greeting);
        }
        if until.is_some_and(|until| now >= until) {
            Visit::Silent
        } else {
            Visit::Greeting(greeting)
        }
    }

    /// The connection becomes a part of the running test.
    pub(crate) fn take(&mut self, socket: usize) {
        *self.place(socket) = Place::Taken;
    }

    /// Ends a connection: what is queued is still sent, then its end; what still comes is thrown
    /// away.
    pub(crate) fn leave(&mut self, now: Instant, net: &mut impl Net, socket: usize) {
        net.close(socket);
        *self.place(socket) = Place::Leaving(now + LEAVING_TIMEOUT);
    }

    /// As [`leave`](Self::leave), but lets the peer close first for a moment, as honest ones do: two ends that
    /// close at once need a second or more where one of them is as small as this stack.
    pub(crate) fn part(&mut self, now: Instant, socket: usize) {
        *self.place(socket) = Place::Parting(now + PARTING_TIMEOUT);
    }

    /// Moves on what leaves, and makes those listen that should.
    pub(crate) fn tidy(&mut self, now: Instant, net: &mut impl Net) {
        for (socket, place) in self.streams.iter_mut().enumerate() {
            place.tidy(now, net, socket, if socket < self.awaited { self.port } else { 0 });
        }
        for (index, place) in self.doors.iter_mut().enumerate() {
            place.tidy(now, net, Self::DOOR + index, self.port);
        }
    }

    /// Whether no connection is left, nor awaited.
    pub(crate) fn are_free(&self) -> bool {
        self.streams.iter().chain(&self.doors).all(|place| matches!(place, Place::Free))
    }

    /// When something is to be done about a connection even if nothing comes.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let all = self.streams.iter().chain(&self.doors);
        all.filter_map(|place| match place {
            Place::Greeting(_, until) => *until,
            Place::Opening(until) | Place::Parting(until) | Place::Leaving(until) => Some(*until),
            Place::Free | Place::Listening | Place::Taken => None,
        })
        .min()
    }

    fn place(&mut self, socket: usize) -> &mut Place {
        match socket.checked_sub(Self::DOOR) {
            Some(door) => &mut self.doors[door],
            None => &mut self.streams[socket],
        }
    }
}

impl Place {
    /// Frees the socket if it is done, and has a free one listen at the port, unless that is zero.
    fn tidy(&mut self, now: Instant, net: &mut impl Net, socket: usize, port: u16) {
        if let Self::Parting(until) = *self
            && (net::discard(net, socket) || now >= until)
        {
            net.close(socket);
            *self = Self::Leaving(now + PARTED_TIMEOUT);
        }
        let is_over = match *self {
            Self::Leaving(until) => {
                net::discard(net, socket);
                if now >= until {
                    net.abort(socket);
                }
                net.state(socket) == TcpState::Closed
            }
            Self::Free => true,
            Self::Listening
            | Self::Opening(_)
            | Self::Greeting(..)
            | Self::Taken
            | Self::Parting(_) => false,
        };
        if is_over {
            *self = Self::Free;
            if port != 0 {
                net.listen(socket, port);
                *self = Self::Listening;
            }
        }
    }
}

/// How long a handshake may take: two answers may be lost. One that has not come to its end holds
/// a socket that nobody else can call.
const OPENING_TIMEOUT: Duration = Duration::from_secs(3);
/// iperf3 since 3.15 gives a client as long for its cookie.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a peer may take to close first.
const PARTING_TIMEOUT: Duration = Duration::from_millis(200);
/// How long one may take that did not, before its socket is needed for the next.
const PARTED_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a peer may take to close its side.
const LEAVING_TIMEOUT: Duration = Duration::from_secs(10);
