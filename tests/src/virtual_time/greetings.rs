//! The greetings of UDP streams on their way: each is a datagram of its own, which the network may
//! lose, double, delay and reorder.

use linerate_core::test::End;
use linerate_core::time::Instant;

use crate::link::model::{Link, LinkModel};

/// The network under the greetings, and what the server's adapter has taken of them.
#[derive(Debug)]
pub struct Greetings {
    links: [Link; 2],
    lost: Vec<(End, u64)>,
    /// Streams that were greeted, by the order in which the client opened them, in the order in which
    /// the server numbers them.
    pub met: Vec<usize>,
    /// Greetings of the client, and replies of the server.
    pub sent: [u64; 2],
    /// Copies that came to a stream which was there, of a client that does not name it: a stock
    /// server takes them for data.
    pub copies: u64,
}

impl Greetings {
    /// Nobody has said anything. Those in `lost` are lost whatever the network does: whose, and which,
    /// counted from one.
    pub fn new(model: LinkModel, seeds: [u64; 2], lost: Vec<(End, u64)>) -> Self {
        let links = seeds.map(|seed| Link::new(model, seed));
        Self { links, lost, met: Vec::new(), sent: [0; 2], copies: 0 }
    }

    /// Sends a greeting, or a reply to one; says when it arrives: never, once or twice.
    pub fn send(&mut self, now: Instant, from: End) -> Vec<Instant> {
        let sent = &mut self.sent[from as usize];
        *sent += 1;
        let is_lost = self.lost.contains(&(from, *sent));
        let arrivals = self.links[from as usize].send(now, GREETING_BYTES);
        arrivals.filter(|_| !is_lost).collect()
    }
}

/// About as many as either kind has.
const GREETING_BYTES: u64 = 48;
