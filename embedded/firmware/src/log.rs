//! What servers tell, in the words that the tests read.

use defmt::info;
use linerate_embedded::engine::report::StreamSummary;
use linerate_embedded::engine::session::{Event, ServerSession};

use crate::{power, stack};

/// The image can be used from here on.
pub fn ready() {
    info!("ready");
}

/// Something happened in a test.
pub fn event<const N: usize, const T: usize>(event: Event, session: &ServerSession<N, T>) {
    match event {
        Event::Measured => {
            let accounts = session.accounts();
            (0..N).filter_map(|index| accounts.summary(index)).for_each(stream);
        }
        Event::Finished(ending) => {
            info!("end of the test: {}", ending);
            costs();
        }
        _ => {}
    }
}

/// What the image has taken since its start.
pub fn costs() {
    info!("busy for {} us, stack {} bytes", power::busy_micros(), stack::deepest_bytes());
}

fn stream(StreamSummary { id, role, local, .. }: StreamSummary) {
    let (number, datagrams) = (id.number(), local.datagrams);
    let millis = local.duration_ns.unwrap_or(0) / 1_000_000;
    let lost = datagrams.lost.unwrap_or(0);
    info!(
        "stream {}, {}: {} bytes in {} ms, {} packets, {} lost",
        number, role, local.bytes, millis, datagrams.packets, lost
    );
}
