//! Who is refused what, and what each of them hears.

#[cfg(target_os = "linux")]
use std::net::{Ipv4Addr, TcpStream};

use linerate_tests::scratch::Scratch;

use super::*;

const TOO_FAST: &str = "total required bandwidth is larger than server limit";
const STREAMS: &str = "number of parallel streams";

/// A server with this policy file.
fn server_with(policy: &str) -> Server {
    let scratch = Scratch::new();
    let file = scratch.file("policy.toml");
    std::fs::write(&file, policy).expect("there is room for a policy");
    // It has read the file once it listens.
    Server::start(Tool::Linerate, &["--policy", file.to_str().expect("a plain name")])
}

#[test]
fn refusal_names_the_limit_and_the_value() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let rows = [
        (
            "udp = false",
            "-u -t 1",
            "an option you are trying to set is not implemented yet",
            "this server allows no UDP",
        ),
        ("max-streams = 2", "-P 3 -t 1", STREAMS, "asked for 3 streams each way, allowed: 2"),
        ("max-test-bytes = \"1M\"", "-n 2M", TOO_FAST, "asked for 2097152 bytes, allowed: 1048576"),
        ("max-test-bytes = \"8M\"", "-t 9", TOO_FAST, "allowed: 8388608"),
        (
            "max-streams-in-all = 3",
            "-P 2 --bidir -t 1",
            BUSY,
            "asked for 4 streams, other tests have 0, allowed for all together: 3",
        ),
        (
            "max-bitrate = \"10M\"",
            "-b 6M -P 2 -t 1",
            TOO_FAST,
            "asked for 12000000 bits/s, other tests have 0, allowed for all together: 10000000",
        ),
        ("max-bitrate = \"10M\"", "-t 9", TOO_FAST, "all tests together moved"),
        ("deny = [\"127.0.0.0/8\"]", "-t 1", BUSY, "this network is not allowed"),
        ("allow = [\"10.0.0.0/8\", \"::1\"]", "-t 1", BUSY, "this network is not allowed"),
        ("server-max-duration = 3", "-t 4", "", "asked for 4 seconds, allowed: 3"),
        (
            "server-bitrate-limit = \"5M\"",
            "-b 6M",
            TOO_FAST,
            "asked for 6000000 bits/s, allowed: 5000000",
        ),
    ];
    for (policy, line, iperf3, reason) in rows {
        let server = server_with(policy);
        for tool in TOOLS {
            let refused = run(tool, &server, line);
            assert_refused(&refused, tool, iperf3, reason);
            assert!(refused.took < Duration::from_secs(5), "{refused}");
        }
        let ended = server.stop("INT").expect("the server ends when it is told to");
        let lines = ended.stderr.lines().filter(|l| l.contains(reason) && l.contains("127.0.0.1"));
        assert_eq!(lines.count(), 2, "{policy}: {ended}");
    }
}

#[test]
fn reason_is_in_the_documents_of_both_ends() {
    let server = Server::start(Tool::Linerate, &["-J", "--max-streams", "1"]);
    let refused = run(Tool::Linerate, &server, "-P 2 -J");
    let reason = "invalid number of parallel streams (min = 1, max = 128): asked for 2 streams \
                  each way, allowed: 1";
    assert_eq!(refused.document().expect("a document")["error"], reason);
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let documents = ended.documents().expect("one document for each test");
    assert_eq!(documents[0]["error"], format!("error - {reason}"));
}

#[test]
fn each_address_has_its_own_places() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["--max-tests-per-address", "1"]);
    let running = start_running(Tool::Iperf3, &server, "-t 4 -b 10M");
    for tool in TOOLS {
        let refused = run(tool, &server, "-t 1");
        assert_refused(&refused, tool, BUSY, "tests at once of one address: 1");
        // All of 127.0.0.0/8 is this machine.
        if cfg!(target_os = "linux") {
            ends_well(start(tool, &server, "-t 1 -b 10M -B 127.0.0.2"));
        }
    }
    ends_well(running);
    ends_well(start(Tool::Iperf3, &server, "-t 1 -b 10M"));
}

#[test]
fn each_address_has_its_tests_of_the_hour() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = server_with("max-tests-per-hour = 2");
    for tool in TOOLS {
        ends_well(start(tool, &server, "-n 64K"));
    }
    for tool in TOOLS {
        let refused = run(tool, &server, "-n 64K");
        let reason = "tests an hour of one address: 2, the next in 3";
        assert_refused(&refused, tool, BUSY, reason);
        if cfg!(target_os = "linux") {
            ends_well(start(tool, &server, "-n 64K -B 127.0.0.2"));
        }
    }
}

#[test]
fn all_tests_share_the_rate_of_the_server() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["--max-bitrate", "100M"]);
    let running = start_running(Tool::Iperf3, &server, "-t 4 -b 30M -P 2");
    for tool in TOOLS {
        let refused = run(tool, &server, "-t 1 -b 41M");
        let reason = "asked for 41000000 bits/s, other tests have 60000000, allowed for all \
                      together: 100000000";
        assert_refused(&refused, tool, TOO_FAST, reason);
    }
    let beside = start(Tool::Iperf3, &server, "-t 2 -b 30M");
    // What nobody agreed on goes first, not who keeps to the agreement.
    let greedy = run(Tool::Linerate, &server, "-t 9");
    assert_refused(&greedy, Tool::Linerate, TOO_FAST, "this one the most, allowed: 100000000");
    ends_well(beside);
    ends_well(running);
    ends_well(start(Tool::Iperf3, &server, "-t 1 -b 100M"));
}

#[test]
fn streams_of_all_tests_are_counted_and_given_back() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = server_with("max-streams-in-all = 6");
    let running = start_running(Tool::Iperf3, &server, "-t 2 -b 1M -P 2 --bidir");
    for tool in TOOLS {
        let refused = run(tool, &server, "-t 1 -P 3");
        let reason = "asked for 3 streams, other tests have 4, allowed for all together: 6";
        assert_refused(&refused, tool, BUSY, reason);
    }
    ends_well(start(Tool::Iperf3, &server, "-t 1 -b 1M -P 2"));
    ends_well(running);
    ends_well(start(Tool::Iperf3, &server, "-t 1 -b 1M -P 6"));
}

#[test]
fn policy_that_cannot_be_used_keeps_the_server_from_beginning() {
    let scratch = Scratch::new();
    let file = scratch.file("policy.toml");
    let name = file.to_str().expect("a plain name").to_owned();
    for (policy, words) in [
        ("max-tests = 4\nmax-test = 4\n", "line 2: max-test: unknown key, must be one of"),
        ("\nmax-tests = 0", "line 2: max-tests: 0: must be 1 to 10000 tests"),
        ("require-login = true", "line 1: require-login: true: needs --rsa-private-key-path"),
        ("exclusive = true\nmax-tests = 5", "line 1: exclusive: true: only one of"),
        ("allow = []", "line 1: allow: []: must have a network"),
    ] {
        std::fs::write(&file, policy).expect("there is room for a policy");
        let mut command = Tool::Linerate.command();
        command.args(["-s", "-p", "1", "--policy", &name]);
        let ended = Process::start(&mut command).wait(TIME_LIMIT).expect("it does not begin");
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains(words), "{ended}");
    }
}

/// Later clients meet what the file says when the server is told to read it again.
#[cfg(unix)]
#[test]
fn policy_is_read_again_at_a_hangup() {
    let scratch = Scratch::new();
    let file = scratch.file("policy.toml");
    let write = |policy: &str| std::fs::write(&file, policy).expect("there is room for a policy");
    write("max-streams = 2");
    let options = ["--policy", file.to_str().expect("a plain name"), "--max-tests", "8"];
    let mut server = Server::start(Tool::Linerate, &options);
    let running = start_running(Tool::Linerate, &server, "-t 4 -b 10M -P 2");
    for (policy, streams, reason) in [
        ("max-streams = 1", 2, "asked for 2 streams each way, allowed: 1"),
        // What cannot be used changes nothing.
        ("max-streams = 0", 2, "asked for 2 streams each way, allowed: 1"),
        ("require-login = true", 2, "asked for 2 streams each way, allowed: 1"),
        ("max-streams = 3\nmax-tests = 1", 4, "asked for 4 streams each way, allowed: 3"),
    ] {
        write(policy);
        server.signal("HUP");
        sleep(Duration::from_millis(200));
        let refused = run(Tool::Linerate, &server, &format!("-t 1 -P {streams}"));
        assert_refused(&refused, Tool::Linerate, STREAMS, reason);
    }
    ends_well(running);
    let ended = server.stop("INT").expect("the server ends when it is told to");
    assert_eq!(ended.stderr.matches("read again, for later tests").count(), 2, "{ended}");
    for line in ["line 1: max-streams: 0: ", "line 1: require-login: true: needs --rsa"] {
        assert!(ended.stderr.contains(line), "{line:?} is missing: {ended}");
    }
}

/// A pipe, which nothing may ever be written to, or a device without an end.
#[cfg(unix)]
#[test]
fn policy_that_is_no_file_holds_nobody_up() {
    let scratch = Scratch::new();
    let file = scratch.file("policy.toml");
    let name = file.to_str().expect("a plain name").to_owned();
    let pipe = || {
        let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo runs");
        assert!(made.success());
    };
    let zeros = || std::os::unix::fs::symlink("/dev/zero", &file).expect("own folder");
    for (make, kind) in [(&pipe as &dyn Fn(), "pipe"), (&zeros, "device")] {
        let words = format!("--policy {name}: must be a regular file, not a {kind}");
        make();
        let mut command = Tool::Linerate.command();
        command.args(["-s", "-p", "1", "--policy", &name]);
        let ended = Process::start(&mut command).wait(TIME_LIMIT).expect("it does not begin");
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains(&words), "{ended}");

        std::fs::remove_file(&file).expect("own file");
        std::fs::write(&file, "max-streams = 2").expect("there is room for a policy");
        let mut server = Server::start(Tool::Linerate, &["--policy", &name]);
        std::fs::remove_file(&file).expect("own file");
        make();
        server.signal("HUP");
        sleep(Duration::from_millis(200));
        ends_well(start(Tool::Linerate, &server, "-t 1 -b 10M"));
        let ended = server.stop("INT").expect("the server ends when it is told to");
        assert!(ended.stderr.contains(&words), "{ended}");
        std::fs::remove_file(&file).expect("own file");
    }
}

/// Silent connections have few places, and those of a denied network are the first to go.
#[cfg(target_os = "linux")]
#[test]
fn peers_of_a_denied_network_keep_nobody_from_a_test() {
    let server = server_with("deny = [\"127.0.0.1\"]");
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()));
    let silent: Vec<_> = (0..300).map_while(|_| connect().ok()).collect();
    assert_eq!(silent.len(), 300);
    let served = ends_well(start(Tool::Linerate, &server, "-n 64K -B 127.0.0.2"));
    assert!(served.took < Duration::from_secs(2), "{served}");
    let ended = server.stop("INT").expect("the server ends when it is told to");
    assert!(ended.stderr.contains("127.0.0.1 was turned away"), "{ended}");
}
