//! The marks of packets, read from the cable: every packet of a data stream that carries something
//! has them, from the first on, in both directions.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_tests::capture::{Packet, capture};
use linerate_tests::client;
use linerate_tests::namespace::may_make_namespaces;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use linerate_tests::veth::{Cable, DEVICE, FAR};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);

/// Options, and the byte that they ask for.
const MARKS: [(&str, u8); 2] = [("--dscp ef", 184), ("-S 0x48", 0x48)];

const TESTS: [&str; 6] = [
    "-n 50K -l 1000 -P 2",
    "-n 50K -l 1000 -P 2 -R",
    "-n 50K -l 1000 --bidir",
    "-u -k 50 -b 5M -l 1000 -P 2",
    "-u -k 50 -b 5M -l 1000 -P 2 -R",
    "-u -k 50 -b 5M -l 1000 --bidir",
];

#[test]
fn every_data_packet_is_marked_in_both_directions() {
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    // The server has one socket for both families, so IPv4 comes to it in IPv6 clothes.
    let hosts = [FAR.v4, FAR.v6];
    let rows = MARKS.into_iter().flat_map(|mark| hosts.map(|host| (mark, host)));
    let rows: Vec<_> = rows.flat_map(|(mark, host)| TESTS.map(|test| (mark, host, test))).collect();
    run_all(&rows, |&((mark, class), host, test)| {
        let options = format!("{test} {mark}");
        let streams = run(&cable, Tool::Linerate, Tool::Linerate, host, &[], &options);
        check(&streams, class, true, true, &format!("{host} {options}"));
        Ok(())
    });
}

#[test]
fn each_end_marks_its_packets_with_a_stock_peer() {
    if !may_make_namespaces() || !Tool::Iperf3.is_here() {
        return;
    }
    let cable = Cable::new();
    let (mark, class) = MARKS[0];
    let rows: Vec<_> =
        [FAR.v4, FAR.v6].iter().flat_map(|&host| TESTS.map(|test| (host, test))).collect();
    run_all(&rows, |&(host, test)| {
        let options = format!("{test} {mark}");
        let streams = run(&cable, Tool::Linerate, Tool::Iperf3, host, &[], &options);
        check(&streams, class, true, false, &format!("to iperf3: {host} {options}"));
        let streams = run(&cable, Tool::Iperf3, Tool::Linerate, host, &[], &options);
        check(&streams, class, false, true, &format!("of iperf3: {host} {options}"));
        Ok(())
    });
}

#[test]
fn a_server_for_one_family_or_address_marks_as_well() {
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    let (mark, class) = MARKS[0];
    for (server, host) in [
        (&["-4"][..], FAR.v4),
        (&["-6"], FAR.v6),
        (&["-B", FAR.v4], FAR.v4),
        (&["-B", FAR.v6], FAR.v6),
    ] {
        for test in ["-n 50K -l 1000 -R", "-u -k 50 -b 5M -l 1000 -R"] {
            let options = format!("{test} {mark}");
            let streams = run(&cable, Tool::Linerate, Tool::Linerate, host, server, &options);
            check(&streams, class, true, true, &format!("{server:?} {options}"));
        }
    }
}

#[test]
fn mptcp_over_ipv4_is_marked_as_well() {
    if !may_make_namespaces() || !super::has_mptcp() {
        return;
    }
    let cable = Cable::new();
    let (mark, class) = MARKS[0];
    // Linux takes no traffic class from an MPTCP socket over IPv6; the client is warned of that.
    for test in ["-m -n 50K -l 1000 -P 2", "-m -n 50K -l 1000 -R"] {
        let options = format!("{test} {mark}");
        let streams = run(&cable, Tool::Linerate, Tool::Linerate, FAR.v4, &[], &options);
        check(&streams, class, true, true, &options);
    }
}

#[test]
fn packets_without_a_mark_have_none() {
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    for host in [FAR.v4, FAR.v6] {
        let options = "-u -k 50 -b 5M -l 1000 --bidir";
        let streams = run(&cable, Tool::Linerate, Tool::Linerate, host, &[], options);
        check(&streams, 0, true, true, options);
    }
}

#[test]
fn flow_labels_are_on_the_wire() {
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    // A server cannot label a connection that it accepts; datagrams go both ways with the label.
    for (options, both) in [
        ("-n 50K -l 1000 -P 2 -L 5", false),
        ("-u -k 50 -b 5M -l 1000 -P 2 -L 0x54321", true),
        ("-u -k 50 -b 5M -l 1000 -P 2 -R -L 77", true),
        ("-u -k 50 -b 5M -l 1000 --bidir -L 1048575", true),
    ] {
        let label = options.rsplit(' ').next().expect("the label is last");
        let label = match label.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => label.parse(),
        };
        let label = label.expect("a number");
        for stream in run(&cable, Tool::Linerate, Tool::Linerate, FAR.v6, &[], options) {
            let packets = stream.to_server.iter().chain(stream.to_client.iter().filter(|_| both));
            for packet in packets.filter(|packet| packet.payload > 0) {
                assert_eq!(packet.flow_label, label, "{options}: {packet}");
            }
        }
    }
}

#[test]
fn a_sending_server_does_as_its_client_asks() {
    if !may_make_namespaces() || !Tool::Iperf3.is_here() {
        return;
    }
    let cable = Cable::new();
    let sent_by_server = |client, options: &str| {
        let mut streams = run(&cable, client, Tool::Linerate, FAR.v4, &[], options);
        let packets = streams.remove(0).to_client.into_iter();
        packets.filter(|packet| packet.payload == 1000).collect::<Vec<_>>()
    };
    for client in [Tool::Linerate, Tool::Iperf3] {
        let options = "-u -k 20 -b 5M -l 1000 -R";
        let digits = sent_by_server(client, &format!("{options} --repeating-payload"));
        let random = sent_by_server(client, options);
        assert!(digits.len() >= 19 && random.len() >= 19, "{} {}", digits.len(), random.len());
        // Digits are repeated from the start of each block, so 1000 bytes end with a nine.
        assert!(digits.iter().all(|packet| packet.last == Some(*b"23456789")), "{client}");
        assert!(random.iter().all(|packet| packet.last != Some(*b"23456789")), "{client}");
    }
    // Two packets' worth of data in a datagram that must not be cut is none at all.
    for (options, arrives) in
        [("-u -t 1 -b 5M -l 2000 -R", true), ("-u -t 1 -b 5M -l 2000 -R --dont-fragment", false)]
    {
        let server = Server::start_in(&cable.far, Tool::Linerate, &[]);
        let words: Vec<&str> = options.split(' ').chain(["-J"]).collect();
        let client = client::start_in(&cable.near, Tool::Linerate, FAR.v4, server.port(), &words);
        let ended = client.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
        let document = ended.document().unwrap_or_else(|why| panic!("{why}"));
        let received = document["end"]["sum_received"]["bytes"].as_u64();
        assert_eq!(received > Some(0), arrives, "{options}: {ended}");
    }
}

#[test]
fn segments_are_as_small_as_asked_in_both_directions() {
    if !may_make_namespaces() || !Tool::Iperf3.is_here() {
        return;
    }
    let cable = Cable::new();
    for (client, server) in super::PAIRS {
        for options in ["-n 300K -M 600", "-n 300K -M 600 -R"] {
            let is_reverse = options.ends_with("-R");
            for stream in run(&cable, client, server, FAR.v4, &[], options) {
                let sent = if is_reverse { stream.to_client } else { stream.to_server };
                let largest = sent.iter().map(|packet| packet.payload).max();
                // The option of time stamps takes 12 bytes of each segment.
                assert_eq!(largest, Some(588), "{client} to {server}, {options}");
            }
        }
    }
}

/// The packets of one data stream.
struct Stream {
    to_server: Vec<Packet>,
    to_client: Vec<Packet>,
}

/// Runs a test and tells what its data streams sent.
fn run(
    cable: &Cable,
    client: Tool,
    server: Tool,
    host: &str,
    server_options: &[&str],
    options: &str,
) -> Vec<Stream> {
    let options: Vec<&str> = options.split(' ').chain(["-J"]).collect();
    let server_options: Vec<&str> = ["-1"].iter().chain(server_options).copied().collect();
    let server = Server::start_in(&cable.far, server, &server_options);
    let (ended, packets) = capture(&cable.near, DEVICE, || {
        let started = client::start_in(&cable.near, client, host, server.port(), &options);
        let ended = started.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
        server.wait().unwrap_or_else(|why| panic!("{why}"));
        ended
    });
    let document = ended.document().unwrap_or_else(|why| panic!("{why}"));
    assert!(document["error"].is_null(), "{ended}");
    let streams = document["start"]["connected"].as_array().expect("streams");
    let of = |stream: &Value| {
        let end = |host: &str, port: &str| {
            let host: IpAddr = stream[host].as_str()?.parse().ok()?;
            Some(SocketAddr::new(host, u16::try_from(stream[port].as_u64()?).ok()?))
        };
        let near = end("local_host", "local_port").expect("an address");
        let far = end("remote_host", "remote_port").expect("an address");
        let between = |from, to| {
            let is_of = |packet: &&Packet| packet.from == from && packet.to == to;
            packets.iter().filter(is_of).copied().collect()
        };
        Stream { to_server: between(near, far), to_client: between(far, near) }
    };
    streams.iter().map(of).collect()
}

/// Every packet that carries something has the class; those of a client also before that.
fn check(streams: &[Stream], class: u8, by_client: bool, by_server: bool, what: &str) {
    assert!(!streams.is_empty(), "{what}");
    for stream in streams {
        assert!(!stream.to_server.is_empty() && !stream.to_client.is_empty(), "{what}");
        for packet in stream.to_server.iter().filter(|_| by_client) {
            assert_eq!(packet.class, class, "{what}: {packet}");
        }
        let carrying = stream.to_client.iter().filter(|packet| packet.payload > 0);
        for packet in carrying.filter(|_| by_server) {
            assert_eq!(packet.class, class, "{what}: {packet}");
        }
    }
}
