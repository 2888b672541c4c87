//! A server and its clients in virtual time, whatever stack is between them.

use std::net::SocketAddr;
use std::ops::Deref;

use linerate_embedded::NotBegun;
use linerate_embedded::engine::session::{Ending, Phase};
use linerate_embedded::engine::test::TestSettings;

use super::loss::Loss;
use super::told::{ClientTold, ServerTold};

/// A server, and the network that leads to it.
pub(crate) trait Pair: Sized {
    type Client: Peer;

    /// How clients of this stack can break off.
    const BREAKS: &'static [Break];

    fn new() -> Self;

    /// Where the server is.
    fn server(&self) -> SocketAddr;

    fn lose(&mut self, loss: Loss);

    fn try_start(
        &mut self,
        server: SocketAddr,
        settings: TestSettings,
    ) -> Result<Self::Client, NotBegun>;

    /// Lets time pass until `is_done`, which must come within so many seconds.
    fn run_until(
        &mut self,
        client: Option<&mut Self::Client>,
        seconds: u64,
        is_done: impl FnMut(&mut Self, Option<&Self::Client>) -> bool,
    );

    fn told(&self) -> impl Deref<Target = ServerTold>;

    fn is_busy(&self) -> bool;

    fn interrupt_server(&mut self);

    fn interrupt_client(&mut self, client: &mut Self::Client);

    fn break_off(&mut self, client: &mut Self::Client, how: Break);

    fn start(&mut self, settings: TestSettings) -> Self::Client {
        self.try_start(self.server(), settings).expect("it has room for it")
    }

    /// Runs a client to this phase, or to its end.
    fn run_to(&mut self, client: &mut Self::Client, phase: Phase) {
        self.run_until(Some(client), 5, |_, client| {
            client.is_some_and(|client| client.phase() == phase || client.told().is_over())
        });
    }

    /// Runs a test to its end on both sides and returns the client.
    fn run_test(&mut self, settings: TestSettings) -> Self::Client {
        let mut client = self.start(settings);
        let earlier = self.told().endings.len();
        self.run_until(Some(&mut client), 60, |pair, client| {
            let is_over = client.is_some_and(|client| client.told().is_over());
            is_over && pair.told().endings.len() > earlier
        });
        self.run_until(Some(&mut client), 15, |_, client| client.is_some_and(Peer::is_closed));
        self.break_off(&mut client, Break::Forget);
        client
    }
}

/// A client of a [`Pair`].
pub(crate) trait Peer {
    fn told(&self) -> impl Deref<Target = ClientTold>;

    /// Where its test is, as far as it has one.
    fn running(&self) -> Option<Phase>;

    /// Whether all of its connections are closed by both ends.
    fn is_closed(&self) -> bool;

    fn phase(&self) -> Phase {
        let is_over = self.told().is_over();
        self.running().unwrap_or(if is_over { Phase::Over } else { Phase::Greeting })
    }

    fn ending(&self) -> Option<Ending> {
        self.told().ending
    }
}

/// How a client ends that does not end well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Break {
    /// Its system closes its connections.
    Close,
    /// Its system resets them.
    Reset,
    /// Its machine starts anew and knows nothing of them.
    Forget,
    /// The cable is cut.
    Cut,
}

pub(crate) const STREAMS: usize = 2;
/// The longest IP packet.
pub(crate) const MTU: usize = 1500;
