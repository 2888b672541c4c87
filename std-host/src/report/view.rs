//! What both writers read out of the records: the directions of a test in the order of the report,
//! sums over the streams of a direction, who is a stream's sender, and which intervals are too short
//! to be worth a line. Nothing here knows a format.

use std::net::SocketAddr;

use linerate_core::test::{Direction, End, Protocol, Role, StreamId, TestSettings};
use linerate_core::time::nanos;

use super::{
    Connection, Datagrams, Interval, SideSummary, StreamDetail, StreamDetails, StreamInterval,
    StreamSummary, TestEnd, TestStart,
};

/// What this end does in each direction of the test: client to server first.
pub(super) fn directions(settings: &TestSettings, end: End) -> &'static [Role] {
    match (settings.direction, end) {
        (Direction::Forward, End::Client) | (Direction::Reverse, End::Server) => &[Role::Sender],
        (Direction::Forward, End::Server) | (Direction::Reverse, End::Client) => &[Role::Receiver],
        (Direction::Bidirectional, End::Client) => &[Role::Sender, Role::Receiver],
        (Direction::Bidirectional, End::Server) => &[Role::Receiver, Role::Sender],
    }
}

/// Data flows both ways.
pub(super) fn is_bidirectional(settings: &TestSettings) -> bool {
    settings.direction == Direction::Bidirectional
}

/// Only the server sends.
pub(super) fn is_reverse(settings: &TestSettings) -> bool {
    settings.direction == Direction::Reverse
}

/// The data streams are UDP.
pub(super) fn is_udp(settings: &TestSettings) -> bool {
    settings.protocol == Protocol::Udp
}

/// The system's number of a stream's socket, which both reports show as its ID.
pub(super) fn socket_of(start: &TestStart, id: StreamId) -> i32 {
    start.streams.iter().find(|stream| stream.id == id).map_or(0, |stream| stream.socket)
}

/// An address as both reports show it: IPv4 in IPv6 clothes is IPv4.
pub(super) fn host(address: &SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}

/// The segment size that TCP has when nobody asks for one; a server does not look, as in iperf3.
pub(super) fn default_mss(connection: &Connection) -> u32 {
    match connection.end {
        End::Client => connection.control_mss.unwrap_or(0),
        End::Server => 0,
    }
}

/// A peer's name as both reports show it, likewise.
pub(super) fn peer_host(name: &str) -> &str {
    match name.strip_prefix("::ffff:") {
        Some(ipv4) if ipv4.contains('.') => ipv4,
        _ => name,
    }
}

/// The interval has something to tell: iperf3 leaves out one in which no stream moved a byte or
/// lasted a tenth of the report interval.
pub(super) fn is_worth_reporting(interval: &Interval, start: &TestStart) -> bool {
    let tenth_ns = start.interval.map_or(0, nanos) / 10;
    interval.streams.iter().any(|stream| {
        let length_ns = stream.span.nanos();
        stream.bytes > 0 || (length_ns >= tenth_ns && length_ns > 0)
    })
}

/// The streams of one direction added up; nothing if there are none.
pub(super) fn interval_sum(streams: &[&StreamInterval]) -> Option<StreamInterval> {
    let (first, others) = streams.split_first()?;
    let mut sum = **first;
    for stream in others {
        sum.bytes += stream.bytes;
        add_datagrams(&mut sum.datagrams, &stream.datagrams);
        if let (Some(sum), Some(tcp)) = (&mut sum.tcp, &stream.tcp) {
            sum.retransmits = add(sum.retransmits, tcp.retransmits);
        }
    }
    sum.datagrams.jitter_ns /= streams.len() as u64;
    Some(sum)
}

/// One side of several streams added up; its time is the first stream's.
pub(super) fn side_sum<'a>(sides: impl IntoIterator<Item = &'a Side>) -> Option<Side> {
    let mut sides = sides.into_iter();
    let mut sum = *sides.next()?;
    let mut count = 1;
    for side in sides {
        count += 1;
        sum.bytes = sum.bytes.saturating_add(side.bytes);
        sum.retransmits = add(sum.retransmits, side.retransmits);
        sum.is_known |= side.is_known;
        add_datagrams(&mut sum.datagrams, &side.datagrams);
    }
    sum.datagrams.jitter_ns /= count;
    Some(sum)
}

/// One side of a stream, ready to be shown: what is not known counts as nothing moved in this end's
/// own time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    /// This side was measured here, or the peer told it.
    pub(super) is_known: bool,
    pub(super) bytes: u64,
    pub(super) duration_ns: u64,
    pub(super) datagrams: Datagrams,
    pub(super) retransmits: Option<u64>,
}

/// The side of `stream` that does what `role` says.
pub(super) fn side(stream: &StreamSummary, role: Role) -> Side {
    let side = match role {
        Role::Sender => stream.sent(),
        Role::Receiver => stream.received(),
    };
    let own_ns = stream.local.duration_ns.unwrap_or(0);
    let SideSummary { bytes, duration_ns, datagrams, retransmits } =
        side.copied().unwrap_or(NOTHING);
    Side {
        is_known: side.is_some(),
        bytes,
        duration_ns: duration_ns.unwrap_or(own_ns),
        datagrams,
        retransmits,
    }
}

/// Each stream with what is known of it beyond its totals.
pub(super) fn with_details(end: &TestEnd) -> impl Iterator<Item = (&StreamSummary, StreamDetails)> {
    let details = end.details.iter().copied();
    end.streams.iter().zip(details.chain(std::iter::repeat(StreamDetails::default())))
}

/// What the end of a stream knows that does what `side` says, where this one does what `role` says.
pub(super) fn detail_of(role: Role, details: StreamDetails, side: Role) -> StreamDetail {
    if role == side { details.local } else { details.remote.unwrap_or_default() }
}

/// Datagrams behind the last that came. It is known where the sender is the client, which stops before
/// it says that the test is over, and where nothing but time ended the test: an amount and an omitted
/// start end at each side's own datagram. Elsewhere it is told where it is a quarter of all, which no
/// such difference is.
pub(super) fn lost_at_end(start: &TestStart, end: &TestEnd, stream: &StreamSummary) -> Option<u64> {
    let settings = &start.settings;
    let client_sends = (stream.role == Role::Sender) == (start.connection.end == End::Client);
    let is_cut = settings.limits.bytes.or(settings.limits.blocks).is_some()
        || settings.omit_secs > 0
        || end.error.is_some();
    let sent = stream.sent()?.datagrams.packets;
    let at_end = sent.checked_sub(stream.received()?.datagrams.packets)?;
    let is_sure = client_sends && !is_cut;
    (is_udp(settings) && (is_sure || at_end > sent / 4)).then_some(at_end)
}

/// A side that is not known.
const NOTHING: SideSummary = SideSummary {
    bytes: 0,
    duration_ns: None,
    datagrams: Datagrams {
        packets: 0,
        lost: Some(0),
        out_of_order: None,
        duplicates: None,
        too_late: None,
        jitter_ns: 0,
    },
    retransmits: None,
};

fn add_datagrams(sum: &mut Datagrams, more: &Datagrams) {
    sum.packets = sum.packets.saturating_add(more.packets);
    sum.lost = add(sum.lost, more.lost);
    sum.out_of_order = add(sum.out_of_order, more.out_of_order);
    sum.duplicates = add(sum.duplicates, more.duplicates);
    sum.too_late = add(sum.too_late, more.too_late);
    sum.jitter_ns = sum.jitter_ns.saturating_add(more.jitter_ns);
}

/// The sum of what is known; unknown only if nothing is.
fn add(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_show_as_ipv4() {
        for (name, expected) in [
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::ffff:1", "::ffff:1"),
            ("2001:db8::1", "2001:db8::1"),
            ("host.example", "host.example"),
        ] {
            assert_eq!(peer_host(name), expected);
        }
        assert_eq!(host(&"[::ffff:192.0.2.1]:5201".parse().expect("valid")), "192.0.2.1");
    }

    #[test]
    fn the_unknown_adds_nothing() {
        assert_eq!(add(Some(1), Some(2)), Some(3));
        assert_eq!(add(None, Some(2)), Some(2));
        assert_eq!(add(None, None), None);
    }
}
