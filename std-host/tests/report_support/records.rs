//! Makes up the records of a test from its settings: a plausible, round-numbered course of events.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use linerate::error::Error;
use linerate::report::{
    Connection, CpuUse, Datagrams, Interval, Progress, SideSummary, SocketBuffers, Span,
    StreamInterval, StreamStart, StreamSummary, TcpStats, TcpSummary, TestEnd, TestStart,
};
use linerate_core::test::{End, Protocol, Role, StreamId, TestSettings};

/// Bytes of each stream in each second.
pub(crate) const BYTES_PER_SECOND: u64 = 12_500_000;
/// Datagrams of each stream in each second.
pub(crate) const PACKETS_PER_SECOND: u64 = 100;
/// Of these, lost.
pub(crate) const LOST_PER_SECOND: u64 = 10;

/// A test from its first to its last event.
pub(crate) fn complete(settings: TestSettings, end: End) -> Vec<Progress> {
    let mut events = vec![connected(settings, end), started(settings, end)];
    for second in 0..u64::from(settings.omit_secs) {
        events.push(interval(settings, end, second, true));
    }
    if settings.omit_secs > 0 {
        events.push(Progress::OmitEnded);
    }
    events.push(interval(settings, end, 0, false));
    events.push(interval(settings, end, 1, false));
    events.push(Progress::Measured(Arc::new(test_end(settings, end, false, None))));
    events.push(Progress::Ended(Arc::new(test_end(settings, end, true, None))));
    events
}

/// A test that breaks off after two seconds, before the peer's results are here.
pub(crate) fn broken(settings: TestSettings, end: End, error: Error) -> Vec<Progress> {
    let mut events = complete(settings, end);
    events.truncate(events.len() - 2);
    events.push(Progress::Ended(Arc::new(test_end(settings, end, false, Some(error)))));
    events
}

/// The last event of a test that came to nothing.
pub(crate) fn failed(error: Error) -> Progress {
    Progress::Ended(Arc::new(TestEnd::failed(error)))
}

pub(crate) fn connected(settings: TestSettings, end: End) -> Progress {
    Progress::Connected(Arc::new(connection(settings, end)))
}

pub(crate) fn connection(settings: TestSettings, end: End) -> Connection {
    Connection {
        end,
        test_number: 3,
        peer_host: "192.0.2.1".into(),
        peer_port: if end == End::Client { 5201 } else { 40_000 },
        cookie: "abcdefghijklmnopqrstuvwxyz234567abcd".into(),
        control_mss: Some(1448),
        path_block_bytes: None,
        time: UNIX_EPOCH + Duration::from_millis(1_796_074_337_399),
        title: None,
        extra_data: None,
        settings: (end == End::Client).then_some(settings),
    }
}

pub(crate) fn started(settings: TestSettings, end: End) -> Progress {
    Progress::Started(Arc::new(start(settings, end)))
}

pub(crate) fn start(settings: TestSettings, end: End) -> TestStart {
    let (client, server) = ("192.0.2.2:40001", "192.0.2.1:5201");
    let (local, remote) = if end == End::Client { (client, server) } else { (server, client) };
    let stream = |index: usize| StreamStart {
        id: StreamId::from_index(index),
        role: settings.role(end, index),
        socket: if end == End::Client { 4 } else { 5 } + 2 * index as i32,
        local: local.parse().expect("address"),
        remote: remote.parse().expect("address"),
    };
    TestStart {
        connection: connection(settings, end),
        settings,
        interval: Some(Duration::from_secs(1)),
        streams: (0..settings.stream_count()).map(stream).collect(),
        buffers: SocketBuffers { requested: 0, send: 16_384, receive: 131_072 },
    }
}

/// The interval that begins at `second`.
pub(crate) fn interval(settings: TestSettings, end: End, second: u64, omitted: bool) -> Progress {
    let span = Span { start_ns: second * SECOND, end_ns: (second + 1) * SECOND };
    let stream = |index: usize| {
        let role = settings.role(end, index);
        StreamInterval {
            id: StreamId::from_index(index),
            role,
            span,
            omitted,
            bytes: BYTES_PER_SECOND,
            datagrams: datagrams(settings, role, 1),
            tcp: (settings.protocol == Protocol::Tcp && role == Role::Sender).then_some(TCP),
        }
    };
    Progress::Interval(Arc::new(Interval {
        span,
        omitted,
        streams: (0..settings.stream_count()).map(stream).collect(),
        details: Vec::new(),
        concurrent_tests: 0,
    }))
}

/// The summary over two seconds.
pub(crate) fn test_end(
    settings: TestSettings,
    end: End,
    peer_told: bool,
    error: Option<Error>,
) -> TestEnd {
    let is_tcp = settings.protocol == Protocol::Tcp;
    let side = |role| SideSummary {
        bytes: 2 * BYTES_PER_SECOND,
        duration_ns: Some(2 * SECOND),
        datagrams: datagrams(settings, role, 2),
        retransmits: (is_tcp && role == Role::Sender).then_some(4),
    };
    let stream = |index: usize| {
        let role = settings.role(end, index);
        StreamSummary {
            id: StreamId::from_index(index),
            role,
            local: side(role),
            remote: peer_told.then(|| side(role.opposite())),
            tcp: (is_tcp && role == Role::Sender).then_some(TCP_TOTAL),
        }
    };
    let congestion = is_tcp.then(|| "cubic".to_owned());
    TestEnd {
        streams: (0..settings.stream_count()).map(stream).collect(),
        details: Vec::new(),
        verdicts: Vec::new(),
        local_cpu: CPU,
        remote_cpu: peer_told.then_some(CPU),
        local_congestion: congestion.clone(),
        remote_congestion: congestion.filter(|_| peer_told),
        engines: Vec::new(),
        remote_batch_jitter: false,
        file: None,
        concurrent_tests: peer_told.then_some(0),
        server_output: None,
        error,
    }
}

fn datagrams(settings: TestSettings, role: Role, seconds: u64) -> Datagrams {
    let packets = PACKETS_PER_SECOND * seconds;
    match (settings.protocol, role) {
        (Protocol::Tcp | Protocol::Sctp, _) => Datagrams::default(),
        (Protocol::Udp, Role::Sender) => Datagrams { packets, ..Datagrams::default() },
        (Protocol::Udp, Role::Receiver) => Datagrams {
            packets,
            lost: Some(LOST_PER_SECOND * seconds),
            out_of_order: Some(0),
            duplicates: Some(0),
            too_late: Some(0),
            jitter_ns: 12_345,
        },
    }
}

const SECOND: u64 = 1_000_000_000;
const CPU: CpuUse = CpuUse {
    total_micropercent: 3_500_000,
    user_micropercent: 1_250_000,
    system_micropercent: 2_250_000,
};
const TCP: TcpStats = TcpStats {
    retransmits: Some(2),
    cwnd_bytes: Some(1 << 20),
    snd_wnd_bytes: Some(1 << 21),
    rtt_us: Some(120),
    rttvar_us: Some(12),
    pmtu_bytes: Some(1500),
    reordering: None,
};
const TCP_TOTAL: TcpSummary = TcpSummary {
    max_cwnd_bytes: 1 << 20,
    max_snd_wnd_bytes: 1 << 21,
    max_rtt_us: 130,
    min_rtt_us: 110,
    mean_rtt_us: 120,
    reordering: None,
};
