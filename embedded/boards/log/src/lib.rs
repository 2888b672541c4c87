//! What the servers on boards tell their debug probe: the same on all of them.

#![no_std]

use core::net::SocketAddr;

use defmt::{info, warn};
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::StreamSummary;
use linerate_embedded::engine::session::Event;
use linerate_embedded::{Observer, Progress, TurnedAway};

/// Logs what happens in tests, and who gets none.
pub struct Log;

impl<const N: usize> Observer<N> for Log {
    fn test_began(&mut self, peer: SocketAddr, _cookie: Cookie) {
        info!("test of {}", peer);
    }

    fn test_event(&mut self, event: Event, test: Progress<'_, N>) {
        match event {
            Event::Measured => {
                (0..N).filter_map(|index| test.accounts.summary(index)).for_each(tell)
            }
            Event::Finished(ending) => info!("end of the test: {}", ending),
            _ => {}
        }
    }

    fn turned_away(&mut self, peer: Option<SocketAddr>, why: TurnedAway) {
        warn!("turned away {}: {}", peer, why);
    }
}

fn tell(StreamSummary { id, role, local, .. }: StreamSummary) {
    let (number, datagrams) = (id.number(), local.datagrams);
    let millis = local.duration_ns.unwrap_or(0) / 1_000_000;
    let lost = datagrams.lost.unwrap_or(0);
    info!(
        "stream {}, {}: {} bytes in {} ms, {} packets, {} lost",
        number, role, local.bytes, millis, datagrams.packets, lost
    );
}
