//! Small cases that users of iperf3 and of tools like it have reported, where no suite about
//! something larger has them. `docs/cases.md` says which report is which.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use linerate_tests::case::Case;
use linerate_tests::check::{Report, check};
use linerate_tests::client;
use linerate_tests::relay::{Datagrams, Relay};
use linerate_tests::script::{Peer, Step, honest_server, honest_server_end};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool::{Iperf3, Linerate};
use serde_json::Value;

#[test]
fn without_reports_a_document_has_one_interval_of_the_whole_test() {
    for options in ["-t 1 -b 5M", "-t 1 -b 5M -R", "-u -t 1 -b 1M -l 1000"] {
        let server = Server::start(Linerate, &["-1", "-J", "-i", "0"]);
        let options: Vec<_> = options.split(' ').chain(["-i", "0", "-J"]).collect();
        let client = client::run(Linerate, "127.0.0.1", server.port(), &options, LIMIT);
        let ended = [client.expect("it ends"), server.wait().expect("it ends")];
        for ended in &ended {
            let document = ended.document().expect("a document");
            let intervals = document["intervals"].as_array().expect("intervals");
            assert_eq!(intervals.len(), 1, "{ended}");
            assert!(intervals[0]["sum"]["bytes"].as_u64() > Some(0), "{ended}");
        }
    }
}

/// As iperf3 has it: of several streams the mean.
#[test]
fn jitter_of_several_streams_is_their_mean() {
    let server = Server::start(Linerate, &["-1", "-J"]);
    let options = ["-u", "-t", "1", "-b", "2M", "-l", "1000", "-P", "4", "-J"];
    let client = client::run(Linerate, "127.0.0.1", server.port(), &options, LIMIT);
    for ended in [client.expect("it ends"), server.wait().expect("it ends")] {
        let end = &ended.document().expect("a document")["end"];
        let jitter = |of: &Value| of["jitter_ms"].as_f64().expect("a number");
        let streams = end["streams"].as_array().expect("streams");
        let mean = streams.iter().map(|stream| jitter(&stream["udp"])).sum::<f64>() / 4.0;
        assert_eq!(streams.len(), 4, "{ended}");
        assert!((jitter(&end["sum_received"]) - mean).abs() < 1e-5, "{mean}: {ended}");
    }
}

/// The server does not answer the end of the test before the line has been seen.
#[test]
fn the_last_interval_is_there_before_the_servers_results() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    let (seen, wait) = channel();
    let server = thread::spawn(move || {
        let whole = [honest_server(), honest_server_end()].concat();
        let until_the_end = whole.iter().position(|step| *step == Step::Expect(TEST_END));
        let (test, results) = whole.split_at(until_the_end.expect("it has an end") + 1);
        let mut peer = Peer::accept(listener)?;
        peer.follow(test)?;
        wait.recv_timeout(LIMIT).map_err(std::io::Error::other)?;
        peer.follow(results)
    });
    let mut command = Linerate.command();
    command.args(["-c", "127.0.0.1", "-p", &port, "-t", "1", "-b", "1M", "--forceflush"]);
    let mut client = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(client.stdout.take().expect("captured")).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains("0.00-1.0")), "its line comes");
    seen.send(()).expect("the server waits for it");
    let rest = lines.count();
    server.join().expect("it does not panic").expect("an honest exchange");
    assert!(rest > 0, "the summary comes after it");
    assert_eq!(client.wait().expect("ours").code(), Some(0));
}

#[test]
fn an_amount_of_datagrams_without_a_rate_ends_whatever_is_lost() {
    let server = Server::start(Linerate, &[]);
    for tool in [Linerate, Iperf3] {
        if !tool.is_here() {
            continue;
        }
        let options = ["-u", "-R", "-b", "0", "-n", "5M", "-P", "5", "-l", "1400", "-J"];
        let ended = client::run(tool, "127.0.0.1", server.port(), &options, LIMIT);
        let ended = ended.expect("it ends");
        let document = ended.document().expect("a document");
        assert_eq!(ended.code, Some(0), "{ended}");
        let bytes = |key: &str| document["end"][key]["bytes"].as_u64().expect("a number");
        let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
        assert!((5 << 20) <= received && received <= sent, "{received} of {sent}: {ended}");
    }
}

#[test]
fn tcp_needs_nothing_but_one_forwarded_port() {
    let server_options = ["-1", "-J"];
    for line in ["-n 256K", "-n 256K -R", "-t 1 -b 2M -P 4", "-t 1 -b 2M --bidir"] {
        let case = Case::new(line);
        let server = Server::start(Linerate, &server_options);
        let relay = Relay::start(server.port(), Datagrams::Refuse);
        let client =
            client::run(Linerate, case.host(), relay.port(), &case.options(), LIMIT).expect(line);
        let server = server.wait().expect(line);
        let [near, far] = [&client, &server].map(|ended| ended.document().expect("a document"));
        let near = Report::new(Linerate, &client, &near);
        let broken = check(&case, &near, &Report::new(Linerate, &server, &far));
        assert!(broken.is_empty(), "{line}: {}", broken.join("\n"));
    }
}

const TEST_END: u8 = 4;
const LIMIT: Duration = Duration::from_secs(20);
