//! What a client may write into its results: what cannot be read ends the test with iperf3's number,
//! and what is unknown is shown as unknown, never as a giant number. The server's own part stands
//! in its document in any case.

use std::net::SocketAddr;

use linerate_tests::script::{Peer, Step, frame, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

#[test]
fn results_that_cannot_be_read_end_the_test_with_their_number() {
    let stream = |members: &str| results(&format!("{{{members}}}"));
    let rows: Vec<(&str, Step, i32)> = vec![
        ("no bytes", frame(""), RECV_RESULTS),
        ("no JSON", frame("thank you"), RECV_RESULTS),
        ("cut off", frame("{\"cpu_util_total\":1,\"streams\":[{"), RECV_RESULTS),
        ("nested", frame("[".repeat(100_000)), RECV_RESULTS),
        ("nested within", frame(format!("{{\"x\":{}", "{\"x\":".repeat(9000))), RECV_RESULTS),
        ("no streams", frame("{\"cpu_util_total\":1,\"cpu_util_user\":1}"), RECV_RESULTS),
        ("streams of a wrong type", results_with("\"streams\":7"), RECV_RESULTS),
        ("stream of a wrong type", results("7"), RECV_RESULTS),
        ("no id", stream(&STREAM.replace("\"id\":1,", "")), RECV_RESULTS),
        ("id of a wrong type", stream(&STREAM.replace("\"id\":1", "\"id\":\"1\"")), RECV_RESULTS),
        ("no bytes of a stream", stream("\"id\":1"), RECV_RESULTS),
        ("half omitted", stream(&format!("{STREAM},\"omitted_errors\":0")), RECV_RESULTS),
        ("bad escape", results_with("\"congestion_used\":\"\\x\",\"streams\":[]"), RECV_RESULTS),
        ("unknown stream", stream(&STREAM.replace("\"id\":1", "\"id\":2")), STREAM_ID),
        ("negative stream", stream(&STREAM.replace("\"id\":1", "\"id\":-1")), STREAM_ID),
        ("huge stream", stream(&STREAM.replace("\"id\":1", "\"id\":1e30")), STREAM_ID),
        ("endless", Step::Send(u32::MAX.to_be_bytes().to_vec()), RECV_RESULTS),
    ];
    let server = Server::start(Tool::Linerate, &["-J"]);
    for (name, step, number) in &rows {
        let said = said(&server, step);
        let refusal = [&[SERVER_ERROR][..], &number.to_be_bytes(), &[0; 4]].concat();
        assert_eq!(said, refusal, "{name}");
    }
    let utf8 = [b"{\"congestion_used\":\"".as_slice(), b"\xff\xc0", b"\",\"streams\":[]}"].concat();
    assert_eq!(said(&server, &frame(utf8)).first(), Some(&SERVER_ERROR), "no UTF-8");

    let ended = server.stop("INT").expect("the server ends when it is told to");
    let documents = ended.documents().expect("a document for each client");
    for (document, (name, ..)) in documents.iter().zip(&rows) {
        assert!(document["error"].is_string(), "{name}: {document}");
        assert_eq!(document["end"]["sum_received"]["bytes"], 4096, "{name}: what it received");
    }
}

#[test]
fn what_a_peer_does_not_know_is_no_number() {
    let unknown = ["-1", "4294967295", "18446744073709551615", "1.8446744073709552e19"];
    let server = Server::start(Tool::Linerate, &["-J"]);
    for value in unknown {
        let stream = STREAM.replace("\"retransmits\":0", &format!("\"retransmits\":{value}"));
        let said = said(&server, &results(&format!("{{{stream}}}")));
        assert_eq!(said.last(), Some(&DISPLAY_RESULTS), "{value}");
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let documents = ended.documents().expect("a document for each client");
    for (document, value) in documents.iter().zip(unknown) {
        let sent = &document["end"]["sum_sent"];
        assert_eq!(sent["bytes"], 4000, "what the client says it sent: {document}");
        assert!(sent.get("retransmits").is_none(), "{value}: {sent}");
        assert!(document.get("error").is_none(), "{value}: {document}");
    }
}

/// What the server says to these results of an honest test, up to its close.
fn said(server: &Server, results: &Step) -> Vec<u8> {
    let address = SocketAddr::from(([127, 0, 0, 1], server.port()));
    let mut peer = Peer::connect(address).expect("the server listens");
    peer.follow(&honest_client()[..BEFORE_RESULTS]).expect("the test is honest");
    peer.follow(std::slice::from_ref(results)).expect("the server reads");
    // Its results, and the word that all is said; then it waits for the client's goodbye.
    if peer.follow(&[Step::Expect(SERVER_ERROR)]).is_ok() {
        let rest = peer.until_closed().expect("a client that cannot be read is sent away");
        return [&[SERVER_ERROR][..], &rest].concat();
    }
    // The first byte of the frame's length has been read.
    peer.follow(&[Step::Send(vec![IPERF_DONE])]).expect("the server reads");
    peer.until_closed().expect("the test is over")
}

fn results(stream: &str) -> Step {
    results_with(&format!("\"streams\":[{stream}]"))
}

fn results_with(members: &str) -> Step {
    frame(format!(
        "{{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\
         \"sender_has_retransmits\":1,{members}}}"
    ))
}

/// As releases before 3.2 write it: no times, and nothing of an omitted start.
const STREAM: &str =
    "\"id\":1,\"bytes\":4000,\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0";
/// Steps of an honest client up to the server's wish for its results.
const BEFORE_RESULTS: usize = 10;
const SERVER_ERROR: u8 = 0xfe;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;
const RECV_RESULTS: i32 = 117;
const STREAM_ID: i32 = 208;
