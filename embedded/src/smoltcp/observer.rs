//! How a server tells what happens: it calls whoever watches, while it is polled.

use linerate_core::accept::Foreign;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::{Event, ServerSession};
use smoltcp::wire::IpEndpoint;

/// Watches a server. `()` watches nothing.
pub trait Observer<const N: usize, const T: usize> {
    /// A client said its cookie and gets a test.
    fn test_began(&mut self, _peer: IpEndpoint, _cookie: Cookie) {}

    /// Something happened in the running test; `session` tells its settings and what was measured.
    /// The last event of every test is [`Event::Finished`].
    fn test_event(&mut self, _event: Event, _session: &ServerSession<N, T>) {}

    /// A connection got no test and is no stream of one. Whose it was is not known if it is gone.
    fn turned_away(&mut self, _peer: Option<IpEndpoint>, _why: TurnedAway) {}
}

impl<const N: usize, const T: usize> Observer<N, T> for () {}

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
