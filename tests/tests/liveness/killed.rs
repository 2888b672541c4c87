//! Clients that are gone from one moment to the next, at every step of a test: the server is told by
//! the client's system, frees the place at once, and reports what was measured until then.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::journal::LoggedServer;
use linerate_tests::rows::run_all;
use linerate_tests::script::{Peer, Step, frame, honest_client};
use linerate_tests::tool::Tool;

use super::silent::is_alone;

/// How many steps of an honest client are done, what the server says then, and the outcome.
const STEPS: [(usize, &str, &str); 9] = [
    (1, "waiting for the parameters", "lost"),
    (3, "the streams", "lost"),
    (4, "the streams", "lost"),
    (5, "the streams, or running the test", "lost"),
    (7, "running the test", "lost"),
    (8, "running the test", "lost"),
    (10, "the results", "lost"),
    (11, "", "complete"),
    (14, "", "complete"),
];

#[test]
fn scripted_client_that_vanishes_at_any_step_frees_its_place_at_once() {
    let server = LoggedServer::start(&[]);
    for (steps, phase, outcome) in STEPS {
        let from = server.lines().len();
        vanish(&server, &honest_client()[..steps]);
        let (end, _) = server.await_event("end", from, AT_ONCE).expect(phase);
        assert_eq!(end["outcome"], outcome, "{steps} steps: {end}");
        if outcome == "lost" {
            assert_eq!(end["by"], "client", "{steps} steps: {end}");
        }
        // From the start of the test on there are numbers, and from its data on they are right.
        let bytes = (steps >= 7).then_some(if steps >= 8 { 4096 } else { 0 });
        if steps != 5 {
            assert_eq!(end["received_bytes"].as_u64(), bytes, "{steps} steps: {end}");
        }
        is_alone(&server);
    }
    // Half a document of results.
    let from = server.lines().len();
    let mut half = honest_client()[..10].to_vec();
    half.push(Step::Send([&200_u32.to_be_bytes()[..], b"{\"cpu_util_total\":1,"].concat()));
    vanish(&server, &half);
    let (end, _) = server.await_event("end", from, AT_ONCE).expect("half of the results");
    assert_eq!((&end["outcome"], &end["received_bytes"]), (&"lost".into(), &4096.into()), "{end}");
}

/// UDP set-up is one at a time for each address: who is gone must not hold it.
#[test]
fn client_that_vanishes_in_udp_set_up_locks_nobody_out() {
    let server = LoggedServer::start(&[]);
    let from = server.lines().len();
    let mut steps = honest_client()[..4].to_vec();
    steps[2] = frame(
        r#"{"udp":true,"omit":0,"time":9,"num":0,"blockcount":0,"parallel":3,"len":1000,"bandwidth":1000000,"client_version":"3.12"}"#,
    );
    vanish(&server, &steps);
    let (end, _) = server.await_event("end", from, AT_ONCE).expect("an end");
    assert_eq!((&end["outcome"], &end["by"]), (&"lost".into(), &"client".into()), "{end}");
    let options = ["-u", "-n", "64K", "-l", "1000", "-b", "50M", "-P", "2"];
    let ended = client::run(Tool::Linerate, "127.0.0.1", server.port(), &options, AT_ONCE);
    let ended = ended.expect("set up at once");
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
fn connections_that_never_become_a_client_are_logged_with_their_reason() {
    let server = LoggedServer::start(&[]);
    for (bytes, reason) in [
        (&b""[..], "closed before its cookie"),
        (b"half a cookie", "closed before its cookie"),
        (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "HTTP"),
    ] {
        let from = server.lines().len();
        vanish(&server, &[Step::Send(bytes.into())]);
        let (line, _) = server.await_event("turned-away", from, AT_ONCE).expect("a line");
        assert!(line["reason"].as_str().unwrap_or_default().contains(reason), "{line}");
        assert_eq!(line["peer"], "127.0.0.1");
    }
    is_alone(&server);
}

/// Real clients, with 8 Mbit/s each way, so that the bytes of a time are known.
const CLIENTS: [(Tool, &str); 10] = [
    (Tool::Linerate, ""),
    (Tool::Linerate, "-R"),
    (Tool::Linerate, "--bidir"),
    (Tool::Linerate, "-u -l 1000"),
    (Tool::Linerate, "-u -l 1000 -R"),
    (Tool::Linerate, "-u -l 1000 --bidir -P 2"),
    (Tool::Iperf3, ""),
    (Tool::Iperf3, "--bidir"),
    (Tool::Iperf3, "-u -l 1000 -R"),
    (Tool::Iperf3, "-P 2 -R"),
];

#[test]
fn client_that_is_killed_frees_its_place_and_its_report_is_right() {
    run_all(&CLIENTS, |&(tool, options)| {
        if !tool.is_here() {
            return Ok(());
        }
        let server = LoggedServer::start(&[]);
        let words: Vec<_> =
            "-t 30 -b 8M -l 10K".split(' ').chain(options.split_whitespace()).collect();
        let mut client = client::start(tool, "127.0.0.1", server.port(), &words);
        server.await_event("begin", 0, Duration::from_secs(10))?;
        std::thread::sleep(Duration::from_millis(1500));
        client.signal("KILL");
        let (end, took) = server.await_event("end", 0, AT_ONCE)?;
        let line = format!("{tool} {options}: {end} after {took:?}");
        if end["outcome"] != "lost" || end["by"] != "client" {
            return Err(line);
        }
        let streams = if options.contains("-P 2") { 2.0 } else { 1.0 };
        let seconds = end["seconds"].as_f64().unwrap_or_default();
        for (key, is_there) in [
            ("received_bytes", !options.contains("-R")),
            ("sent_bytes", options.contains("-R") || options.contains("--bidir")),
        ] {
            let expected = if is_there { streams * seconds * 1e6 } else { 0.0 };
            let bytes = end[key].as_f64().ok_or(line.clone())?;
            // A machine with more to do lets a paced sender fall behind for a moment.
            let slack = 0.25 * expected + 20_000.0 * f64::from(is_there);
            if (bytes - expected).abs() > slack {
                return Err(format!("{line}: {key} is not about {expected}"));
            }
        }
        if !(1.2..3.0).contains(&seconds) {
            return Err(line);
        }
        is_alone(&server);
        Ok(())
    });
}

/// Does these steps and is gone.
fn vanish(server: &LoggedServer, steps: &[Step]) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let mut peer = Peer::connect(address).expect("the server listens");
    peer.follow(steps).expect("an honest exchange so far");
    if steps.len() == 8 {
        // What was sent has to be counted before the end of the client can overtake it.
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Until a place is free: the client's system closes its connections with the process, and a farewell
/// takes a second at most.
const AT_ONCE: Duration = Duration::from_secs(3);

#[test]
fn scripts_and_frames_are_as_the_rows_count_them() {
    let steps = honest_client();
    assert_eq!(steps[0], Step::Cookie);
    assert_eq!(steps[7], Step::Data);
    assert!(matches!(steps[10], Step::Send(_)), "the results");
    assert_ne!(steps[10], frame(""));
}
