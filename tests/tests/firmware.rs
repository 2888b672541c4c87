//! The firmware in QEMU against stock iperf3: every way of moving data, one test after the other,
//! clients that do not end well, and what both ends counted. `cargo xtask firmware test` builds the
//! images and runs these.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use linerate_tests::board::{Board, Measured, Setup};
use linerate_tests::case::{Case, Direction, Way};
use linerate_tests::namespace::{Namespace, may_make_namespaces};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

/// For an image with room for one stream.
const ONE_STREAM: &[&str] = &[
    "-t 1",
    "-t 1 -R",
    "-t 2 -O 1",
    "-n 2M",
    "-n 2M -R",
    "-t 1 -b 5M",
    "-t 1 -b 5M -R",
    "-u -t 1 -b 5M -l 1400",
    "-u -t 1 -b 5M -l 1400 -R",
    "-u -n 500K -b 5M -l 1400",
    "-u -t 1 -b 0 -l 1400 -R",
];

/// For an image with room for two.
const TWO_STREAMS: &[&str] = &[
    "-t 1 --bidir",
    "-t 1 -P 2",
    "-t 1 -P 2 -R",
    "-n 2M -P 2",
    "-u -t 1 -b 2M -l 1400 --bidir",
    "-u -t 1 -b 2M -l 1400 -P 2",
    "-u -t 1 -b 2M -l 1400 -P 2 -R",
];

/// What no client says, and what becomes of whoever says it.
const GARBAGE: [(&[u8], &str); 3] = [
    (b"GET / HTTP/1.1\r\n\r\n", "turned away"),
    (&[0xFF; 5000], "end of the test: Failed"),
    (b"short", "turned away"),
];

macro_rules! stacks {
    ($($stack:ident: $one:literal, $two:literal, $client:literal;)*) => { $(
        mod $stack {
            use super::*;

            #[test]
            #[ignore = "needs QEMU and images; `cargo xtask firmware test` runs it"]
            fn both_ends_count_the_same_with_one_stream() {
                let board = Board::start($one, Setup::default());
                ONE_STREAM.iter().for_each(|line| counts_agree(&board, &Case::new(line)));
            }

            #[test]
            #[ignore = "needs QEMU and images; `cargo xtask firmware test` runs it"]
            fn both_ends_count_the_same_with_two_streams() {
                let board = Board::start($two, Setup::default());
                TWO_STREAMS.iter().for_each(|line| counts_agree(&board, &Case::new(line)));
            }

            #[test]
            #[ignore = "needs QEMU and images; `cargo xtask firmware test` runs it"]
            fn a_client_counts_as_its_server() {
                ONE_STREAM.iter().chain(TWO_STREAMS).for_each(|line| client_counts($client, line));
            }

            #[test]
            #[ignore = "needs QEMU and images; `cargo xtask firmware test` runs it"]
            fn whatever_a_client_did_the_next_one_is_served() {
                next_is_served(&Board::start($one, Setup::default()));
            }

            #[test]
            #[ignore = "needs QEMU and images; `cargo xtask firmware test` runs it"]
            fn ipv6_works_as_ipv4() {
                if may_make_namespaces() {
                    let namespace = Namespace::new();
                    let board = Board::start_in(&namespace, "fd00::15", $one);
                    for line in ["-t 1", "-t 1 -R", "-u -t 1 -b 5M -l 1400"] {
                        counts_agree(&board, &Case::new(line));
                    }
                }
            }
        }
    )* };
}

stacks! {
    smoltcp: "smoltcp_server", "smoltcp_server_2", "smoltcp_client_2";
    embassy_net: "embassy_server", "embassy_server_2", "embassy_client_2";
}

/// Runs a case, and holds what the board measured against what its client tells.
fn counts_agree(board: &Board<'_>, case: &Case) {
    let options: Vec<&str> = case.line.split_whitespace().collect();
    let report = board.run_client(&options);
    let measured = board.measured(case.streams as usize * case.ways().len());
    board.wait_for_line("end of the test: Complete");
    hold_against(case, "Receiver", &measured, &report);
}

/// Runs a case from the board towards iperf3, and holds what it measured against what the server tells.
fn client_counts(image: &str, line: &'static str) {
    let case = Case::new(line);
    let server = Server::start(Tool::Iperf3, &["-1", "-J"]);
    let port = server.port().to_string();
    let to_server = ["-c", "10.0.2.2", "-p", &port];
    let arguments: Vec<&str> = to_server.into_iter().chain(line.split_whitespace()).collect();
    let board = Board::start(image, Setup { arguments: &arguments, ..Setup::default() });
    let measured = board.measured(case.streams as usize * case.ways().len());
    board.wait_for_line("end of the test: Complete");
    let ended = server.wait().unwrap_or_else(|why| panic!("`{line}`: {why}"));
    let report = ended.document().unwrap_or_else(|why| panic!("`{line}`: {why}"));
    hold_against(&case, "Sender", &measured, &report);
}

/// Holds what the board measured, who is `forward` in the client's own direction, against what iperf3
/// counted itself, and what it shows of the board.
fn hold_against(case: &Case, forward: &str, measured: &[Measured], report: &Value) {
    let other = if forward == "Sender" { "Receiver" } else { "Sender" };
    for (way, role) in [(Way::ToServer, forward), (Way::ToClient, other)] {
        let of_role = measured.iter().filter(|stream| stream.role == role);
        let streams = if case.ways().contains(&way) { case.streams as usize } else { 0 };
        let what = format!("`{}`, {role}: {measured:#?}\n{:#}", case.line, report["end"]);
        assert_eq!(of_role.clone().count(), streams, "{what}");
        if streams == 0 {
            continue;
        }
        let is_second = case.direction == Direction::Both && way == Way::ToClient;
        let suffix = if is_second { "_bidir_reverse" } else { "" };
        let sides =
            ["sum_sent", "sum_received"].map(|name| &report["end"][format!("{name}{suffix}")]);
        let [of_board, of_peer] = if role == "Sender" { sides } else { [sides[1], sides[0]] };
        let total = |of: fn(&Measured) -> u64| of_role.clone().map(of).sum::<u64>();
        let (own, peer) = (total(|stream| stream.bytes), total(|stream| stream.peer_bytes));
        assert_eq!(of_peer["bytes"], peer, "{what}");
        let (sent, received) = if role == "Sender" { (own, peer) } else { (peer, own) };
        assert!(received > 0, "{what}");
        // What is left out at the start ends at each end at its own moment.
        assert!(case.omit > 0 || received <= sent, "{what}");
        // A server of iperf3 3.12 does not show its client's part.
        if forward == "Sender" {
            continue;
        }
        assert_eq!(of_board["bytes"], own, "{what}");
        if case.udp {
            assert_eq!(of_board["packets"], total(|stream| stream.packets), "{what}");
            if role == "Receiver" {
                assert_eq!(of_board["lost_packets"], total(|stream| stream.lost), "{what}");
            }
        }
    }
}

/// Ten tests in a row, then peers that break off at every point, each with a good test after it.
fn next_is_served(board: &Board) {
    let is_good = || {
        board.run_client(&["-n", "200K"]);
        board.wait_for_line("end of the test: Complete");
    };
    (0..10).for_each(|_| is_good());
    for (garbage, answer) in GARBAGE {
        let mut peer = TcpStream::connect((board.host, board.port)).expect("the board listens");
        peer.write_all(garbage).expect("the board takes it");
        peer.shutdown(Shutdown::Write).expect("it is connected");
        // Until the board has closed, too, or broken it off.
        let _ = peer.read_to_end(&mut Vec::new());
        board.wait_for_line(answer);
    }
    is_good();
    for options in [&["-t", "9"][..], &["-t", "9", "-R"], &["-t", "9", "-u", "-l", "1400"]] {
        let client = board.start_client(options);
        board.wait_for_line("test of");
        // Data flows by then: no line tells when.
        sleep(Duration::from_millis(300));
        // Ends it without a goodbye: the system closes its connections.
        drop(client);
        board.wait_for_line("end of the test: Failed");
        is_good();
    }
}
