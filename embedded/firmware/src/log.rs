//! What images tell, in the words that the tests read.

use core::net::SocketAddr;

use defmt::info;
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::StreamSummary;
use linerate_embedded::engine::session::Event;
use linerate_embedded::{NotBegun, NotReached, Observer, Progress, TurnedAway};

use crate::{power, stack};

/// Tells what happens in tests.
pub struct Log;

impl<const N: usize> Observer<N> for Log {
    fn test_began(&mut self, peer: SocketAddr, _cookie: Cookie) {
        info!("test of {}", peer);
    }

    fn test_event(&mut self, event: Event, test: Progress<'_, N>) {
        if let Event::Finished(ending) = event {
            (0..N).filter_map(|index| test.accounts.summary(index)).for_each(stream);
            info!("end of the test: {}", ending);
            costs();
        }
    }

    fn turned_away(&mut self, peer: Option<SocketAddr>, why: TurnedAway) {
        info!("turned away {}: {}", peer, why);
    }

    fn not_reached(&mut self, server: SocketAddr, why: NotReached) {
        info!("{} was not reached: {}", server, why);
    }
}

/// The image can be used from here on.
pub(crate) fn ready() {
    info!("ready");
}

/// A client's test has begun, or the machine ends.
pub fn begun(begun: Result<(), NotBegun>) {
    if let Err(why) = begun {
        defmt::error!("no test: {}", why);
        semihosting::process::exit(1)
    }
}

/// A client's test is over, and so is all.
pub fn over() -> ! {
    semihosting::process::exit(0)
}

/// What the image has taken since its start.
pub(crate) fn costs() {
    info!("busy for {} us, stack {} bytes", power::busy_micros(), stack::deepest_bytes());
}

fn stream(StreamSummary { id, role, local, remote, .. }: StreamSummary) {
    let millis = local.duration_ns.unwrap_or(0) / 1_000_000;
    let (lost, peer) = (local.datagrams.lost.unwrap_or(0), remote.map_or(0, |peer| peer.bytes));
    info!(
        "stream {}, {}: {} bytes in {} ms, {} packets, {} lost, of {} at the peer",
        id.number(),
        role,
        local.bytes,
        millis,
        local.datagrams.packets,
        lost,
        peer
    );
}
