//! A reliable byte stream over a link, as TCP is one: what the link loses is sent again after a
//! while, and nothing overtakes. Knows bytes only by their number.

use linerate_core::time::Instant;

use crate::link::model::{Link, LinkModel};

/// One direction of a reliable connection.
#[derive(Debug, Clone)]
pub struct Pipe {
    link: Link,
    delivered: Instant,
    retransmits: u64,
}

impl Pipe {
    /// An idle pipe over a link of this kind.
    pub const fn new(model: LinkModel, seed: u64) -> Self {
        Self { link: Link::new(model, seed), delivered: Instant::ZERO, retransmits: 0 }
    }

    /// Sends `bytes` at `now`; says when the last of them is there.
    pub fn send(&mut self, now: Instant, bytes: u64) -> Instant {
        let mut at = now;
        // A link that loses everything is given up on: a stalled connection is another thing.
        for _ in 0..MOST_ATTEMPTS {
            if let Some(arrival) = self.link.send(at, bytes).next() {
                self.delivered = self.delivered.max(arrival);
                return self.delivered;
            }
            self.retransmits += 1;
            at = at.plus_nanos(2 * self.link.model().latency_ns + RETRANSMIT_NS);
        }
        self.delivered = self.delivered.max(at);
        self.delivered
    }

    /// How often something was sent again.
    pub const fn retransmits(&self) -> u64 {
        self.retransmits
    }

    /// Time of one way, nothing in it.
    pub const fn latency_ns(&self) -> u64 {
        self.link.model().latency_ns
    }
}

const MOST_ATTEMPTS: u32 = 20;
/// How long after a round trip a loss is noticed.
const RETRANSMIT_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_delay_and_order_is_kept() {
        let model = LinkModel { latency_ns: 1_000_000, loss_ppm: 300_000, ..Default::default() };
        let mut pipe = Pipe::new(model, 5);
        let arrivals: Vec<_> =
            (0..100).map(|at| pipe.send(Instant::from_nanos(at * 1000), 1000)).collect();
        assert!(arrivals.is_sorted());
        assert!((20..80).contains(&pipe.retransmits()), "{}", pipe.retransmits());
    }
}
