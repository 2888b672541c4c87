//! How an endpoint tells what happens: it calls whoever watches, while it is polled.

use core::net::SocketAddr;

use linerate_core::accept::Foreign;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::Event;
use linerate_core::stats::Accounts;
use linerate_core::test::TestSettings;

/// Watches a server or a client with room for `N` streams. `()` watches nothing.
pub trait Observer<const N: usize> {
    /// Server: a client said its cookie and gets a test. Client: the server has been reached.
    fn test_began(&mut self, _peer: SocketAddr, _cookie: Cookie) {}

    /// Something happened in the running test. The last event of every test is [`Event::Finished`].
    fn test_event(&mut self, _event: Event, _test: Progress<'_, N>) {}

    /// Server: a connection got no test and is no stream of one. Whose it was is not known if it is gone.
    fn turned_away(&mut self, _peer: Option<SocketAddr>, _why: TurnedAway) {}

    /// Client: there is no test, since the server was not reached.
    fn not_reached(&mut self, _server: SocketAddr, _why: NotReached) {}
}

impl<const N: usize> Observer<N> for () {}

/// A test as it is now.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a, const N: usize> {
    /// What is measured; complete from [`Event::Agreed`] on.
    pub settings: &'a TestSettings,
    /// What was measured. The peer's part is there with the last event.
    pub accounts: &'a Accounts<N>,
}

/// Why a connection was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TurnedAway {
    /// Another test runs.
    Busy,
    /// It has the cookie of the running test, which has all its streams.
    Late,
    /// It speaks something else than iperf3.
    Foreign(Foreign),
    /// It sent no cookie in time.
    Silent,
    /// It closed or broke before its cookie was complete.
    Gone,
}

/// Why a client cannot begin a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NotBegun {
    /// The last test is not over, or its connections are not closed.
    Busy,
    /// It asks for more streams, both directions together, than the client has room for.
    TooManyStreams {
        /// What there is room for.
        most: usize,
    },
    /// Its datagrams do not fit a packet or the buffers.
    DatagramTooLong {
        /// The longest that do, bytes.
        most: usize,
    },
    /// It asks for SCTP, which the stack does not have.
    NoSctp,
    /// No address of this end leads to the server.
    NoRoute,
}

/// Why a server was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NotReached {
    /// Nobody listens there, or something on the way refused.
    Refused,
    /// No answer came in time.
    TimedOut,
    /// [`Client::interrupt`](crate::Client::interrupt) was called.
    Interrupted,
}
