//! What the other end measured: any bytes as the results document.

use linerate_core::protocol::json::DocumentError;
use linerate_core::protocol::results::{
    OutgoingResults, OutputKind, ReceivedResults, ResultsDocument, ResultsReader, ResultsStream,
};
use linerate_core::report::{Percentiles, StreamDetail};

use super::documents::{fed, written};
use super::input::Chunks;

/// All bytes are one document.
pub fn results(data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let [whole, others @ ..] = Chunks::of(data).map(|chunks| read(data, chunks));
    for other in &others {
        assert_same(&whole, other);
    }
    let (Ok(received), handed_on) = whole else { return };
    check_ranges(&received, &handed_on.output, data);
    handed_on.details.iter().for_each(|(_, detail)| check_detail(detail));
    check_stock(&received, data);
    check_again(&received, &handed_on);
}

/// Room for streams.
const N: usize = 8;

/// The server's own output, as raw values by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Output {
    text: Vec<u8>,
    json: Vec<u8>,
}

/// What is not kept by the reader.
#[derive(Debug, Default, PartialEq, Eq)]
struct HandedOn {
    output: Output,
    details: Vec<(u32, StreamDetail)>,
}

fn read(body: &[u8], chunks: Chunks) -> Outcome {
    let mut reader = ResultsReader::<N>::of_linerate();
    let HandedOn { mut output, mut details } = HandedOn::default();
    let mut document = ResultsDocument {
        reader: &mut reader,
        output: &mut |kind, bytes| match kind {
            OutputKind::Text => output.text.extend_from_slice(bytes),
            OutputKind::Json => output.json.extend_from_slice(bytes),
        },
        details: &mut |number, detail| details.push((number, detail)),
    };
    let results = fed(&mut document, body, chunks).and_then(|()| reader.finish());
    (results, HandedOn { output, details })
}

type Outcome = (Result<ReceivedResults<N>, DocumentError>, HandedOn);

fn assert_same((one, handed_on): &Outcome, (other, other_handed_on): &Outcome) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_same_results(one, other);
            assert_eq!(handed_on, other_handed_on);
        }
        // What has been handed on of a document that turns out to be broken may differ.
        (Err(one), Err(other)) => assert_eq!(one, other),
        _ => panic!("{one:?} differs from {other:?}"),
    }
}

fn assert_same_results(one: &ReceivedResults<N>, other: &ReceivedResults<N>) {
    assert_eq!(one.cpu, other.cpu);
    assert_eq!(one.sender_has_retransmits, other.sender_has_retransmits);
    assert_eq!(one.congestion, other.congestion);
    assert_eq!(one.concurrent_tests, other.concurrent_tests);
    assert_eq!(one.jitter_of_batches, other.jitter_of_batches);
    assert_eq!(one.streams, other.streams);
}

/// What a linerate end takes, a stock one takes, too, without what is not iperf3's.
fn check_stock(received: &ReceivedResults<N>, body: &[u8]) {
    let mut reader = ResultsReader::<N>::new();
    let stock = fed(&mut reader, body, Chunks::Whole).and_then(|()| reader.finish());
    let own =
        ReceivedResults { concurrent_tests: None, jitter_of_batches: false, ..received.clone() };
    assert_same_results(&stock.expect("it is the less strict one"), &own);
}

fn check_detail(detail: &StreamDetail) {
    let percentiles =
        [detail.delay_variation, detail.delay_differences, detail.gaps, detail.round_trips];
    for Percentiles { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns } in
        percentiles.into_iter().flatten()
    {
        assert!((1..=MOST).contains(&count) && max_ns <= MOST, "{detail:?}");
        assert!([p50_ns, p90_ns, p99_ns, p999_ns, max_ns].is_sorted(), "{detail:?}");
    }
    if let Some(thread) = detail.thread {
        assert!(thread.wall_ns <= MOST && thread.cpu_ns <= thread.wall_ns);
        assert!(thread.queued_ns.is_none_or(|queued_ns| queued_ns <= thread.wall_ns));
    }
    if let Some(waits) = detail.waits {
        assert!(waits.busy_us <= MOST);
        assert!(waits.receive_window_us.max(waits.send_buffer_us) <= waits.busy_us);
    }
    let rates = [detail.delivery_bytes_per_sec, detail.window_bytes, detail.buffer_bytes];
    assert!(rates.into_iter().flatten().all(|value| value <= MOST), "{detail:?}");
}

/// No number of a detail is larger.
const MOST: u64 = 1 << 53;

fn check_ranges(received: &ReceivedResults<N>, output: &Output, data: &[u8]) {
    assert!(received.congestion.as_ref().is_none_or(|name| !name.is_empty()));
    let most = i64::MAX as u64;
    for stream in &received.streams {
        let counts = [stream.bytes, stream.jitter_ns, stream.lost, stream.packets];
        assert!(counts.into_iter().all(|count| count < most), "{stream:?}");
        assert_ne!(stream.retransmits, Some(u32::MAX.into()), "that means unknown");
    }
    for raw in [&output.text, &output.json].into_iter().filter(|raw| !raw.is_empty()) {
        assert!(data.windows(raw.len()).any(|window| window == raw), "output passes as it came");
    }
    if !output.text.is_empty() {
        assert!(output.text.len() > 1 && output.text.starts_with(b"\""));
        assert!(output.text.ends_with(b"\""));
    }
    if !output.json.is_empty() {
        assert!(output.json.starts_with(b"{") && output.json.ends_with(b"}"));
    }
}

/// Sent on, with the same output and the details in their order, the same is read.
fn check_again(received: &ReceivedResults<N>, HandedOn { output, details }: &HandedOn) {
    let member = [
        [&b"\"server_output_text\":"[..], &output.text].concat(),
        [&b"\"server_output_json\":"[..], &output.json].concat(),
    ];
    let kept = [&output.text, &output.json].map(|raw| !raw.is_empty());
    let member: Vec<_> =
        member.iter().zip(kept).filter(|(_, kept)| *kept).map(|(m, _)| &m[..]).collect();
    let member = member.join(&b","[..]);
    let detail =
        |index| details.get(index).map_or_else(StreamDetail::default, |(_, detail)| *detail);
    let outgoing = OutgoingResults {
        cpu: received.cpu,
        sender_has_retransmits: received.sender_has_retransmits.map_or(-1, i8::from),
        congestion: received.congestion.as_deref(),
        stream_count: received.streams.len(),
        stream: |index: usize| received.streams[index],
        detail: (!details.is_empty()).then_some(detail),
        concurrent_tests: received.concurrent_tests,
        jitter_of_batches: received.jitter_of_batches,
        server_output_bytes: (!member.is_empty()).then_some(member.len() as u32),
    };
    let (again, handed_on) = read(&written(&outgoing, &member), Chunks::Whole);
    let again = again.expect("what was accepted is accepted again");
    let streams = received.streams.iter().copied().map(as_sent).collect();
    assert_same_results(&again, &ReceivedResults { streams, ..received.clone() });
    let count = if details.is_empty() { 0 } else { received.streams.len() };
    let details = (0..count).map(|index| (received.streams[index].number, detail(index))).collect();
    assert_eq!(handed_on, HandedOn { output: output.clone(), details });
}

/// The counts of the omitted start are sent only together, and what is out of order only if there is
/// any.
fn as_sent(stream: ResultsStream) -> ResultsStream {
    let omitted = stream.omitted_lost.zip(stream.omitted_packets);
    ResultsStream {
        omitted_lost: omitted.map(|(lost, _)| lost),
        omitted_packets: omitted.map(|(_, packets)| packets),
        out_of_order: stream.out_of_order.filter(|&count| count > 0),
        ..stream
    }
}
