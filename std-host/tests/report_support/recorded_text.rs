//! Reads a recorded text report back into the records that it was printed from. The printed numbers
//! are rounded, so records are looked for that round to them, sums included.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linerate::error::Error;
use linerate::report::{
    Connection, CpuUse, Datagrams, DiskFile, Interval, Progress, ServerOutput, SideSummary,
    SocketBuffers, Span, StreamInterval, StreamStart, StreamSummary, TcpStats, TestEnd, TestStart,
};
use linerate_core::test::{End, Protocol, Role, StreamId, TestSettings};
use linerate_core::units::BitsPerSec;

/// The events of the test behind a recorded text.
pub(crate) fn progress(
    text: &str,
    end: End,
    mut settings: TestSettings,
    interval: Option<Duration>,
) -> Vec<Progress> {
    let (text, server_output) = take_server_output(text);
    let text = &text;
    if let Some(bitrate) = after(text, "Target Bitrate: ") {
        settings.bitrate = Some(BitsPerSec(number(bitrate)));
    }
    if let Some(block) = after(text, "streams, ") {
        settings.block_bytes = number(block);
    }
    let connection = connection(text, end, settings);
    let streams = streams(text, end, &settings);
    let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
    let (totals, steps): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.side.is_some());

    let mut events = vec![Progress::Connected(Arc::new(connection.clone()))];
    events.push(Progress::Started(Arc::new(TestStart {
        connection,
        settings,
        interval,
        streams: streams.clone(),
        buffers: SocketBuffers::default(),
    })));
    let mut was_omitted = false;
    for group in groups(&steps) {
        let interval = interval_of(&group, &streams, &settings);
        if was_omitted && !interval.omitted {
            events.push(Progress::OmitEnded);
        }
        was_omitted = interval.omitted;
        events.push(Progress::Interval(Arc::new(interval)));
    }
    let mut ended = test_end(text, &totals, &streams, end, &settings);
    ended.server_output = server_output;
    events.push(Progress::Measured(Arc::new(without_peer(&ended))));
    events.push(Progress::Ended(Arc::new(ended)));
    events
}

/// The client's own lines, and the server's that stand among them.
fn take_server_output(text: &str) -> (String, Option<ServerOutput>) {
    let Some((before, rest)) = text.split_once("\nServer output:\n") else {
        return (text.into(), None);
    };
    let done = "\niperf Done.\n";
    let output = rest.strip_suffix(done).and_then(|output| output.strip_suffix('\n'));
    let output = output.expect("the output stands before the last line");
    (format!("{before}{done}"), Some(ServerOutput::Text(output.into())))
}

fn connection(text: &str, end: End, settings: TestSettings) -> Connection {
    let (host, port) = after(text, "Connecting to host ")
        .or(after(text, "Accepted connection from "))
        .and_then(|rest| rest.split_once(", port "))
        .expect("who is connected");
    Connection {
        end,
        test_number: 1,
        peer_host: host.into(),
        peer_port: number(port),
        cookie: after(text, "Cookie: ").unwrap_or("").into(),
        control_mss: after(text, "Control connection MSS ").map(number),
        path_block_bytes: after(text, "Setting UDP block size to ").map(number),
        time: after(text, "Time: Mon, 30 Nov 2026 ").map_or(UNIX_EPOCH, that_day),
        title: None,
        extra_data: None,
        settings: (end == End::Client).then_some(settings),
    }
}

fn that_day(clock: &str) -> SystemTime {
    let parts: Vec<u64> = clock.trim_end_matches(" GMT").split(':').map(number).collect();
    let second = parts[0] * 3600 + parts[1] * 60 + parts[2];
    UNIX_EPOCH + Duration::from_secs(MIDNIGHT + second)
}

fn streams(text: &str, end: End, settings: &TestSettings) -> Vec<StreamStart> {
    let lines = text.lines().filter(|line| line.contains(" connected to "));
    let parse = |(index, line): (usize, &str)| {
        let words: Vec<&str> = line[5..].split_whitespace().collect();
        let address = |host: &str, port: &str| format!("{host}:{port}").parse().expect("address");
        StreamStart {
            id: StreamId::from_index(index),
            role: settings.role(end, index),
            socket: number(&line[1..4]),
            local: address(words[1], words[3]),
            remote: address(words[6], words[8]),
        }
    };
    lines.enumerate().map(parse).collect()
}

/// Lines of one interval each.
fn groups<'a>(lines: &[&'a Line<'a>]) -> Vec<Vec<&'a Line<'a>>> {
    let mut groups: Vec<Vec<&Line>> = Vec::new();
    for &line in lines {
        let is_next = groups.last().is_none_or(|group| {
            line.socket.is_some() && group.iter().any(|other| other.socket == line.socket)
        });
        if is_next {
            groups.push(Vec::new());
        }
        groups.last_mut().expect("a group was pushed").push(line);
    }
    groups
}

fn interval_of(group: &[&Line], streams: &[StreamStart], settings: &TestSettings) -> Interval {
    let mut intervals: Vec<StreamInterval> = Vec::new();
    for role in [Role::Sender, Role::Receiver] {
        let starts: Vec<_> = streams.iter().filter(|stream| stream.role == role).collect();
        let lines = lines_of(group, &starts);
        if lines.is_empty() {
            continue;
        }
        let sum = group.iter().find(|line| line.socket.is_none() && line.role == lines[0].role);
        let (span, bytes) = solve(&lines, sum.copied());
        for ((line, start), bytes) in lines.iter().zip(starts).zip(bytes) {
            intervals.push(StreamInterval {
                id: start.id,
                role,
                span,
                omitted: line.is_omitted,
                bytes,
                datagrams: line.datagrams(role, settings),
                tcp: line.tcp(settings),
            });
        }
    }
    intervals.sort_by_key(|interval| interval.id);
    let first = intervals.first().expect("an interval has streams");
    Interval {
        span: first.span,
        omitted: first.omitted,
        concurrent_tests: 0,
        streams: intervals,
        details: Vec::new(),
    }
}

fn test_end(
    text: &str,
    totals: &[&Line],
    streams: &[StreamStart],
    end: End,
    settings: &TestSettings,
) -> TestEnd {
    let mut summaries: Vec<StreamSummary> = Vec::new();
    for role in [Role::Sender, Role::Receiver] {
        let starts: Vec<_> = streams.iter().filter(|stream| stream.role == role).collect();
        let local = sides(totals, &starts, role, settings);
        let remote = sides(totals, &starts, role.opposite(), settings);
        for (index, start) in starts.iter().enumerate() {
            // A server has not heard from its client when it prints; whatever it hears later must
            // not change the text.
            let remote = remote.get(index).copied();
            let surprise = SideSummary { bytes: 1, ..SideSummary::default() };
            summaries.push(StreamSummary {
                id: start.id,
                role,
                local: local[index],
                remote: Some(remote.unwrap_or(surprise)),
                tcp: None,
            });
        }
    }
    summaries.sort_by_key(|summary| summary.id);
    let congestion = [after(text, "snd_tcp_congestion "), after(text, "rcv_tcp_congestion ")]
        .map(|name| name.map(String::from));
    let [sender, receiver] = congestion;
    let sends = streams.iter().any(|stream| stream.role == Role::Sender);
    let (local, remote) = if sends { (sender, receiver) } else { (receiver, sender) };
    let is_complete = end == End::Server || text.contains("iperf Done.");
    let file = summaries.first().and_then(|stream| file(text, stream.role));
    TestEnd {
        streams: summaries,
        details: Vec::new(),
        verdicts: Vec::new(),
        local_cpu: after(text, "CPU Utilization: local/sender ").map_or(NO_CPU, cpu),
        remote_cpu: after(text, ", remote/receiver ").map(cpu),
        local_congestion: local,
        remote_congestion: remote.or((end == End::Server).then(|| "told-later".into())),
        engines: Vec::new(),
        remote_batch_jitter: false,
        file,
        concurrent_tests: None,
        server_output: None,
        error: (!is_complete).then_some(Error::Interrupted { by: None }),
    }
}

fn sides(
    totals: &[&Line],
    starts: &[&StreamStart],
    side: Role,
    settings: &TestSettings,
) -> Vec<SideSummary> {
    let totals: Vec<&Line> =
        totals.iter().copied().filter(|line| line.side == Some(side)).collect();
    let lines = lines_of(&totals, starts);
    if lines.is_empty() {
        return Vec::new();
    }
    let sum = totals.iter().find(|line| line.socket.is_none() && line.role == lines[0].role);
    let (span, bytes) = solve(&lines, sum.copied());
    let side_of = |(line, bytes): (&&Line, u64)| SideSummary {
        bytes,
        duration_ns: Some(span.end_ns),
        datagrams: line.datagrams(Role::Receiver, settings),
        retransmits: line.tcp(settings).and_then(|tcp| tcp.retransmits),
    };
    lines.iter().zip(bytes).map(side_of).collect()
}

fn without_peer(end: &TestEnd) -> TestEnd {
    let mut end = end.clone();
    end.streams.iter_mut().for_each(|stream| stream.remote = None);
    end.remote_cpu = None;
    end.remote_congestion = None;
    end.server_output = None;
    end
}

fn cpu(text: &str) -> CpuUse {
    let percents: Vec<f64> =
        text.split(['%', '(', '/', 'u']).filter_map(|part| part.trim().parse().ok()).collect();
    let micro = |percent: f64| (percent * 1e6).round() as u64;
    CpuUse {
        total_micropercent: micro(percents[0]),
        user_micropercent: micro(percents[1]),
        system_micropercent: micro(percents[2]),
    }
}

fn file(text: &str, role: Role) -> Option<DiskFile> {
    let name = after(text, "Sent 1.00 MByte / 1.00 MByte (100%) of ")?;
    Some(DiskFile { name: name.into(), size_bytes: 1 << 20, role })
}

fn lines_of<'a>(lines: &[&'a Line<'a>], streams: &[&StreamStart]) -> Vec<&'a Line<'a>> {
    let find = |stream: &&StreamStart| {
        lines.iter().copied().find(|line| line.socket == Some(stream.socket))
    };
    streams.iter().filter_map(find).collect()
}

/// A line with numbers.
struct Line<'a> {
    socket: Option<i32>,
    role: &'a str,
    start: f64,
    end: f64,
    /// Bytes, lowest and highest that print like this.
    bytes: (f64, f64),
    /// Bits per second, likewise.
    rate: (f64, f64),
    rest: Vec<&'a str>,
    is_omitted: bool,
    side: Option<Role>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (id, rest) = line.strip_prefix('[')?.split_once(']')?;
        let (role, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let &[span, "sec", amount, amount_unit, rate, rate_unit, ref rest @ ..] = &words[..] else {
            return None;
        };
        let (start, end) = span.split_once('-')?;
        Some(Self {
            socket: (id != "SUM").then(|| number(id)),
            role,
            start: number(start),
            end: number(end),
            bytes: range(amount, amount_unit),
            rate: bits_range(rate, rate_unit.strip_suffix("/sec")?),
            rest: rest.to_vec(),
            is_omitted: rest.contains(&"(omitted)"),
            side: match rest.last() {
                Some(&"sender") => Some(Role::Sender),
                Some(&"receiver") => Some(Role::Receiver),
                _ => None,
            },
        })
    }

    fn datagrams(&self, role: Role, settings: &TestSettings) -> Datagrams {
        match (settings.protocol, role) {
            (Protocol::Tcp | Protocol::Sctp, _) => Datagrams::default(),
            (Protocol::Udp, Role::Sender) => {
                Datagrams { packets: number(self.rest[0]), ..Datagrams::default() }
            }
            (Protocol::Udp, Role::Receiver) => {
                let (lost, packets) = self.rest[2].split_once('/').expect("lost/total");
                // A tenth of a microsecond more, so that means of rounded values round as recorded.
                let jitter_ns = (number::<f64>(self.rest[0]) * 1e6).round() as u64 + 100;
                Datagrams {
                    packets: number(packets),
                    lost: Some(number(lost)),
                    jitter_ns,
                    ..Datagrams::default()
                }
            }
        }
    }

    fn tcp(&self, settings: &TestSettings) -> Option<TcpStats> {
        let is_tcp = settings.protocol == Protocol::Tcp;
        let retransmits = self.rest.first()?.parse().ok().filter(|_| is_tcp)?;
        let cwnd = match self.rest[1..] {
            [amount, unit, ..] => Some(number::<f64>(amount) * scale(unit)),
            _ => None,
        };
        Some(TcpStats {
            retransmits: Some(retransmits),
            cwnd_bytes: cwnd.map(|bytes| bytes as u64),
            ..TcpStats::default()
        })
    }
}

/// A span and byte counts that print as `lines` do, and add up to what `sum` prints.
fn solve(lines: &[&Line], sum: Option<&Line>) -> (Span, Vec<u64>) {
    let first = lines[0];
    let all: Vec<&Line> = lines.iter().copied().chain(sum).collect();
    let (mut shortest, mut longest) = if first.start == 0.0 {
        (first.end - SHOWN, first.end + SHOWN)
    } else {
        (first.end - first.start - 2.0 * SHOWN, first.end - first.start + 2.0 * SHOWN)
    };
    for line in &all {
        shortest = shortest.max(8.0 * line.bytes.0 / line.rate.1);
        longest = longest.min(8.0 * line.bytes.1 / line.rate.0);
    }
    for step in 0..=STEPS {
        let duration = shortest + (longest - shortest) * f64::from(step) / f64::from(STEPS);
        if duration <= 0.0 {
            continue;
        }
        let bytes_range = |line: &Line| {
            let [low, high] = [line.rate.0, line.rate.1].map(|rate| rate * duration / 8.0);
            (low.max(line.bytes.0), high.min(line.bytes.1))
        };
        for share in 0..=STEPS {
            let share = f64::from(share) / f64::from(STEPS);
            let pick = |line: &&Line| {
                let (low, high) = bytes_range(line);
                low + (high - low) * share
            };
            let bytes: Vec<f64> = lines.iter().map(pick).collect();
            let fits = |line: &Line, bytes: f64| {
                let (low, high) = bytes_range(line);
                low <= bytes && bytes <= high
            };
            let total: f64 = bytes.iter().sum();
            if lines.iter().zip(&bytes).all(|(line, &bytes)| fits(line, bytes))
                && sum.is_none_or(|sum| fits(sum, total))
            {
                let lowest = if first.start == 0.0 { 0.0 } else { first.start - SHOWN };
                let highest = if first.start == 0.0 { 0.0 } else { first.start + SHOWN };
                let start = (first.end - duration).clamp(lowest, highest);
                let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
                let span = Span { start_ns: nanos(start), end_ns: nanos(start + duration) };
                return (span, bytes.iter().map(|bytes| bytes.round() as u64).collect());
            }
        }
    }
    panic!("no numbers print like this: {} to {}", first.start, first.end);
}

/// The values that print as `number`, a little inside of the exact limits.
fn range(text: &str, unit: &str) -> (f64, f64) {
    let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = 0.49 * 0.1f64.powi(decimals as i32);
    let value: f64 = number(text);
    // Below one it would have another unit, or it has the one asked for.
    let lowest = if value >= 1.0 { 1.0 } else { 0.0 };
    ((value - half).max(lowest) * scale(unit), (value + half) * scale(unit))
}

fn bits_range(text: &str, unit: &str) -> (f64, f64) {
    let (low, high) = range(text, unit);
    let bits = if unit.ends_with("Bytes") { 8.0 } else { 1.0 };
    (low * bits, high * bits)
}

/// Bytes, or bits, in a unit as printed.
fn scale(unit: &str) -> f64 {
    let power = |step: f64| match unit.as_bytes()[0].to_ascii_lowercase() {
        b'k' => step,
        b'm' => step.powi(2),
        b'g' => step.powi(3),
        b't' => step.powi(4),
        _ => 1.0,
    };
    match (unit.ends_with("Bytes"), unit.ends_with("Bytes") || unit.ends_with("bits")) {
        (true, _) => power(1024.0),
        (false, true) => power(1000.0),
        _ => panic!("unit {unit}"),
    }
}

fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(words)?;
    rest.lines().next()
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text[..end].parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

const NO_CPU: CpuUse =
    CpuUse { total_micropercent: 0, user_micropercent: 0, system_micropercent: 0 };
/// Seconds that a time may differ from what is printed of it.
const SHOWN: f64 = 0.0045;
/// 30 November 2026, 00:00, when the recordings were made.
const MIDNIGHT: u64 = 1_795_996_800;
const STEPS: u32 = 200;
