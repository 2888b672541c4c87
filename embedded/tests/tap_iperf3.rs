//! The example server, on a TAP device in a network namespace of its own, against the real iperf3:
//! every way of moving data, and clients that do not end well. Needs root and Linux.
#![cfg(target_os = "linux")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use support::board::{Board, Way, may_make_namespaces};

/// What a client asks for, and which ways data flows in that order of streams.
const CASES: [(&[&str], &[Way]); 8] = [
    (&["-t", "1"], &[Way::ToBoard]),
    (&["-t", "1", "-R"], &[Way::FromBoard]),
    (&["-t", "1", "--bidir"], &[Way::ToBoard, Way::FromBoard]),
    (&["-n", "3M"], &[Way::ToBoard]),
    (&["-n", "3M", "-R", "-b", "50M"], &[Way::FromBoard]),
    (&["-t", "1", "-u", "-b", "20M"], &[Way::ToBoard]),
    (&["-t", "1", "-u", "-b", "20M", "-R"], &[Way::FromBoard]),
    (&["-t", "1", "-u", "-b", "5M", "--bidir"], &[Way::ToBoard, Way::FromBoard]),
];

#[test]
fn both_ends_count_the_same_in_every_way() {
    if !may_make_namespaces() {
        return;
    }
    for (host, board) in [("10.0.2.2/24", "10.0.2.15/24"), ("fd00::2/64", "fd00::15/64")] {
        let board = Board::start(host, board);
        for (options, ways) in CASES {
            let report = board.run_client(options);
            let measured = board.measured(ways.len());
            for (way, (role, bytes, packets)) in ways.iter().zip(measured) {
                let what = format!("{options:?} {way:?}: {} {:#}", bytes, report["end"]);
                assert_eq!(role, way.role_of_board(), "{what}");
                let sides = way.sides(&report, ways.len() > 1);
                assert_eq!(sides.of_board(*way).bytes, bytes, "the client shows it: {what}");
                assert!(sides.received.bytes > 0, "{what}");
                assert!(sides.received.bytes <= sides.sent.bytes, "{what}");
                if options.contains(&"-u") {
                    assert!(packets > 0, "{what}");
                    rate_is_not_exceeded(options, sides.sent.bytes, &what);
                    assert!(sides.received.lost * 50 <= packets, "few are lost: {what}");
                }
            }
        }
    }
}

#[test]
fn whatever_a_client_did_the_next_one_is_served() {
    if !may_make_namespaces() {
        return;
    }
    let board = Board::start("10.0.2.2/24", "10.0.2.15/24");
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
    let board = Board::start("10.0.2.2/24", "10.0.2.15/24");
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
    for ((host, board), too_long, longest) in [
        // An IP packet of 1500 bytes less the headers: 20 + 8, 40 + 8.
        (("10.0.2.2/24", "10.0.2.15/24"), "1473", "1472"),
        (("fd00::2/64", "fd00::15/64"), "1453", "1452"),
    ] {
        let board = Board::start(host, board);
        for options in [&["-P", "3"][..], &["-u", "-l", too_long], &["-u", "-R", "-l", too_long]] {
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

/// A sender that was told a rate keeps it.
fn rate_is_not_exceeded(options: &[&str], bytes: u64, what: &str) {
    let asked = if options.contains(&"20M") { 20_000_000 } else { 5_000_000 };
    let found = bytes * 8;
    // A busy machine may be too slow for it; virtual time shows that it is reached.
    assert!(found < asked * 13 / 10, "{found} bit/s: {what}");
}

const LIMIT: Duration = Duration::from_secs(20);
