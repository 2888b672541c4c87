//! What a server allows and how long each end is patient, between real programs: time-outs, limits,
//! servers for one test. Stock clients hear iperf3's numbers; the server is there for the next.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::script::{Peer, Step, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

const TOOLS: [Tool; 2] = [Tool::Linerate, Tool::Iperf3];

/// iperf3 3.12, which many systems have, knows no text for the newest numbers.
const TOO_LONG: [&str; 2] =
    ["client's requested duration exceeds the server's maximum permitted limit", "int_errno=37"];
const TOO_FAST: [&str; 2] = ["total required bandwidth is larger than server limit"; 2];
const NO_FILE: [&str; 2] = ["cannot transfer file using UDP", "int_errno=34"];
const SILENT: [&str; 2] = ["idle timeout for receiving data"; 2];

#[test]
fn test_beyond_a_limit_is_refused_before_data_flows() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let options = ["--server-max-duration", "5", "--server-bitrate-limit", "100M"];
    let server = Server::start(Tool::Linerate, &options);
    let rows = [
        ("-t 10", TOO_LONG),
        ("-t 0", TOO_LONG),
        ("-n 10G", TOO_LONG),
        ("-k 10", TOO_LONG),
        ("-t 3 -O 3", TOO_LONG),
        ("-t 1 -b 101M", TOO_FAST),
        ("-t 1 -b 51M -P 2 -R", TOO_FAST),
        ("-t 1 -b 51M --bidir", TOO_FAST),
        ("-t 1 -u -b 101M", TOO_FAST),
        ("-t 10 -b 1G", TOO_FAST),
    ];
    run_all(&rows, |(line, texts)| {
        for tool in TOOLS {
            refused(&run(tool, &server, line), tool, texts)?;
        }
        Ok(())
    });
    for tool in TOOLS {
        completes(&run(tool, &server, "-t 1 -b 50M -P 2"));
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let streams = ended.stdout.matches("connected to").count();
    assert_eq!(streams, 4, "nobody but the last two came as far as streams: {ended}");
}

#[test]
fn datagrams_are_refused_where_the_server_has_a_file() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["-F", "/dev/null"]);
    for tool in TOOLS {
        refused(&run(tool, &server, "-u -t 1"), tool, &NO_FILE).expect("it has a file");
    }
}

#[test]
fn test_that_moves_too_much_is_ended_once_and_the_next_is_served() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["-J", "--server-bitrate-limit", "100M/0.5"]);
    let lines = ["-b 0 -t 9", "-b 0 -t 9 -R", "-b 0 -t 9 -P 4 --bidir -i 0", "-u -b 0 -t 9 -R"];
    for line in lines {
        for tool in TOOLS {
            let ended = run(tool, &server, line);
            refused(&ended, tool, &TOO_FAST).expect(line);
            assert!(ended.took < Duration::from_secs(5), "{ended}");
            completes(&run(tool, &server, "-b 50M -n 1M"));
        }
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let documents = ended.documents().expect("one document for each test");
    // The last tells of the signal.
    assert_eq!(documents.len(), 4 * lines.len() + 1, "{ended}");
    for pair in documents.chunks_exact(2) {
        let error = pair[0]["error"].as_str().unwrap_or_default();
        assert!(error.contains(TOO_FAST[0]) && error.contains("allowed: 100000000"), "{error}");
        let intervals = pair[0]["intervals"].as_array().map_or(0, Vec::len);
        assert!(intervals > 0, "what was measured is there");
        assert!(pair[1].get("error").is_none(), "{}", pair[1]);
    }
}

/// One datagram comes at once and the next would after eight seconds.
#[test]
fn receiver_that_hears_nothing_gives_up_where_it_was_asked_to() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["--rcv-timeout", "700", "-i", "10"]);
    for tool in TOOLS {
        for line in ["-u -b 1K -l 1000 -t 9", "-u -b 1K -l 1000 -t 9 --bidir"] {
            let ended = run(tool, &server, line);
            assert_ne!(ended.code, Some(0), "{ended}");
            assert!(shows(&ended, SILENT[0]), "{ended}");
            assert!(ended.took < Duration::from_secs(4), "{ended}");
            if tool == Tool::Linerate {
                assert_eq!(ended.code, Some(6), "{ended}");
            }
        }
        completes(&run(tool, &server, "-u -b 1K -l 1000 -t 2 -R"));
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    assert!(ended.stderr.contains(SILENT[0]), "{ended}");

    for tool in TOOLS {
        let server = Server::start(tool, &[]);
        let line = "-u -b 1K -l 1000 -t 9 -R --rcv-timeout 700 -i 10";
        let ended = run(Tool::Linerate, &server, line);
        assert_eq!(ended.code, Some(6), "{ended}");
        assert!(shows(&ended, SILENT[0]) && ended.stdout.contains("receiver"), "{ended}");
        let measured = Duration::from_millis(600)..Duration::from_millis(2000);
        assert!(measured.contains(&ended.took), "{ended}");
        completes(&run(Tool::Linerate, &server, "-n 64K"));
    }
}

#[test]
fn tcp_client_that_stops_sending_is_told_after_its_last_byte() {
    let server = Server::start(Tool::Linerate, &["--rcv-timeout", "700", "-i", "10"]);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let mut peer = Peer::connect(address).expect("the server listens");
    let up_to_data = &honest_client()[..8];
    peer.follow(up_to_data).expect("it is honest");
    for _ in 0..3 {
        // Data keeps coming, with shorter pauses than the time-out.
        std::thread::sleep(Duration::from_millis(500));
        peer.follow(&[Step::Data]).expect("the test goes on");
    }
    let silent_since = Instant::now();
    let said = peer.until_closed().expect("the server ends it");
    assert_eq!(said, [0xfe, 0, 0, 0, 144, 0, 0, 0, 0]);
    let took = silent_since.elapsed();
    assert!((600..1500).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn silence_in_data_ends_nothing_that_nobody_asked_to_end() {
    let server = Server::start(Tool::Linerate, &[]);
    completes(&run(Tool::Linerate, &server, "-u -b 1K -l 1000 -t 3"));
}

#[test]
fn server_for_one_test_is_not_used_up_by_what_is_none() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let options = ["-1", "--server-max-duration", "5", "--idle-timeout", "30"];
    let server = Server::start(Tool::Linerate, &options);
    for _ in 0..3 {
        drop(connect(&server));
        refused(&run(Tool::Iperf3, &server, "-t 9"), Tool::Iperf3, &TOO_LONG).expect("too long");
    }
    completes(&run(Tool::Iperf3, &server, "-t 1 -b 50M"));
    let ended = server.wait().expect("it has served its test");
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
fn server_for_one_test_that_nobody_asks_for_ends_well() {
    let started = Instant::now();
    let server = Server::start(Tool::Linerate, &["-1", "--idle-timeout", "2"]);
    // A failed attempt is no client.
    drop(connect(&server));
    let silent = connect(&server);
    let ended = server.wait().expect("its patience ends");
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(ended.stderr.is_empty() || ended.stderr.contains("turned away"), "{ended}");
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
    drop(silent);
}

/// Who came in time may still become the test; attempts that follow each other keep no server alive.
#[test]
fn server_whose_patience_is_over_waits_for_nobody_new() {
    let server = Server::start(Tool::Linerate, &["-1", "--idle-timeout", "1"]);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let mut early = Peer::connect(address).expect("the server listens");
    early.follow(&honest_client()[..2]).expect("the server asks for parameters");
    // Until the server's patience is over.
    std::thread::sleep(Duration::from_millis(1500));
    let late = run(Tool::Linerate, &server, "-t 1");
    assert_eq!(late.code, Some(3), "{late}");
    early.follow(&honest_client()[2..]).expect("it came in time");
    assert_eq!(server.wait().expect("it has served its test").code, Some(0));

    let server = Server::start(Tool::Linerate, &["-1", "--idle-timeout", "1"]);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let mut attempts = Vec::new();
    for _ in 0..8 {
        let Ok(mut attempt) = Peer::connect(address) else { break };
        // Refused once the server's patience is over.
        let _ = attempt.follow(&honest_client()[..2]);
        attempts.push(attempt);
        std::thread::sleep(Duration::from_millis(250));
        if attempts.len() > 2 {
            drop(attempts.remove(0));
        }
    }
    drop(attempts);
    assert_eq!(server.wait().expect("nobody became a test").code, Some(0));
}

#[test]
fn idle_server_goes_on_and_does_not_end_a_test() {
    let mut server = Server::start(Tool::Linerate, &["--idle-timeout", "1"]);
    // Longer than the time-out, which is what has to pass.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(server.is_running());
    completes(&run(Tool::Linerate, &server, "-t 2 -b 10M"));

    let server = Server::start(Tool::Linerate, &["-1", "--idle-timeout", "1"]);
    completes(&run(Tool::Linerate, &server, "-t 2 -b 10M"));
    assert_eq!(server.wait().expect("it has served its test").code, Some(0));
}

fn run(tool: Tool, server: &Server, line: &str) -> Ended {
    let options: Vec<_> = line.split(' ').collect();
    client::run(tool, "127.0.0.1", server.port(), &options, TIME_LIMIT).expect("it ends in time")
}

fn connect(server: &Server) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).expect("the server listens")
}

/// A client ends with the text that its release knows, and linerate with the code of a refusal.
fn refused(ended: &Ended, tool: Tool, texts: &[&str; 2]) -> Result<(), String> {
    let code = if tool == Tool::Linerate { 3 } else { 1 };
    if ended.code == Some(code) && texts.iter().any(|text| shows(ended, text)) {
        Ok(())
    } else {
        Err(ended.to_string())
    }
}

fn completes(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended}");
}

fn shows(ended: &Ended, text: &str) -> bool {
    ended.stderr.contains(text) || ended.stdout.contains(text)
}

const TIME_LIMIT: Duration = Duration::from_secs(20);
