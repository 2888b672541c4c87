//! Stopping a client wherever its test is, with a server that has fallen silent there: the first
//! signal ends it with what there is and does not wait for the peer. A server that is stopped ends
//! its clients' tests, each with one ending.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::json::Stream;
use linerate_tests::rows::run_all;
use linerate_tests::script::{Peer, honest_server};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::{Value, json};

/// How many steps of an honest server the silent one does, and what the client is in then.
const STALLS: [(usize, &str); 6] = [
    (0, "waiting for an answer"),
    (2, "waiting for the server to take its parameters"),
    (4, "connecting streams"),
    (5, "waiting for the start"),
    (7, "running"),
    (8, "waiting for the end"),
];

#[test]
fn interrupted_client_ends_soon_wherever_its_test_is() {
    run_all(&STALLS, |&(steps, phase)| {
        for signals in [1, 2] {
            interrupt(steps, signals).map_err(|e| format!("{phase}, {signals} signals: {e}"))?;
        }
        Ok(())
    });
}

fn interrupt(steps: usize, signals: usize) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let server = std::thread::spawn(move || {
        let mut peer = Peer::accept(listener)?;
        peer.follow(&honest_server()[..steps])?;
        // It says no more, and is there until the client goes.
        peer.until_closed()
    });
    // By amount, so that a client that may send ends its test by itself.
    let mut client = client::start(Tool::Linerate, "127.0.0.1", port, &["-n", "64K"]);
    // Until it has come as far as its server lets it.
    std::thread::sleep(Duration::from_millis(500));
    if !client.is_running() {
        return Err(format!("it did not wait: {}", client.wait(TIME_LIMIT)?));
    }
    let stopped = Instant::now();
    for _ in 0..signals {
        client.signal("INT");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = client.wait(TIME_LIMIT)?;
    let took = stopped.elapsed();
    drop(server.join());
    let says =
        ended.stderr.contains("interrupt - the client has terminated by signal Interrupt(2)");
    // A second signal may come before the first one has been told of.
    let is_told = says || signals == 2;
    // A farewell to the silent server takes a second at most.
    if ended.code == Some(5) && is_told && took < Duration::from_secs(3) {
        Ok(())
    } else {
        Err(format!("after {took:?}: {ended}"))
    }
}

#[test]
fn client_of_a_stopped_server_has_one_ending() {
    for tool in [Tool::Linerate, Tool::Iperf3] {
        if !tool.is_here() {
            return;
        }
        let server = Server::start(tool, &[]);
        let options = ["-t", "20", "-b", "10M", "-J"];
        let client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &options);
        // The test is to be in its middle.
        std::thread::sleep(Duration::from_millis(1500));
        server.stop("INT").expect("a signal ends it");
        let ended = client.wait(TIME_LIMIT).expect("its server has ended");
        assert_eq!(ended.code, Some(5), "{ended}");
        let document = ended.document().expect("exactly one document");
        assert_eq!(document["error"], "the server has terminated", "{ended}");
        assert!(document["end"]["sum_sent"]["bytes"].as_u64() > Some(0), "{ended}");
        assert!(ended.stderr.is_empty(), "{ended}");
    }
}

#[test]
fn what_a_stopped_server_measured_is_not_known_to_its_client() {
    for (options, unknown) in [
        (&["-P", "2"][..], "receiver"),
        (&["-R", "-V"], "sender"),
        (&["-u", "-b", "1M"], "receiver"),
    ] {
        let server = Server::start(Tool::Linerate, &[]);
        let line = [&["-t", "20", "-b", "10M"], options].concat();
        let client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &line);
        // The test is to be in its middle.
        std::thread::sleep(Duration::from_millis(1500));
        server.stop("INT").expect("a signal ends it");
        let ended = client.wait(TIME_LIMIT).expect("its server has ended");
        let summary = ended.stdout.split("- - - -").last().expect("there is one");
        let said = format!("({unknown} statistics not available)");
        assert!(summary.contains(&said), "{ended}");
        let measured = summary.lines().filter(|line| line.ends_with(unknown));
        assert_eq!(measured.count(), 0, "{ended}");
        assert!(!summary.contains("remote/receiver 0.0%"), "{ended}");
    }
}

/// Either end of a test that one of them interrupts measured its own half only.
#[test]
fn documents_say_that_the_other_half_is_not_known() {
    for (is_server_stopped, format) in
        [false, true].into_iter().flat_map(|stopped| [(stopped, "-J"), (stopped, "--json-stream")])
    {
        let server = Server::start(Tool::Linerate, &[format, "-1"]);
        let options = ["-t", "20", "-b", "10M", format];
        let mut client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &options);
        // The test is to be in its middle.
        std::thread::sleep(Duration::from_millis(1500));
        let (of_client, of_server) = if is_server_stopped {
            let of_server = server.stop("INT").expect("a signal ends it");
            (client.wait(TIME_LIMIT).expect("its server has ended"), of_server)
        } else {
            client.signal("INT");
            let of_client = client.wait(TIME_LIMIT).expect("a signal ends it");
            (of_client, server.wait().expect("it was its only test"))
        };
        for (ended, own) in [(of_client, "sum_sent"), (of_server, "sum_received")] {
            let (document, end) = if format == "-J" {
                (ended.document().expect("exactly one document"), "end")
            } else {
                let mut stream = Stream::read(&ended.stdout).expect("a stream");
                (stream.lines.pop().expect("an end"), "data")
            };
            assert_eq!(document["linerate"]["has_peer_results"], false, "{ended}");
            // A server knows what ran beside the test; its client learns it with the results.
            let beside = if own == "sum_received" { json!(0) } else { Value::Null };
            assert_eq!(document["linerate"].get("concurrent_tests"), Some(&beside), "{ended}");
            assert!(document[end][own]["bytes"].as_u64() > Some(0), "{ended}");
        }
    }
}

#[test]
fn server_that_is_stopped_in_a_test_has_one_ending() {
    let server = Server::start(Tool::Linerate, &["-J"]);
    let client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &["-t", "20"]);
    // The test is to be in its middle.
    std::thread::sleep(Duration::from_millis(1500));
    let ended = server.stop("INT").expect("a signal ends it");
    assert_eq!(ended.code, Some(0), "{ended}");
    let document = ended.document().expect("exactly one document");
    let error = document["error"].as_str().unwrap_or_default();
    assert_eq!(error, "interrupt - the server has terminated by signal Interrupt(2)");
    assert!(document["end"]["sum_received"]["bytes"].as_u64() > Some(0), "{ended}");
    drop(client.wait(TIME_LIMIT));
}

const TIME_LIMIT: Duration = Duration::from_secs(20);
