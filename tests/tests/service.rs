//! A server that nobody watches: its log lines, what it tells systemd, its life as process 1 of a
//! container, and what each signal does to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::journal::LoggedServer;
use linerate_tests::process::Process;
use linerate_tests::scratch::Scratch;
use linerate_tests::script::{Peer, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

#[test]
fn a_server_that_somebody_watches_looks_as_iperf3s() {
    for options in [&[][..], &["-J"], &["--test-log", "off"]] {
        let server = Server::start(Tool::Linerate, options);
        let ended = run(server.port(), &["-n", "64K"]);
        assert_eq!(ended.code, Some(0), "{ended}");
        let ended = server.stop("INT").expect("it ends");
        assert!(!ended.stderr.contains("begin") && !ended.stderr.contains("end "), "{ended}");
    }
}

#[test]
fn each_test_has_a_line_when_it_begins_and_one_when_it_ends() {
    let server = Server::start(Tool::Linerate, &["--test-log", "json", "-J"]);
    for options in ["-n 64K", "-n 64K -R -P 2", "-u -n 64K -l 1000 -b 10M --bidir"] {
        let options: Vec<_> = options.split(' ').collect();
        let ended = run(server.port(), &options);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    let port = server.port();
    let ended = server.stop("TERM").expect("it ends");
    assert_eq!(ended.code, Some(0), "{ended}");
    // What they say stands beside the documents, not in them.
    assert_eq!(ended.documents().expect("documents and nothing else").len(), 4, "{ended}");
    let lines: Vec<Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap_or("")).collect();
    let expected = ["start", "begin", "end", "begin", "end", "begin", "end", "stop"];
    assert_eq!(events, expected, "{ended}");
    assert_eq!(lines[0]["port"], port);
    for (index, (protocol, direction, streams)) in
        [("TCP", "forward", 1), ("TCP", "reverse", 2), ("UDP", "bidirectional", 2)]
            .into_iter()
            .enumerate()
    {
        for line in &lines[1 + 2 * index..3 + 2 * index] {
            assert_eq!(line["test"], index + 1, "{line}");
            assert_eq!(line["peer"], "127.0.0.1", "{line}");
            assert_eq!(line["protocol"], protocol, "{line}");
            assert_eq!(line["direction"], direction, "{line}");
            assert_eq!(line["streams"], streams, "{line}");
        }
        let end = &lines[2 + 2 * index];
        assert_eq!(end["outcome"], "complete", "{end}");
        let moved = |key: &str| end[key].as_u64().unwrap_or(0);
        assert_eq!(moved("received_bytes") > 0, direction != "reverse", "{end}");
        assert_eq!(moved("sent_bytes") > 0, direction != "forward", "{end}");
        assert!(moved("bits_per_second") > 0, "{end}");
    }
    assert!(lines[7]["reason"].as_str().unwrap_or("").contains("Terminated(15)"), "{ended}");
}

/// In every form and place, what goes wrong is one line of the log, and nothing else is between them.
#[test]
fn a_refusal_is_one_line_and_a_log_as_json_holds_objects_only() {
    let scratch = Scratch::new();
    let file = scratch.file("log");
    let file = file.to_str().expect("a plain path");
    let policy = scratch.file("policy");
    let policy = policy.to_str().expect("a plain path");
    for (format, more) in [
        ("json", &[][..]),
        ("json", &["-V", "-d", "--explain", "--timestamps"]),
        ("json", &["-J", "-f", "m"]),
        ("json", &["--json-stream", "-d4"]),
        ("json", &["-J", "--logfile", file]),
        ("text", &[]),
        ("text", &["--logfile", file]),
    ] {
        std::fs::write(policy, "server-max-duration = 5\n").expect("it is writable");
        std::fs::write(file, "").expect("it is writable");
        let options = [&["--test-log", format, "--policy", policy], more].concat();
        let mut server = Server::start(Tool::Linerate, &options);
        let ended = run(server.port(), &["-t", "9"]);
        assert_eq!(ended.code, Some(3), "{ended}");
        // Read again: first what is wrong, then what is right.
        for content in ["no-such-limit = 1\n", "server-max-duration = 5\n"] {
            std::fs::write(policy, content).expect("it is writable");
            server.signal("HUP");
            std::thread::sleep(Duration::from_millis(300));
        }
        let ended = server.stop("TERM").expect("it ends");
        let log = match more {
            [.., "--logfile", _] if format == "text" => scratch.read("log"),
            _ => ended.stderr.clone(),
        };
        for words in ["asked for 9 seconds", "no-such-limit", "Terminated(15)"] {
            let is_it = |line: &&str| line.contains(words) && !line.contains("\"debug\"");
            assert_eq!(log.lines().filter(is_it).count(), 1, "{options:?}: {ended}\n{log}");
        }
        assert!(!log.contains("linerate: "), "{options:?}: {ended}");
        if format == "json" {
            let is_event = |line: &str| {
                let line = serde_json::from_str::<Value>(line);
                line.is_ok_and(|line| line["event"].is_string() && line["time"].is_string())
            };
            assert!(log.lines().all(is_event), "{options:?}: {ended}");
        }
    }
}

#[test]
fn a_server_that_cannot_begin_says_why_in_its_log() {
    let taken = Server::start(Tool::Linerate, &[]);
    let port = taken.port().to_string();
    for more in [&[][..], &["-J"], &["-I", "no/such/folder"]] {
        let mut command = Tool::Linerate.command();
        command.args(["-s", "-p", &port, "--test-log", "json"]).args(more);
        let ended = Process::start(&mut command).wait(SOON).expect("it ends at once");
        assert_eq!(ended.code, Some(1), "{ended}");
        let line: Value = serde_json::from_str(&ended.stderr).expect("one object");
        assert_eq!(line["event"], "error", "{ended}");
        assert!(line["reason"].as_str().unwrap_or("").starts_with("unable to "), "{ended}");
    }
    // A command line that cannot be used has no log yet.
    let mut command = Tool::Linerate.command();
    command.args(["-s", "-p", "0x", "--test-log", "json"]);
    let ended = Process::start(&mut command).wait(SOON).expect("it ends at once");
    assert!(ended.code == Some(1) && ended.stderr.starts_with("linerate: "), "{ended}");
}

#[test]
fn lines_tell_by_whom_and_why_a_test_ended() {
    let server = LoggedServer::start(&["--server-max-duration", "5"]);
    for (options, outcome, by, reason) in [
        ("-t 9", "refused", "server", "asked for 9 seconds, allowed: 5"),
        ("-t 5", "interrupted", "client", "the client has terminated"),
    ] {
        let from = server.lines().len();
        let words: Vec<_> = options.split(' ').collect();
        let mut client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &words);
        if outcome == "interrupted" {
            server.await_event("begin", from, SOON).expect("it runs");
            std::thread::sleep(Duration::from_millis(300));
            client.signal("INT");
        }
        let (end, _) = server.await_event("end", from, SOON).expect(options);
        assert_eq!((&end["outcome"], &end["by"]), (&outcome.into(), &by.into()), "{end}");
        assert!(end["reason"].as_str().unwrap_or("").contains(reason), "{end}");
    }
}

#[test]
fn signals_end_a_running_test_with_its_result_in_time_and_the_second_at_once() {
    for (signals, within) in
        [(&["TERM"][..], 3), (&["INT"], 3), (&["HUP"], 3), (&["INT", "INT"], 2)]
    {
        let mut server = LoggedServer::start(&[]);
        let options = ["-t", "30", "-b", "10M", "-J"];
        let client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &options);
        server.await_event("begin", 0, SOON).expect("it runs");
        std::thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        for signal in signals {
            server.server.signal(signal);
        }
        while server.server.is_running() {
            assert!(began.elapsed() < Duration::from_secs(10), "{signals:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = began.elapsed();
        assert!(took < Duration::from_secs(within), "{signals:?}: {took:?}");
        let ended = client.wait(SOON).expect("its server has ended");
        let document = ended.document().expect("one document");
        assert!(document["end"]["sum_sent"]["bytes"].as_u64() > Some(0), "{ended}");
        if signals.len() == 1 {
            assert_eq!(document["error"], "the server has terminated", "{ended}");
            let (end, _) = server.await_event("end", 0, SOON).expect("before it ended");
            assert_eq!((&end["outcome"], &end["by"]), (&"interrupted".into(), &"server".into()));
            assert!(end["received_bytes"].as_u64() > Some(0), "{end}");
        }
    }
}

#[test]
fn clients_that_do_not_answer_keep_no_server_from_ending() {
    let mut server = LoggedServer::start(&[]);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let peers: Vec<_> = [0, 1, 4, 8, 10]
        .into_iter()
        .map(|steps| {
            let mut peer = Peer::connect(address).expect("the server listens");
            peer.follow(&honest_client()[..steps]).expect("an honest exchange so far");
            peer
        })
        .collect();
    let began = Instant::now();
    server.server.signal("TERM");
    while server.server.is_running() {
        assert!(began.elapsed() < Duration::from_secs(6), "{}", server.text());
        std::thread::sleep(Duration::from_millis(10));
    }
    let lines = server.lines();
    let ends = lines.iter().filter(|line| line["outcome"] == "interrupted").count();
    assert_eq!(ends, 4, "all but the one that never was a client: {}", server.text());
    drop(peers);
}

#[cfg(unix)]
#[test]
fn a_supervisor_hears_when_the_server_is_ready_lives_and_stops() {
    use std::os::unix::net::UnixDatagram;
    let scratch = Scratch::new();
    let path = scratch.file("notify");
    let listening = UnixDatagram::bind(&path).expect("a path of its own");
    listening.set_read_timeout(Some(SOON)).expect("a time-out is allowed");
    let hear = || {
        let mut bytes = [0; 500];
        let len = listening.recv(&mut bytes).expect("the server says something");
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    let server = Server::start_as(
        Tool::Linerate,
        || {
            let mut command = Tool::Linerate.command();
            command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
            command
        },
        &[],
    );
    assert!(hear().starts_with("READY=1\nSTATUS=port "), "it is ready once its port is open");
    let began = Instant::now();
    let signs = (0..10).map(|_| hear()).filter(|sign| sign.starts_with("WATCHDOG=1\n")).count();
    assert_eq!(signs, 10);
    // One comes at once, and each of the others after half of the time.
    assert!(began.elapsed() > Duration::from_millis(1500), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_millis(4000), "{:?}", began.elapsed());
    server.stop("TERM").expect("it ends");
    let last = std::iter::repeat_with(hear).find(|text| !text.starts_with("WATCHDOG=1"));
    assert!(last.is_some_and(|text| text.starts_with("STOPPING=1\n")));
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_works_as_the_first_process_of_a_container() {
    use linerate_tests::namespace::may_make_namespaces;
    if !may_make_namespaces() {
        return;
    }
    for signal in ["TERM", "INT"] {
        // Nothing is there that a minimal container lacks: no /proc, no /tmp, no variable, no terminal.
        // The program itself may lie in a folder of that name.
        let script = "mount -t tmpfs none /proc && \
            case $1 in /tmp/*) ;; *) mount -t tmpfs -o ro none /tmp ;; esac && exec env -i \"$@\"";
        let mut server = Server::start_as(
            Tool::Linerate,
            || {
                let program = Tool::Linerate.command();
                let mut command = std::process::Command::new("unshare");
                command.args(["--pid", "--mount", "--fork", "sh", "-c", script, "sh"]);
                command.arg(program.get_program());
                command
            },
            &["-J"],
        );
        let ended = run(server.port(), &["-n", "64K"]);
        assert_eq!(ended.code, Some(0), "{ended}");
        let own = first_child(server.id());
        let began = Instant::now();
        let kill = std::process::Command::new("kill").args(["-s", signal, &own]).status();
        assert!(kill.is_ok_and(|status| status.success()));
        while server.is_running() {
            assert!(began.elapsed() < SOON, "process 1 did not end by {signal}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = server.wait().expect("it has ended");
        assert_eq!(ended.code, Some(0), "{ended}");
        // A container's first process has its log: nobody watches it.
        let events: Vec<_> =
            ended.stderr.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(events, ["start", "begin", "end", "stop"], "{ended}");
    }
}

#[cfg(target_os = "linux")]
fn first_child(process: u32) -> String {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.expect("the system tells").split_whitespace().next().expect("one").to_owned()
}

/// The unit file of a service, held against what the server does and, where systemd is, against it.
#[cfg(target_os = "linux")]
#[test]
fn the_unit_file_is_one_that_systemd_takes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../std-host/dist/linerate.service");
    let unit = std::fs::read_to_string(path).expect("it is there");
    for line in ["Type=notify", "ExecStart=/usr/bin/linerate -s", "WatchdogSec=30s"] {
        assert!(unit.lines().any(|l| l == line), "{line}");
    }
    let scratch = Scratch::new();
    let copy = scratch.file("linerate.service");
    let program = Tool::Linerate.command().get_program().to_string_lossy().into_owned();
    std::fs::write(&copy, unit.replace("/usr/bin/linerate", &program)).expect("it is writable");
    let verify = std::process::Command::new("systemd-analyze").arg("verify").arg(&copy).output();
    let Ok(verified) = verify else { return eprintln!("there is no systemd to ask") };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && said.is_empty(), "{said}");
}

fn run(port: u16, options: &[&str]) -> linerate_tests::process::Ended {
    client::run(Tool::Linerate, "127.0.0.1", port, options, SOON).expect("a short test")
}

const SOON: Duration = Duration::from_secs(10);
