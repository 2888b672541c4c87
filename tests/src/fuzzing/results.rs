//! What the other end measured: any bytes as the results document.

use linerate_core::protocol::json::DocumentError;
use linerate_core::protocol::results::{
    OutgoingResults, OutputKind, ReceivedResults, ResultsReader, ResultsStream, ResultsWithOutput,
};

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
    let (Ok(received), output) = whole else { return };
    check_ranges(&received, &output, data);
    check_again(&received, &output);
}

/// Room for streams.
const N: usize = 8;

/// The server's own output, as raw values by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Output {
    text: Vec<u8>,
    json: Vec<u8>,
}

fn read(body: &[u8], chunks: Chunks) -> (Result<ReceivedResults<N>, DocumentError>, Output) {
    let mut reader = ResultsReader::<N>::new();
    let mut output = Output::default();
    let mut sink = |kind, bytes: &[u8]| match kind {
        OutputKind::Text => output.text.extend_from_slice(bytes),
        OutputKind::Json => output.json.extend_from_slice(bytes),
    };
    let mut document = ResultsWithOutput { reader: &mut reader, sink: &mut sink };
    let results = fed(&mut document, body, chunks).and_then(|()| reader.finish());
    (results, output)
}

type Outcome = (Result<ReceivedResults<N>, DocumentError>, Output);

fn assert_same((one, output): &Outcome, (other, other_output): &Outcome) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_same_results(one, other);
            assert_eq!(output, other_output);
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
    assert_eq!(one.jitter_of_batches, other.jitter_of_batches);
    assert_eq!(one.streams, other.streams);
}

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

/// Sent on, with the same output, the same is read.
fn check_again(received: &ReceivedResults<N>, output: &Output) {
    let member = [
        [&b"\"server_output_text\":"[..], &output.text].concat(),
        [&b"\"server_output_json\":"[..], &output.json].concat(),
    ];
    let kept = [&output.text, &output.json].map(|raw| !raw.is_empty());
    let member: Vec<_> =
        member.iter().zip(kept).filter(|(_, kept)| *kept).map(|(m, _)| &m[..]).collect();
    let member = member.join(&b","[..]);
    let outgoing = OutgoingResults {
        cpu: received.cpu,
        sender_has_retransmits: received.sender_has_retransmits.map_or(-1, i8::from),
        congestion: received.congestion.as_deref(),
        stream_count: received.streams.len(),
        stream: |index: usize| received.streams[index],
        concurrent_tests: received.concurrent_tests,
        jitter_of_batches: received.jitter_of_batches,
        server_output_bytes: (!member.is_empty()).then_some(member.len() as u32),
    };
    let (again, came) = read(&written(&outgoing, &member), Chunks::Whole);
    let again = again.expect("what was accepted is accepted again");
    let streams = received.streams.iter().copied().map(as_sent).collect();
    assert_same_results(&again, &ReceivedResults { streams, ..received.clone() });
    assert_eq!(came, *output);
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
