//! The example on a TAP device in a network namespace of its own, as server and as client against the real
//! iperf3: every way of moving data, and clients that do not end well. Needs root and Linux.
#![cfg(target_os = "linux")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use linerate_embedded::engine::units::parse_rate;
use serde_json::Value;
use support::board::{Board, Sides, Stream, Way, Wire, may_make_namespaces};

/// What a client asks for, and which ways data then flows: in the order of streams, the client's own
/// way first.
const CASES: [(&[&str], &[Flow]); 12] = [
    (&["-t", "1"], &[Flow::Forward]),
    (&["-t", "1", "-R"], &[Flow::Reverse]),
    (&["-t", "1", "--bidir"], &[Flow::Forward, Flow::Reverse]),
    (&["-t", "1", "-P", "2"], &[Flow::Forward; 2]),
    (&["-t", "1", "-P", "2", "-R"], &[Flow::Reverse; 2]),
    (&["-n", "3M"], &[Flow::Forward]),
    (&["-n", "3M", "-R", "-b", "50M"], &[Flow::Reverse]),
    (&["-t", "1", "-u", "-b", "20M"], &[Flow::Forward]),
    (&["-t", "1", "-u", "-b", "20M", "-R"], &[Flow::Reverse]),
    (&["-t", "1", "-u", "-b", "5M", "--bidir"], &[Flow::Forward, Flow::Reverse]),
    (&["-t", "1", "-u", "-b", "5M", "-P", "2"], &[Flow::Forward; 2]),
    (&["-n", "300K", "-u", "-b", "5M"], &[Flow::Forward]),
];

/// Of the host's end and of the board's: IPv4 and IPv6.
const ADDRESSES: [(&str, &str); 2] =
    [("10.0.2.2/24", "10.0.2.15/24"), ("fd00::2/64", "fd00::15/64")];

/// A direction as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Forward,
    Reverse,
}

#[test]
fn a_server_and_a_real_client_count_the_same_in_every_way() {
    if !may_make_namespaces() {
        return;
    }
    for (host, board) in ADDRESSES {
        let board = Board::start(host, board);
        for (options, flows) in CASES {
            let report = board.run_client(options);
            let streams = board.streams(flows.len());
            for flow in [Flow::Forward, Flow::Reverse] {
                let way = if flow == Flow::Forward { Way::ToBoard } else { Way::FromBoard };
                let Some((of_board, of_report)) = sides(way, flow, flows, &streams, &report) else {
                    continue;
                };
                let what = format!("{options:?} {way:?}: {streams:?} {:#}", report["end"]);
                // A client shows both ends.
                assert_eq!(of_report.sent.bytes, of_board.sent.bytes, "{what}");
                assert_eq!(of_report.received.bytes, of_board.received.bytes, "{what}");
                assert_sound(options, &of_board, &what);
            }
        }
    }
}

#[test]
fn a_client_and_a_real_server_count_the_same_in_every_way() {
    if !may_make_namespaces() {
        return;
    }
    for (host, board) in ADDRESSES {
        let wire = Wire::new(host, board);
        for (options, flows) in CASES {
            let (streams, report) = wire.run_board_as_client(options);
            assert_eq!(streams.len(), flows.len(), "{options:?}");
            for flow in [Flow::Forward, Flow::Reverse] {
                let way = if flow == Flow::Forward { Way::FromBoard } else { Way::ToBoard };
                let Some((of_board, of_report)) = sides(way, flow, flows, &streams, &report) else {
                    continue;
                };
                let what = format!("{options:?} {way:?}: {streams:?} {:#}", report["end"]);
                // A real server shows its own end.
                assert_eq!(of_report.of_host(way).bytes, of_board.of_host(way).bytes, "{what}");
                assert_sound(options, &of_board, &what);
            }
        }
    }
}

/// What the board and the report tell of all streams one way, if there are any.
fn sides(
    way: Way,
    flow: Flow,
    flows: &[Flow],
    streams: &[Stream],
    report: &Value,
) -> Option<(Sides, Sides)> {
    let own = streams.iter().zip(flows).filter(|(_, its)| **its == flow);
    let own = own.map(|(stream, _)| {
        assert_eq!(stream.role, way.role_of_board(), "{flows:?}: {streams:?}");
        stream.sides
    });
    let of_board = own.reduce(|all, one| all + one)?;
    let is_bidirectional = flows.contains(&Flow::Forward) && flows.contains(&Flow::Reverse);
    let is_second = is_bidirectional && flow == Flow::Reverse;
    Some((of_board, Sides::of_report(report, is_second)))
}

/// What any honest measurement of a good wire obeys.
fn assert_sound(options: &[&str], all: &Sides, what: &str) {
    let (sent, received) = (all.sent, all.received);
    assert!(0 < received.bytes && received.bytes <= sent.bytes, "{what}");
    if options.contains(&"-u") {
        // How many get lost is a busy host's doing; each is accounted for.
        assert!(received.lost < received.packets && received.packets <= sent.packets, "{what}");
        if let Some(at) = options.iter().position(|option| *option == "-b")
            && options.contains(&"-t")
        {
            // A busy machine may be too slow for it; virtual time shows that it is reached.
            let streams = if options.contains(&"-P") { 2 } else { 1 };
            let asked = parse_rate(options[at + 1]).expect("a rate").0 * streams;
            assert!(sent.bytes * 8 < asked * 13 / 10, "{what}");
        }
    } else if options.starts_with(&["-n"]) && !options.contains(&"-R") {
        // A receiver may hear of the end before it has read the rest.
        assert_eq!(sent.bytes, 3 << 20, "{what}");
    }
}

#[test]
fn whatever_a_client_did_the_next_one_is_served() {
    if !may_make_namespaces() {
        return;
    }
    let board = Board::start(ADDRESSES[0].0, ADDRESSES[0].1);
    for options in [&["-t", "9"][..], &["-t", "9", "-R"], &["-t", "9", "-u"], &["-t", "9", "-uR"]] {
        let client = board.start_client(options);
        board.wait_for_line("test of");
        // Data flows by then: no line tells when.
        sleep(Duration::from_millis(300));
        // Ends it without a goodbye: the system closes its connections.
        drop(client);
        board.wait_for_line("end of the test: Failed");
        board.run_client(&["-n", "1M"]);
        board.wait_for_line("end of the test: Complete");
    }
}

#[test]
fn a_second_client_is_told_that_the_server_is_busy() {
    if !may_make_namespaces() {
        return;
    }
    let board = Board::start(ADDRESSES[0].0, ADDRESSES[0].1);
    let first = board.start_client(&["-t", "2"]);
    board.wait_for_line("test of");
    // The first test runs by then: no line tells when.
    sleep(Duration::from_millis(300));
    let second = board.start_client(&["-t", "1"]).wait(LIMIT).expect("it is told at once");
    let document = second.document().expect("a document");
    let error = document["error"].as_str().unwrap_or_default();
    assert!(error.contains("busy"), "{second}");
    let first = first.wait(LIMIT).expect("it ends in time");
    assert_eq!(first.code, Some(0), "{first}");
}

#[test]
fn what_there_is_no_room_for_is_refused() {
    if !may_make_namespaces() {
        return;
    }
    // An IP packet of 1500 bytes less the headers: 20 + 8, 40 + 8.
    for ((host, board), (too_long, longest)) in
        ADDRESSES.into_iter().zip([("1473", "1472"), ("1453", "1452")])
    {
        let board = Board::start(host, board);
        for options in [&["-P", "5"][..], &["-u", "-l", too_long], &["-u", "-R", "-l", too_long]] {
            let refused = board.start_client(options).wait(LIMIT).expect("it is told at once");
            let document: Value = refused.document().expect("a document");
            assert!(document["error"].is_string(), "{refused}");
            board.wait_for_line("end of the test: Failed(Denied");
        }
        for options in [&["-l", longest][..], &["-R", "-l", longest]] {
            let report = board.run_client(&[&["-u", "-n", "100K"], options].concat());
            assert!(report["end"]["sum"]["packets"].as_u64() > Some(60), "{report:#}");
            assert_eq!(report["end"]["sum"]["lost_packets"], 0, "{report:#}");
        }
    }
}

const LIMIT: Duration = Duration::from_secs(20);
