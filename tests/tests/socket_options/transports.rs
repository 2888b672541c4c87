//! MPTCP, SCTP, and what else both ends ask their kernels for: what the data streams use, what the control
//! connection does, and what is said where one end lacks it.

use std::time::Duration;

use linerate_tests::client;
use linerate_tests::namespace::{Namespace, may_make_namespaces};
use linerate_tests::rows::run_all;
use linerate_tests::script::{Peer, Step, frame};
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;
use linerate_tests::veth::{Cable, FAR};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn data_streams_use_mptcp_and_the_control_connection_does_not() {
    if !may_run() {
        return;
    }
    for (options, streams) in
        [("-m -n 1M", 1), ("-m -n 1M -P 2 -R", 2), ("-m -n 1M --bidir", 2), ("-n 1M -P 2", 0)]
    {
        let network = Namespace::new();
        let server = Server::start_in(&network, Tool::Linerate, &["-1", "--explain"]);
        let words: Vec<&str> = options.split(' ').chain(["--explain"]).collect();
        let client = client::start_in(&network, Tool::Linerate, "127.0.0.1", server.port(), &words);
        let client = client.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
        let server = server.wait().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((client.code, server.code), (Some(0), Some(0)), "{client}\n{server}");
        assert!(!client.stderr.contains("--mptcp"), "{client}");
        // Both counters of a network that is new count this test only.
        for counter in ["MPCapableSYNRX", "MPCapableSYNACKRX"] {
            assert_eq!(network.mptcp_count(counter), streams, "{options}: {counter}");
        }
    }
}

#[test]
fn a_server_without_mptcp_is_told_of() {
    if !may_run() || !Tool::Iperf3.is_here() {
        return;
    }
    // The system's iperf3 may be older than MPTCP in iperf3, and passes over the wish then.
    let server = Server::start(Tool::Iperf3, &["-1"]);
    let options = ["-m", "-n", "1M", "--explain"];
    let ended = client::run(Tool::Linerate, "127.0.0.1", server.port(), &options, LIMIT);
    let ended = ended.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(ended.code, Some(0), "{ended}");
    if version_of_iperf3() < (3, 19) {
        assert!(ended.stderr.contains("--mptcp has no effect here: the server"), "{ended}");
    }
}

#[test]
fn a_client_whose_system_lacks_mptcp_uses_tcp_and_says_so() {
    if !may_run() {
        return;
    }
    let network = Namespace::new();
    network.set("net.mptcp.enabled", "0");
    // The server's port is a TCP port there.
    let server = Server::start_in(&network, Tool::Linerate, &["-1"]);
    let options = ["-m", "-n", "1M", "--explain"];
    let client = client::start_in(&network, Tool::Linerate, "127.0.0.1", server.port(), &options);
    let ended = client.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(ended.stderr.matches("--mptcp has no effect here").count(), 1, "{ended}");
    server.wait().unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn the_sending_end_is_paced_by_the_kernel() {
    if !may_make_namespaces() || !Tool::Iperf3.is_here() {
        return;
    }
    let cable = Cable::new();
    let rows: Vec<_> = super::PAIRS
        .iter()
        .flat_map(|pair| ["", "-R", "--bidir"].map(|direction| (*pair, direction)))
        // Stock servers do not pace before 3.17.
        .filter(|((_, server), direction)| *server == Tool::Linerate || direction.is_empty())
        .collect();
    run_all(&rows, |&((client, server), direction)| {
        let server = Server::start_in(&cable.far, server, &["-1"]);
        let mut options = vec!["-t", "1", "--fq-rate", "20M", "-J"];
        options.extend(direction.split_whitespace());
        let started = client::start_in(&cable.near, client, FAR.v4, server.port(), &options);
        let ended = started.wait(LIMIT)?;
        let document = ended.document()?;
        // A busy machine may be slower than that, but the cable is a hundred times as fast.
        for sum in ["sum_received", "sum_received_bidir_reverse"] {
            let rate = document["end"][sum]["bits_per_second"].as_f64().unwrap_or(20e6);
            if !(5e6..30e6).contains(&rate) {
                return Err(format!("{sum}: {rate} bit/s: {ended}"));
            }
        }
        Ok(())
    });
}

#[test]
fn both_ends_use_the_congestion_control_that_was_asked_for() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    for (client, server) in super::PAIRS {
        for direction in ["", "-R"] {
            let server = Server::start(server, &["-1"]);
            let mut options = vec!["-n", "1M", "-C", "reno", "-J"];
            options.extend(direction.split_whitespace());
            let ended = client::run(client, "127.0.0.1", server.port(), &options, LIMIT);
            let ended = ended.unwrap_or_else(|why| panic!("{why}"));
            let document = ended.document().unwrap_or_else(|why| panic!("{why}"));
            for end in ["sender", "receiver"] {
                let name = &document["end"][format!("{end}_tcp_congestion")];
                assert_eq!(name, "reno", "{direction}: {ended}");
            }
        }
    }
}

#[test]
fn what_no_socket_of_the_test_can_have_is_refused_before_the_server_is_called() {
    // The kernel takes segments of 88 bytes at least; labels are of IPv6.
    let cases = [
        ("-M 20", "error - -M 20: unable to set TCP/SCTP MSS: Invalid argument"),
        ("-L 5", "error - -L 5: unable to set IPv6 flow label: 127.0.0.1 has no IPv6 address"),
        ("-L 5 -u", "error - -L 5: unable to set IPv6 flow label: 127.0.0.1 has no IPv6 address"),
    ];
    for (line, message) in cases {
        let options: Vec<_> = line.split_whitespace().collect();
        let ended = client::run(Tool::Linerate, "127.0.0.1", free_port(), &options, LIMIT);
        let ended = ended.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains(message), "{ended}");
    }
}

#[test]
fn sctp_that_the_kernel_lacks_is_refused_before_the_server_is_called() {
    if has_sctp() {
        return;
    }
    for options in
        [&["--sctp"][..], &["--sctp", "--nstreams", "5", "-X", "127.0.0.1", "-l", "1000"]]
    {
        let ended = client::run(Tool::Linerate, "127.0.0.1", free_port(), options, LIMIT);
        let ended = ended.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains("--sctp: no SCTP support available"), "{ended}");
    }
}

#[test]
fn a_server_without_sctp_refuses_and_serves_the_next() {
    if has_sctp() {
        return;
    }
    let server = Server::start(Tool::Linerate, &[]);
    let mut peer = Peer::connect(([127, 0, 0, 1], server.port()).into()).expect("a connection");
    let steps = [
        Step::Cookie,
        Step::Expect(9),
        frame(r#"{"sctp":true,"omit":0,"time":1,"parallel":1,"len":65536}"#),
        // SERVER_ERROR, then iperf3's number for it; the error of the system differs.
        Step::Expect(0xfe),
        Step::Expect(0),
        Step::Expect(0),
        Step::Expect(0),
        Step::Expect(18),
        Step::Read(4),
    ];
    peer.follow(&steps).expect("the refusal");
    let next = client::run(Tool::Linerate, "127.0.0.1", server.port(), &["-n", "1M"], LIMIT);
    assert_eq!(next.map(|ended| ended.code), Ok(Some(0)));
}

fn may_run() -> bool {
    super::has_mptcp() && may_make_namespaces()
}

fn has_sctp() -> bool {
    let protocols = std::fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    protocols.lines().any(|line| line.starts_with("SCTP"))
}

fn version_of_iperf3() -> (u32, u32) {
    let output = Tool::Iperf3.command().arg("--version").output().expect("iperf3 is here");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_whitespace().nth(1).unwrap_or_default();
    let mut parts = number.split(['.', '+', '-']).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
