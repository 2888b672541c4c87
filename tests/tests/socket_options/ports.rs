//! `--cport`: each data stream has its own local port, and no other connection has one of them.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;
use serde_json::Value;

use super::{PAIRS, has_ipv6};

const LIMIT: Duration = Duration::from_secs(30);

/// Options, and how many streams that makes.
const TESTS: [(&str, u16); 6] = [
    ("-t 1 -b 10M", 1),
    ("-t 1 -b 10M -P 2", 2),
    ("-t 1 -b 10M -P 2 --bidir", 4),
    ("-u -t 1 -b 10M -l 1400 -P 2", 2),
    ("-u -t 1 -b 5M -l 1400 -P 2 --bidir", 4),
    ("-t 1 -b 10M -P 2 -R", 2),
];

#[test]
fn streams_have_the_chosen_ports_in_order() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let rows: Vec<_> = PAIRS.iter().flat_map(|pair| TESTS.map(|test| (*pair, test))).collect();
    run_all(&rows, |&((client, server), (options, streams))| {
        let server = Server::start(server, &["-1", "-J"]);
        let first = free_port_range(streams);
        let ended = run(client, "127.0.0.1", server.port(), first, options)?;
        let at_server = server.wait()?.document()?;
        let expected: Vec<u64> = (first..first + streams).map(u64::from).collect();
        let what = format!("{client} `{options}` --cport {first}");
        let local = stream_ports(&ended.document()?, "local_port");
        if local != expected {
            return Err(format!("{what}: local ports {local:?}, not {expected:?}\n{ended}"));
        }
        // Streams are numbered by each end for itself, and UDP greetings may overtake each other.
        let mut remote = stream_ports(&at_server, "remote_port");
        remote.sort_unstable();
        if remote != expected {
            return Err(format!("{what}: the server saw {remote:?}, not {expected:?}"));
        }
        let control = at_server["start"]["accepted_connection"]["port"].as_u64();
        if control.is_some_and(|control| expected.contains(&control)) {
            return Err(format!("{what}: the control connection has a stream's port"));
        }
        Ok(())
    });
}

#[test]
fn ipv6_and_bound_addresses_have_the_chosen_ports_too() {
    if !has_ipv6() {
        return;
    }
    let rows = [("::1", "-t 1 -b 10M -P 2"), ("127.0.0.1", "-t 1 -b 10M -P 2 -B 127.0.0.1")];
    run_all(&rows, |&(host, options)| {
        let server = Server::start(Tool::Linerate, &["-1"]);
        let first = free_port_range(2);
        let ended = run(Tool::Linerate, host, server.port(), first, options)?;
        let local = stream_ports(&ended.document()?, "local_port");
        let expected = [u64::from(first), u64::from(first) + 1];
        if local == expected {
            Ok(())
        } else {
            Err(format!("{local:?}, not {expected:?}: {ended}"))
        }
    });
}

#[test]
fn a_test_with_chosen_ports_can_be_repeated_at_once() {
    let server = Server::start(Tool::Linerate, &[]);
    let first = free_port_range(2);
    for options in ["-n 100K -P 2", "-n 100K -P 2 -R", "-n 100K --bidir", "-u -n 100K -b 10M"] {
        for _ in 0..3 {
            let ended = run(Tool::Linerate, "127.0.0.1", server.port(), first, options);
            let ended = ended.unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(ended.code, Some(0), "{ended}");
        }
    }
}

/// Where the system gives out ports from the very range that was chosen.
#[cfg(target_os = "linux")]
#[test]
fn the_control_connection_leaves_the_chosen_ports_alone() {
    use linerate_tests::namespace::{Namespace, may_make_namespaces};

    if !may_make_namespaces() {
        return;
    }
    for (host, options) in [
        ("127.0.0.1", "-n 1M -P 50 --cport 5300"),
        ("127.0.0.1", "-n 1M -P 50 --cport 5300 -B 127.0.0.1"),
        ("::1", "-n 1M -P 25 --bidir --cport 5310"),
        ("localhost", "-n 1M -P 50 --cport 5320"),
        ("localhost", "-u -n 100K -b 20M -P 50 --cport 5310"),
    ] {
        // Each in a network of its own, for control connections rest, too.
        let network = Namespace::new();
        network.set("net.ipv4.ip_local_port_range", "5300 5379");
        let server = Server::start_in(&network, Tool::Linerate, &[]);
        let words: Vec<&str> = options.split(' ').collect();
        let client = client::start_in(&network, Tool::Linerate, host, server.port(), &words);
        let ended = client.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(0), "{ended}");
    }
}

#[cfg(unix)]
#[test]
fn a_port_that_has_a_connection_to_the_server_is_named() {
    let server = Server::start(Tool::Linerate, &[]);
    let first = free_port_range(1).to_string();
    let start = |seconds| {
        let options = ["-t", seconds, "-b", "1M", "--cport", &first];
        client::start(Tool::Linerate, "127.0.0.1", server.port(), &options)
    };
    let earlier = start("4");
    // Long enough for the earlier client to have its stream.
    std::thread::sleep(Duration::from_millis(1500));
    let later = start("1").wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(later.code, Some(2), "{later}");
    assert!(later.stderr.contains(&format!("local port {first} has a connection")), "{later}");
    let earlier = earlier.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(earlier.code, Some(0), "{earlier}");
}

#[test]
fn a_port_that_cannot_be_had_is_named_before_the_server_is_called() {
    let (first, udp) = (free_port_range(2), free_port_range(1));
    let tcp = first + 1;
    let _listener = TcpListener::bind(("127.0.0.1", tcp)).expect("it was free a moment ago");
    let _socket = UdpSocket::bind(("127.0.0.1", udp)).expect("it was free a moment ago");
    // Nobody listens there, so whoever calls it says so.
    let nobody = free_port();
    for (port, streams, options, words) in [
        (tcp, 1, "-t 1", format!("local port {tcp}: Address already in use")),
        (first, 2, "-t 1 -P 2", format!("local port {tcp}: Address already in use")),
        (udp, 1, "-u -t 1", format!("local port {udp}: Address already in use")),
        (65_535, 2, "-t 1 -P 2", "ports end at 65535".to_owned()),
        (65_500, 128, "-t 1 -P 64 --bidir", "65500 to 65627".to_owned()),
    ] {
        let port_text = port.to_string();
        let options: Vec<&str> = options.split(' ').chain(["--cport", &port_text]).collect();
        let ended = client::run(Tool::Linerate, "127.0.0.1", nobody, &options, LIMIT);
        let ended = ended.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(1), "{streams} streams: {ended}");
        assert!(ended.stderr.contains(&format!("--cport {port}: ")), "{ended}");
        assert!(ended.stderr.contains(&words), "{words}: {ended}");
    }
}

fn run(tool: Tool, host: &str, port: u16, first: u16, options: &str) -> Result<Ended, String> {
    let first = first.to_string();
    let options: Vec<&str> = options.split(' ').chain(["-J", "--cport", &first]).collect();
    client::run(tool, host, port, &options, LIMIT)
}

fn stream_ports(document: &Value, key: &str) -> Vec<u64> {
    let streams = document["start"]["connected"].as_array().map_or(&[][..], Vec::as_slice);
    streams.iter().filter_map(|stream| stream[key].as_u64()).collect()
}

/// The first of so many free ports in a row, from below those that `free_port` gives.
fn free_port_range(count: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let step = (std::process::id() as u16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let first = 2000 + step % 1000 * 8;
        let is_free = |port| {
            let tcp = TcpListener::bind(("0.0.0.0", port));
            tcp.is_ok() && UdpSocket::bind(("0.0.0.0", port)).is_ok()
        };
        if (first..first + count).all(is_free) {
            return first;
        }
    }
}
