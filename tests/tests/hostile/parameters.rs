//! What a client may write into its parameters, key by key: each value that cannot be is refused
//! with iperf3's number and named in the server's log with whose it was; what is merely missing or
//! unknown is no fault.

use std::net::SocketAddr;

use linerate_tests::script::{Peer, Step, frame, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

/// A document, the number that the client hears, and words of the server's log.
struct Row {
    text: String,
    number: i32,
    words: Vec<String>,
}

const NUMBERS: [&str; 21] = [
    "omit",
    "server_affinity",
    "time",
    "num",
    "blockcount",
    "MSS",
    "parallel",
    "window",
    "len",
    "bandwidth",
    "fqrate",
    "pacing_timer",
    "burst",
    "gso",
    "gso_dg_size",
    "gso_bf_size",
    "gro",
    "gro_bf_size",
    "TOS",
    "flowlabel",
    "get_server_output",
];
const FLAGS: [&str; 7] = ["tcp", "udp", "sctp", "nodelay", "reverse", "bidirectional", "mptcp"];
const TEXTS: [&str; 6] =
    ["title", "extra_data", "congestion", "congestion_used", "authtoken", "client_version"];

#[test]
fn known_keys_of_a_wrong_type_are_refused_and_named() {
    let mut rows = Vec::new();
    let mut add = |keys: &[&str], values: &[&str]| {
        for key in keys {
            for value in values {
                rows.push(row(with(key, value), RECV_PARAMS, &[key, "wrong type"]));
            }
        }
    };
    // Each key once with another type, and one of each kind with all other types.
    add(&NUMBERS, &["\"1\""]);
    add(&FLAGS, &["1"]);
    add(&TEXTS, &["1"]);
    add(&["parallel"], &["[1]", "{\"n\":1}", "null", "true", "[[[]]]", "\"\\u0000\""]);
    add(&["reverse"], &["\"yes\"", "[]", "{}", "null"]);
    add(&["title"], &["[\"a\"]", "{\"a\":\"b\"}", "null", "false"]);
    meet(&rows);
}

#[test]
fn values_out_of_range_are_refused_with_their_number_and_named() {
    let key = |key, value, number, words: &[&str]| row(with(key, value), number, words);
    let udp = |len: &str| format!("{{\"udp\":true,\"time\":1,\"parallel\":1,\"len\":{len}}}");
    meet(&[
        key("parallel", "0", 6, &["\"parallel\"", "0", "invalid number of parallel streams"]),
        key("parallel", "-3", 6, &["-3 for \"parallel\""]),
        key("parallel", "129", 6, &["129 for \"parallel\""]),
        key("parallel", "1e300", 6, &["\"parallel\""]),
        key("len", "0", 7, &["0 for \"len\"", "block size"]),
        key("len", "2097152", 7, &["2097152 for \"len\""]),
        key("len", "-1", 7, &["-1 for \"len\""]),
        row(udp("15"), 20, &["15 for \"len\"", "minimum = 16"]),
        row(udp("65508"), 20, &["65508 for \"len\""]),
        row(udp("-16"), 20, &["-16 for \"len\""]),
        key("time", "86401", 5, &["86401 for \"time\""]),
        key("time", "-1", 5, &["-1 for \"time\""]),
        key("omit", "601", 12, &["601 for \"omit\""]),
        key("window", "536870913", 8, &["\"window\""]),
        key("MSS", "32768", 10, &["\"MSS\""]),
        key("burst", "1001", 15, &["\"burst\""]),
        key("TOS", "256", 21, &["\"TOS\""]),
        key("flowlabel", "1048576", 127, &["\"flowlabel\""]),
        key("server_affinity", "1025", 132, &["\"server_affinity\""]),
        key("bandwidth", "-1", RECV_PARAMS, &["-1 for \"bandwidth\""]),
        key("num", "-1", RECV_PARAMS, &["-1 for \"num\""]),
        key("gro", "2", RECV_PARAMS, &["2 for \"gro\""]),
    ]);
}

#[test]
fn text_that_is_no_json_is_refused() {
    let deep_in = |open: &str, times| format!("{{\"x\":{}", open.repeat(times));
    let mut rows: Vec<Row> = [
        "{\"title\":\"\\q\"}",
        "{\"title\":\"\\u12\"}",
        "{\"title\":\"\\ud800\"}",
        "{\"title\":\"\\udc00\\ud800\"}",
        "{\"title\":\"a\nb\"}",
        "{\"title\":\"never closed",
        "{\"time\":01}",
        "{\"time\":+1}",
        "{\"time\":1.}",
        "{\"time\":.5}",
        "{\"time\":Infinity}",
        "{\"time\":0x10}",
        "{time:1}",
        "{'time':1}",
        "{\"time\":1,}",
        "\0\0\0\0",
    ]
    .into_iter()
    .map(|text| row(text, RECV_PARAMS, &["JSON"]))
    .collect();
    rows.push(row(deep_in("[", 4000), RECV_PARAMS, &["nested too deeply"]));
    rows.push(row(deep_in("{\"x\":", 1500), RECV_PARAMS, &["nested too deeply"]));
    meet(&rows);
    let bytes: [&[u8]; 3] =
        [b"{\"title\":\"\xff\xfe\"}", b"{\"title\":\"\xc0\xaf\"}", b"{\"title\":\"\xed\xa0\x80\"}"];
    let server = Server::start(Tool::Linerate, &["-J"]);
    for text in bytes {
        assert_eq!(said(&server, text), refusal(RECV_PARAMS), "{text:?}");
    }
}

/// Missing keys have their defaults, flags count by presence, unknown keys of any kind are passed
/// over, the first of two counts, and what an old client leaves out is known.
#[test]
fn what_is_missing_or_unknown_is_no_fault() {
    let server = Server::start(Tool::Linerate, &[]);
    for text in [
        "{}",
        "[]",
        "{\"reverse\":false}",
        "{\"tcp\":false,\"num\":0,\"blockcount\":0}",
        "{\"num\":1048576}",
        "{\"PARALLEL\":2,\"parallel\":0}",
        "{\"unknown\":{\"a\":[1,{\"b\":null}]},\"other\":\"\\ud83d\\ude00\"}",
        "{\"time\":1.9,\"parallel\":1.0e0,\"udp_counters_64bit\":0}",
        "{\"get_server_output\":1,\"repeating_payload\":5,\"zerocopy\":0}",
    ] {
        assert_eq!(said(&server, text.as_bytes()), [CREATE_STREAMS], "{text}");
    }
}

#[test]
fn the_log_says_whose_parameters_were_refused() {
    let server = Server::start(Tool::Linerate, &[]);
    for (key, value) in [("parallel", "[]"), ("time", "-1"), ("title", "7")] {
        said(&server, with(key, value).as_bytes());
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    for key in ["\"parallel\"", "-1 for \"time\"", "\"title\""] {
        let mut lines = ended.stderr.lines();
        let line =
            lines.find(|line| line.contains(key)).unwrap_or_else(|| panic!("{key}: {ended}"));
        assert!(line.contains("linerate: error - "), "{line}");
        assert!(line.ends_with("(client 127.0.0.1)"), "{line}");
    }
}

fn row(text: impl Into<String>, number: i32, words: &[&str]) -> Row {
    Row { text: text.into(), number, words: words.iter().map(ToString::to_string).collect() }
}

fn meet(rows: &[Row]) {
    let server = Server::start(Tool::Linerate, &["-J"]);
    // One after the other, so that the documents are in this order.
    for Row { text, number, .. } in rows {
        assert_eq!(said(&server, text.as_bytes()), refusal(*number), "{text:.60}");
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let documents = ended.documents().expect("a document for each client");
    let errors = documents.iter().map(|document| document["error"].to_string().replace('\\', ""));
    for (Row { text, words, .. }, error) in rows.iter().zip(errors) {
        for word in words {
            assert!(error.contains(word), "{word:?} of {text} is not in {error}");
        }
    }
}

/// What the server says to these parameters, up to its close or its wish for streams.
fn said(server: &Server, parameters: &[u8]) -> Vec<u8> {
    let address = SocketAddr::from(([127, 0, 0, 1], server.port()));
    let mut peer = Peer::connect(address).expect("the server listens");
    peer.follow(&honest_client()[..2]).expect("the server asks for parameters");
    peer.follow(&[frame(parameters)]).expect("the server reads them");
    if peer.follow(&[Step::Expect(CREATE_STREAMS)]).is_ok() {
        return vec![CREATE_STREAMS];
    }
    // The first byte of a refusal has been read.
    let mut said = vec![SERVER_ERROR];
    said.extend(peer.until_closed().expect("a refused client is sent away"));
    said
}

fn refusal(number: i32) -> Vec<u8> {
    [&[SERVER_ERROR][..], &number.to_be_bytes(), &[0; 4]].concat()
}

/// Honest parameters but for this key.
fn with(key: &str, value: &str) -> String {
    format!("{{\"{key}\":{value},\"tcp\":true,\"time\":1,\"parallel\":1,\"len\":4096}}")
}

const RECV_PARAMS: i32 = 114;
const CREATE_STREAMS: u8 = 10;
const SERVER_ERROR: u8 = 0xfe;
