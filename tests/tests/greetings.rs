//! UDP set-up of real programs through boxes and over links that lose, double and refuse datagrams.
//! The networks need root and Linux.
#![cfg(target_os = "linux")]

use std::net::Ipv4Addr;
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::link::model::LinkModel;
use linerate_tests::link::tap::{FAR, TapLink, Wire};
use linerate_tests::namespace::may_make_namespaces;
use linerate_tests::process::Ended;
use linerate_tests::relay::{Datagrams, Relay};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool::{self, Iperf3, Linerate};
use serde_json::Value;

const WAYS: [&str; 3] = ["", " -R", " --bidir"];

#[test]
fn named_greetings_come_through_half_loss_with_many_streams() {
    if !may_make_namespaces() {
        return;
    }
    let lossy = LinkModel { latency_ns: 2 * MS, loss_ppm: 500_000, ..LinkModel::default() };
    let doubling = LinkModel { duplicate_ppm: 500_000, ..lossy };
    at_once(&WAYS, |way| {
        for (seed, model) in [(3, lossy), (4, doubling)] {
            let wire = Wire { there: model, back: model, seed, only_udp: true, ..Wire::default() };
            let link = TapLink::start(&wire);
            let line = format!("-u -P 8 -t 2 -b 200K -l 500{way}");
            let both = run(&link, Linerate, Linerate, &line);
            let count = if way == " --bidir" { 16 } else { 8 };
            both.assert_sane(count, 25.0..75.0, &line);
        }
    });
}

#[test]
fn a_first_datagram_that_is_lost_each_way_does_no_harm_between_linerate_ends() {
    if !may_make_namespaces() {
        return;
    }
    at_once(&WAYS, |way| {
        for parallel in [1, 8] {
            let link = TapLink::start(&first_lost([1, 1]));
            let line = format!("-u -P {parallel} -t 1 -b 200K -l 500{way}");
            let both = run(&link, Linerate, Linerate, &line);
            let count = if way == " --bidir" { 2 * parallel } else { parallel };
            both.assert_sane(count, 0.0..0.1, &line);
        }
    });
}

#[test]
fn a_stock_server_gets_a_lost_greeting_again_and_no_other() {
    if !may_run() {
        return;
    }
    let cases = [([1, 0], 1), ([1, 0], 8), ([0, 1], 1), ([0, 1], 8), ([1, 1], 1)];
    at_once(&cases, |(lost, parallel)| {
        // Two streams of which each may be the lost one have a test of their own.
        let ways = if lost == [1, 1] { &WAYS[..2] } else { &WAYS };
        for way in ways {
            let link = TapLink::start(&first_lost(lost));
            let line = format!("-u -P {parallel} -t 1 -b 200K -l 500{way}");
            let both = run(&link, Linerate, Iperf3, &line);
            let count = if *way == " --bidir" { 2 * parallel } else { parallel };
            both.assert_sane(count, 0.0..0.1, &format!("{line}, {lost:?} lost"));
        }
    });
}

#[test]
fn streams_that_a_stock_server_may_or_may_not_know_are_named_in_time() {
    if !may_run() {
        return;
    }
    // The greeting of the first is lost, and the reply to the second.
    let link = TapLink::start(&first_lost([1, 1]));
    let server = Server::start_in(&link.far, Iperf3, &[]);
    let options = ["-u", "-P", "4", "-t", "1"];
    let client = client::start_in(&link.near, Linerate, FAR.v4, server.port(), &options);
    let client = client.wait(LIMIT).expect("it ends");
    assert!(client.took < Duration::from_secs(10), "{client}");
    let port = server.port();
    let words =
        format!("streams 1, 3: TCP works, but UDP port {port} answered only 2 of 4 streams");
    assert!(client.stderr.contains(&words) && client.code == Some(2), "{client}");
}

#[test]
fn doubled_greetings_of_stock_clients_are_no_data_and_no_streams() {
    if !may_run() {
        return;
    }
    let doubling = LinkModel { duplicate_ppm: 1_000_000, ..LinkModel::default() };
    at_once(&WAYS, |way| {
        let wire = Wire { there: doubling, only_udp: true, ..Wire::default() };
        let link = TapLink::start(&wire);
        let line = format!("-u -P 4 -t 1 -b 200K -l 500{way}");
        let both = run(&link, Iperf3, Linerate, &line);
        // What is sent twice is counted by its number once.
        let received = &both.server["end"]["sum_received"];
        if way.is_empty() {
            let lost = received["lost_packets"].as_i64();
            assert_eq!(lost, Some(0), "{line}: {received}");
        }
    });
}

#[test]
fn a_stock_client_whose_greeting_is_lost_keeps_others_of_its_address_waiting_for_seconds_only() {
    if !may_run() {
        return;
    }
    let link = TapLink::start(&first_lost([1, 0]));
    let server = Server::start_in(&link.far, Linerate, &[]);
    let start =
        |tool, words: &[&str]| client::start_in(&link.near, tool, FAR.v4, server.port(), words);
    let lost = start(Iperf3, &["-u", "-t", "1"]);
    std::thread::sleep(Duration::from_millis(500));
    let [own, stock] = [Linerate, Iperf3].map(|tool| start(tool, &["-u", "-t", "1", "-P", "2"]));
    let own = own.wait(LIMIT).expect("it ends");
    assert!(own.code == Some(0) && own.took < Duration::from_secs(6), "{own}");
    let stock = stock.wait(LIMIT).expect("it ends");
    assert!(stock.code == Some(0) && stock.took < Duration::from_secs(15), "{stock}");
    // It waits for its reply for half a minute, whatever its server says.
    drop(lost);
}

#[test]
fn at_half_loss_a_stock_server_is_reached_or_its_streams_are_named() {
    if !may_run() {
        return;
    }
    let cases = [(1, 1, ""), (2, 1, " -R"), (3, 1, " --bidir"), (4, 8, ""), (5, 8, " -R")];
    at_once(&cases, |(seed, parallel, way)| {
        let model = LinkModel { loss_ppm: 500_000, ..LinkModel::default() };
        let wire = Wire { there: model, back: model, seed, only_udp: true, ..Wire::default() };
        let link = TapLink::start(&wire);
        let server = Server::start_in(&link.far, Iperf3, &[]);
        let line = format!("-u -P {parallel} -t 1 -b 400K -l 500 -J{way}");
        let words: Vec<&str> = line.split(' ').collect();
        let client = client::start_in(&link.near, Linerate, FAR.v4, server.port(), &words);
        let client = client.wait(LIMIT).unwrap_or_else(|why| panic!("{line}: {why}"));
        let document = client.document().expect("a document");
        match document["error"].as_str() {
            None => {
                let received = &document["end"]["sum_received"];
                let lost = received["lost_percent"].as_f64();
                assert!(lost > Some(20.0) && lost < Some(80.0), "{line}: {received}");
                println!("{line}: {lost:?} % lost");
            }
            Some(error) => {
                assert!(error.contains("stream") && error.contains("UDP port"), "{line}: {client}");
                println!("{line}: {error}");
            }
        }
    });
}

#[test]
fn stock_clients_at_half_loss_do_not_keep_a_linerate_client_waiting() {
    if !may_run() {
        return;
    }
    let model = LinkModel { loss_ppm: 500_000, ..LinkModel::default() };
    let wire = Wire { there: model, back: model, seed: 6, only_udp: true, ..Wire::default() };
    let link = TapLink::start(&wire);
    let server = Server::start_in(&link.far, Linerate, &[]);
    let start =
        |tool, words: &[&str]| client::start_in(&link.near, tool, FAR.v4, server.port(), words);
    let stock: Vec<_> = WAYS
        .iter()
        .map(|way| format!("-u -t 1 -P 2{way}"))
        .map(|line| start(Iperf3, &line.split(' ').collect::<Vec<_>>()))
        .collect();
    let own = start(Linerate, &["-u", "-P", "8", "-t", "1", "--bidir"]);
    let own = own.wait(LIMIT).expect("it ends");
    assert!(own.code == Some(0) && own.took < Duration::from_secs(10), "{own}");
    drop(stock);
}

#[test]
fn tests_go_through_a_router_with_one_address() {
    let clients: &[Tool] = if Iperf3.is_here() { &[Linerate, Iperf3] } else { &[Linerate] };
    let server = Server::start(Linerate, &[]);
    let relay = Relay::start(server.port(), Datagrams::Pass);
    for &tool in clients {
        for line in ["-u", "-u -R", "-u --bidir", "-u -P 4", "-u -P 4 -R"] {
            let line = format!("{line} -t 1 -l 500 -b 400K -J");
            let words: Vec<&str> = line.split(' ').collect();
            let ended =
                client::run(tool, "127.0.0.1", relay.port(), &words, LIMIT).expect("it ends");
            let received = &ended.document().expect("a document")["end"]["sum_received"];
            assert!(received["bytes"].as_u64() > Some(20_000), "{tool} {line}: {ended}");
        }
    }
}

#[test]
fn a_server_with_several_addresses_answers_from_the_one_that_was_asked() {
    let clients: &[Tool] = if Iperf3.is_here() { &[Linerate, Iperf3] } else { &[Linerate] };
    let server = Server::start(Linerate, &[]);
    for &tool in clients {
        for line in ["-u -P 2", "-u -R"] {
            let line = format!("{line} -t 1 -l 500 -b 400K -J");
            let words: Vec<&str> = line.split(' ').collect();
            // The system would answer from 127.0.0.1 by itself.
            let ended =
                client::run(tool, "127.0.0.77", server.port(), &words, LIMIT).expect("it ends");
            let document = ended.document().expect("a document");
            let connected = &document["start"]["connected"][0]["remote_host"];
            assert_eq!(connected, "127.0.0.77", "{tool} {line}");
            let received = &document["end"]["sum_received"];
            assert!(received["bytes"].as_u64() > Some(20_000), "{tool} {line}: {ended}");
        }
    }
}

#[test]
fn a_server_sends_datagrams_only_to_who_asked_unless_told_otherwise() {
    let elsewhere = Datagrams::PassFrom(Ipv4Addr::new(127, 0, 0, 7));
    for way in ["", " -R", " --bidir"] {
        for (flag, is_served) in [(&[][..], false), (&["--udp-anywhere"][..], true)] {
            let server = Server::start(Linerate, flag);
            let relay = Relay::start(server.port(), elsewhere);
            let line = format!("-u -t 1 -l 500 --connect-timeout 1000{way}");
            let words: Vec<&str> = line.split(' ').collect();
            let ended =
                client::run(Linerate, "127.0.0.1", relay.port(), &words, LIMIT).expect("it ends");
            assert_eq!(ended.code == Some(0), is_served, "{line} {flag:?}: {ended}");
            let text = format!("TCP works, but UDP port {} gives no answer", relay.port());
            assert!(is_served || ended.stderr.contains(&text), "{ended}");
            let server = server.stop("INT").expect("it ends");
            let is_told = server.stderr.contains("127.0.0.7")
                && server.stderr.contains("--udp-anywhere lets them in");
            assert_eq!(is_told, !is_served, "{server}");
        }
    }
}

#[test]
fn a_port_that_is_closed_between_streams_is_ridden_through() {
    let servers: &[Tool] = if Iperf3.is_here() { &[Linerate, Iperf3] } else { &[Linerate] };
    for &tool in servers {
        let server = Server::start(tool, &[]);
        let pause = Duration::from_millis(100);
        let relay = Relay::start(server.port(), Datagrams::RefuseAfterEach(pause));
        let words = ["-u", "-P", "4", "-t", "1", "-l", "500", "-b", "400K", "-J"];
        let ended =
            client::run(Linerate, "127.0.0.1", relay.port(), &words, LIMIT).expect("it ends");
        let document = ended.document().expect("a document");
        let sum = &document["end"]["sum_received"];
        assert!(ended.code == Some(0) && sum["packets"].as_u64() > Some(300), "{tool}: {ended}");
        // The port is closed for a moment after the last stream, too, when data goes already.
        assert!(sum["lost_percent"].as_f64() < Some(30.0), "{tool}: {sum}");
    }
}

#[test]
fn a_blocked_port_is_named_with_its_protocol() {
    let servers: &[Tool] = if Iperf3.is_here() { &[Linerate, Iperf3] } else { &[Linerate] };
    let blocked = [(Datagrams::Swallow, "gives no answer"), (Datagrams::Refuse, "is refused")];
    let cases: Vec<_> =
        servers.iter().flat_map(|&tool| blocked.map(|(box_, words)| (tool, box_, words))).collect();
    at_once(&cases, |(tool, datagrams, words)| {
        let server = Server::start(tool, &[]);
        let relay = Relay::start(server.port(), datagrams);
        let options = ["-u", "-P", "2", "-t", "1", "--connect-timeout", "5000"];
        let ended =
            client::run(Linerate, "127.0.0.1", relay.port(), &options, LIMIT).expect("it ends");
        let text = format!("streams 1, 3: TCP works, but UDP port {} {words}", relay.port());
        assert!(ended.stderr.contains(&text) && ended.code == Some(2), "{tool}: {ended}");
        assert!(ended.took < Duration::from_secs(10), "{tool}: {ended}");
    });
    let port = linerate_tests::server::free_port();
    let ended = client::run(Linerate, "127.0.0.1", port, &["-u"], LIMIT).expect("it ends");
    let text = format!("127.0.0.1 TCP port {port}: ");
    assert!(ended.stderr.contains(&text) && ended.code == Some(2), "{ended}");
}

/// The documents of both ends.
struct Both {
    client: Value,
    server: Value,
}

impl Both {
    /// Each stream moved data, lost about as much as the link loses, and both ends agree.
    fn assert_sane(&self, count: usize, loss_percent: std::ops::Range<f64>, what: &str) {
        let [near, far] = [&self.client, &self.server]
            .map(|document| document["end"]["streams"].as_array().expect("streams").clone());
        assert_eq!((near.len(), far.len()), (count, count), "{what}");
        for stream in near.iter().chain(&far) {
            let udp = &stream["udp"];
            assert!(udp["jitter_ms"].as_f64() < Some(1000.0), "{what}: {udp}");
            assert!(udp["packets"].as_u64() > Some(20), "{what}: {udp}");
            assert!(udp["packets"].as_u64() < Some(1000), "{what}: {udp}");
        }
        let received = &self.client["end"]["sum_received"];
        let lost = received["lost_percent"].as_f64().unwrap_or(-1.0);
        assert!(loss_percent.contains(&lost), "{what}: {received}");
    }
}

/// A test over the link that must go well.
fn run(link: &TapLink, client: Tool, server: Tool, line: &str) -> Both {
    let server = Server::start_in(&link.far, server, &["-1", "-J"]);
    let words: Vec<&str> = line.split(' ').chain(["-J"]).collect();
    let client = client::start_in(&link.near, client, FAR.v4, server.port(), &words);
    let client = client.wait(LIMIT).unwrap_or_else(|why| panic!("{line}: {why}"));
    let server = server.wait().unwrap_or_else(|why| panic!("{line}: {why}\n{client}"));
    let document = |ended: &Ended| {
        let document = ended.document().unwrap_or_else(|why| panic!("{line}: {why}"));
        assert!(document["error"].is_null(), "{line}: {ended}\n{}", link.passed());
        document
    };
    Both { client: document(&client), server: document(&server) }
}

/// Runs a check of each of these at the same time.
fn at_once<T: Copy + Send + Sync>(cases: &[T], check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for &case in cases {
            let check = &check;
            scope.spawn(move || check(case));
        }
    });
}

/// A link that loses the first datagrams there and back, and nothing else.
fn first_lost(first_lost: [u64; 2]) -> Wire {
    Wire { only_udp: true, first_lost, ..Wire::default() }
}

fn may_run() -> bool {
    may_make_namespaces() && Iperf3.is_here()
}

const MS: u64 = 1_000_000;
const LIMIT: Duration = Duration::from_secs(45);
