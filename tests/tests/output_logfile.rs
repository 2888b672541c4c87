//! The log file takes everything and the terminal nothing; a line is there as soon as it is complete.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::json::{strict, strict_all};
use linerate_tests::process::{Ended, Process};
use linerate_tests::scratch::Scratch;
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;

#[test]
fn both_ends_append_all_their_lines_and_print_nothing() {
    let scratch = Scratch::new();
    let (client_log, server_log) = (path(&scratch, "client"), path(&scratch, "server"));
    for round in 1..=2 {
        let server = Server::start(Tool::Linerate, &["-1", "--logfile", &server_log]);
        let ended = run(server.port(), &["-n", "1M", "--logfile", &client_log]);
        assert_silent(&ended, Some(0));
        assert_silent(&server.wait().expect("one-off"), Some(0));
        let count = |name: &str, words: &str| scratch.read(name).matches(words).count();
        assert_eq!(count("client", "Connecting to host"), round);
        assert_eq!(count("client", "iperf Done."), round);
        assert_eq!(count("server", "Accepted connection from"), round);
        assert_eq!(count("server", "receiver\n"), round);
    }
}

#[test]
fn errors_go_to_the_log_file_with_their_stamp() {
    let scratch = Scratch::new();
    let log = path(&scratch, "log");
    let ended = run(free_port(), &["--logfile", &log, "--timestamps=at %Y: "]);
    assert_silent(&ended, Some(2));
    let text = scratch.read("log");
    assert!(text.starts_with("at 2"), "{text}");
    assert!(text.contains(": linerate: error - unable to connect to server"), "{text}");
}

#[test]
fn log_file_that_cannot_be_written_stops_everything_before_it_begins() {
    let scratch = Scratch::new();
    let log = path(&scratch, "no/such/folder");
    let pid = path(&scratch, "pid");
    let port = free_port().to_string();
    for options in [
        &["-c", "127.0.0.1"][..],
        &["-c", "127.0.0.1", "-J"],
        &["-s", "-I", &pid],
        &["-s", "-J"],
        &["-s", "-D", "-I", &pid],
    ] {
        if options.contains(&"-D") && cfg!(windows) {
            continue;
        }
        let mut command = Tool::Linerate.command();
        command.args(options).args(["-p", &port, "--logfile", &log]);
        let ended = Process::start(&mut command).wait(LIMIT).expect("it ends at once");
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_eq!(ended.stdout, "", "{ended}");
        let words = format!("linerate: error - unable to open log file: {log}: ");
        assert!(ended.stderr.starts_with(&words), "{ended}");
        assert!(ended.stderr.len() > words.len() + 1, "the reason is missing: {ended}");
        assert!(!scratch.file("pid").exists(), "{ended}");
    }
}

#[cfg(unix)]
#[test]
fn documents_in_a_log_file_hold_their_errors() {
    for victim in ["server", "client"] {
        let scratch = Scratch::new();
        let (client_log, server_log) = (path(&scratch, "client"), path(&scratch, "server"));
        let mut server = Server::start(Tool::Linerate, &["-1", "-J", "--logfile", &server_log]);
        let options = ["-t", "5", "-b", "10M", "-P", "5", "-J", "--logfile", &client_log];
        let mut client = client::start(Tool::Linerate, "127.0.0.1", server.port(), &options);
        // A test has no event that tells of its middle when it prints to a file.
        std::thread::sleep(Duration::from_millis(1500));
        if victim == "server" {
            server.signal("KILL")
        } else {
            client.signal("KILL")
        }
        let ended = if victim == "server" {
            client.wait(LIMIT).expect("its server is gone")
        } else {
            drop(client);
            server.wait().expect("its client is gone")
        };
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "{victim}");
        let survivor = if victim == "server" { "client" } else { "server" };
        let document = strict(&scratch.read(survivor)).expect("one document");
        assert!(document["error"].is_string(), "{victim}: {document}");
        assert_eq!(scratch.read(victim), "", "a process that was killed wrote nothing");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_with_a_log_file_keeps_its_descriptors_flat() {
    let scratch = Scratch::new();
    let server = Server::start(Tool::Linerate, &["-J", "--logfile", &path(&scratch, "log")]);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", server.id())).expect("it runs").count();
    let mut counts = Vec::new();
    for _ in 0..40 {
        let ended = run(server.port(), &["-n", "1K"]);
        assert_eq!(ended.code, Some(0), "{ended}");
        counts.push(open());
    }
    // A test that winds down while the next one is counted has a few of its own.
    let (early, late) = (counts[5..15].iter().min(), counts[30..].iter().min());
    assert!(late <= early, "{counts:?}");
    drop(server);
    assert_eq!(strict_all(&scratch.read("log")).map(|documents| documents.len()), Ok(40));
}

#[test]
fn lines_are_there_while_the_test_runs() {
    let scratch = Scratch::new();
    let log = path(&scratch, "log");
    let server = Server::start(Tool::Linerate, &["-1", "-i", "0.2", "--logfile", &log]);
    let mut command = Tool::Linerate.command();
    let port = server.port().to_string();
    command.args(["-c", "127.0.0.1", "-p", &port, "-t", "2", "-b", "10M", "-i", "0.2"]);
    command.args(["--forceflush"]).stdout(Stdio::piped()).stdin(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("captured")).lines();
    let intervals = lines.map_while(Result::ok).filter(|line| line.contains(" sec "));
    let _third = intervals.into_iter().nth(2).expect("a line through the pipe");
    assert!(began.elapsed() < Duration::from_millis(1800), "{:?}", began.elapsed());
    assert!(scratch.read("log").contains("0.00-0.20"), "{}", scratch.read("log"));
    child.kill().expect("it runs still");
    child.wait().expect("ours");
}

fn run(port: u16, options: &[&str]) -> Ended {
    client::run(Tool::Linerate, "127.0.0.1", port, options, LIMIT).expect("it ends")
}

fn assert_silent(ended: &Ended, code: Option<i32>) {
    assert_eq!(ended.code, code, "{ended}");
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "{ended}");
}

fn path(scratch: &Scratch, name: &str) -> String {
    scratch.file(name).to_str().expect("a plain path").into()
}

const LIMIT: Duration = Duration::from_secs(20);
