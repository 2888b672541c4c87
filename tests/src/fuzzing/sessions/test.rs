//! Tests and documents made of random decisions: what an honest end could ask for or measure.

use std::time::Duration;

use linerate_core::protocol::extension::Offer;
use linerate_core::protocol::parameters::{ClientText, OutgoingParameters};
use linerate_core::protocol::results::{OutgoingResults, ResultsStream};
use linerate_core::report::{CpuUse, StreamDetail, ThreadUse};
use linerate_core::session::{ClientConfig, Deadlines, ServerConfig};
use linerate_core::stats::{Sample, Tally, TcpStats};
use linerate_core::test::{Direction, Limits, Protocol, StreamId, TestSettings};

use super::super::documents::{framed, written};
use super::super::input::Input;

/// Room for streams at both ends.
pub(super) const N: usize = 8;

/// A test of up to [`N`] streams that lasts seconds at most.
pub(super) fn settings(input: &mut Input<'_>) -> TestSettings {
    let (flags, limits) = (input.byte(), input.byte());
    let protocol = if flags & 1 == 0 { Protocol::Tcp } else { Protocol::Udp };
    let direction = match flags >> 1 & 3 {
        0 | 3 => Direction::Forward,
        1 => Direction::Reverse,
        _ => Direction::Bidirectional,
    };
    TestSettings {
        direction,
        parallel: 1 + u16::from(flags >> 3 & 3),
        omit_secs: u32::from(flags >> 5 & 1) * 2,
        server_output: flags & 64 != 0,
        counters_64bit: flags & 128 != 0,
        limits: Limits {
            seconds: (limits & 1 == 0).then_some(1 + u32::from(limits >> 4 & 1)),
            bytes: (limits & 2 != 0).then(|| 1 + u64::from(input.u16())),
            blocks: (limits & 4 != 0).then(|| 1 + u64::from(input.byte())),
        },
        ..TestSettings::new(protocol)
    }
}

pub(super) fn client(settings: TestSettings, interval: Option<Duration>) -> ClientConfig<'static> {
    ClientConfig {
        settings,
        packet_rate: None,
        text: ClientText { title: Some("fuzz"), ..ClientText::default() },
        client_version: linerate_core::IPERF3_EQUIVALENT,
        interval,
        offer: settings.counters_64bit.then_some(Offer::OWN),
        deadlines: Deadlines::default(),
    }
}

pub(super) fn server(input: &mut Input<'_>, interval: Option<Duration>) -> ServerConfig {
    let extension = (input.byte() & 1 == 0).then_some(Offer::OWN);
    ServerConfig { interval, extension, ..ServerConfig::default() }
}

/// A framed parameters document.
pub(super) fn parameters(settings: &TestSettings) -> Vec<u8> {
    let (text, client_version) = (ClientText::default(), "3.21");
    let extension = settings.counters_64bit.then_some(Offer::OWN);
    let document = OutgoingParameters { settings, text: &text, client_version, extension };
    framed(&written(&document, b""))
}

/// A framed results document, of any number of streams.
pub(super) fn results(input: &mut Input<'_>) -> Vec<u8> {
    let (stream_count, most) = (usize::from(input.below(10)), input.byte() & 1 != 0);
    let count = |value: u16| if most { u64::MAX } else { value.into() };
    let numbers = [input.u16(), input.u16(), input.u16()];
    let document = OutgoingResults {
        cpu: CpuUse { total_micropercent: count(numbers[0]), ..CpuUse::default() },
        sender_has_retransmits: (numbers[0] % 3) as i8 - 1,
        congestion: None,
        stream_count,
        stream: |index| ResultsStream {
            number: StreamId::from_index(index).number(),
            bytes: count(numbers[0]),
            retransmits: (numbers[0] & 1 == 0).then(|| count(numbers[1])),
            jitter_ns: count(numbers[1]),
            lost: count(numbers[1]),
            omitted_lost: (numbers[1] & 1 == 0).then(|| count(numbers[2])),
            packets: count(numbers[2]),
            omitted_packets: (numbers[1] & 1 == 0).then(|| count(numbers[0])),
            out_of_order: (numbers[2] & 1 == 0).then(|| count(numbers[0])),
            duplicates: (numbers[2] & 2 == 0).then(|| count(numbers[1])),
            too_late: (numbers[2] & 2 == 0).then(|| count(numbers[2])),
            start_ns: Some(0),
            end_ns: Some(count(numbers[2])),
        },
        detail: (numbers[1] & 2 == 0).then_some(|_| StreamDetail {
            thread: Some(ThreadUse {
                wall_ns: count(numbers[0]),
                cpu_ns: count(numbers[1]),
                queued_ns: None,
            }),
            buffer_bytes: Some(count(numbers[2])),
            ..StreamDetail::default()
        }),
        concurrent_tests: None,
        jitter_of_batches: false,
        server_output_bytes: None,
    };
    framed(&written(&document, b""))
}

/// What the flows of `count` streams have counted when `total` units have passed.
pub(super) fn samples(count: usize, total: u64) -> Vec<Sample> {
    let tally = Tally {
        bytes: total,
        blocks: total / 1000,
        packets: total / 1000,
        lost: total / 7000,
        ..Tally::default()
    };
    let tcp = TcpStats { retransmits: Some(total / 9000), rtt_us: Some(70), ..TcpStats::default() };
    vec![Sample { tally, tcp: Some(tcp), ..Sample::default() }; count]
}
