//! Output that cannot be written, or that nobody reads: tests go on, it is said once, and the exit code
//! tells whose result is lost.

#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::process::Command;
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::process::{Ended, Process};
use linerate_tests::scratch::Scratch;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

#[test]
fn a_server_on_a_full_disk_serves_on_and_says_it_once() {
    let to_full = [&[][..], &["-J"], &["--json-stream"]];
    for options in to_full {
        let server =
            Server::start_as(Tool::Linerate, || redirected("exec \"$@\" >/dev/full"), options);
        serve_two_and_stop(server, "unable to write the output: No space left on device");
    }
    for options in [&["--logfile", "/dev/full"][..], &["--logfile", "/dev/full", "-J"]] {
        let server = Server::start(Tool::Linerate, options);
        serve_two_and_stop(server, "unable to write log file: /dev/full: No space left on device");
    }
}

fn serve_two_and_stop(server: Server, words: &str) {
    for _ in 0..2 {
        let ended = run(server.port(), &["-n", "64K"]);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    let ended = server.stop("TERM").expect("it ends");
    assert_eq!(ended.code, Some(0), "its business was to serve: {ended}");
    assert_eq!(ended.stderr.matches("unable to write").count(), 1, "{ended}");
    assert!(ended.stderr.contains(&format!("linerate: error - {words}\n")), "{ended}");
}

/// The system ends a process that makes a file larger than its user may, unless it says no.
#[test]
fn a_limit_of_file_sizes_is_as_a_full_disk() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.file(name).to_str().expect("a plain path").to_owned();
    let (log, stored) = (path("log"), path("stored"));
    let limited = "ulimit -f 1; exec \"$@\"";
    let options = ["--logfile", &log, "-J"];
    let server = Server::start_as(Tool::Linerate, || redirected(limited), &options);
    serve_two_and_stop(server, &format!("unable to write log file: {log}: File too large"));

    let server = Server::start(Tool::Linerate, &[]);
    let mut command = redirected(limited);
    command.args(["-c", "127.0.0.1", "-p", &server.port().to_string(), "-R", "-F", &stored]);
    let ended = Process::start(&mut command).wait(SOON).expect("it ends");
    assert_eq!(ended.code, Some(1), "{ended}");
    let words = format!("unable to write -F file {stored}: File too large");
    assert!(ended.stderr.contains(&words), "{ended}");

    let mut command = redirected(limited);
    command.args(["auth", "keys", "--out", &path("key")]);
    let ended = Process::start(&mut command).wait(SOON).expect("it ends");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("key-private.pem: File too large"), "{ended}");
    assert!(!scratch.file("key-private.pem").exists(), "half a key");
}

#[test]
fn a_result_that_is_lost_is_no_success() {
    let server = Server::start(Tool::Linerate, &[]);
    let port = server.port().to_string();
    for options in [&[][..], &["-J"], &["--json-stream"]] {
        let mut command = redirected("exec \"$@\" >/dev/full");
        command.args(["-c", "127.0.0.1", "-p", &port, "-n", "64K"]).args(options);
        expect_lost(&Process::start(&mut command).wait(SOON).expect("a short test"));
    }
    for options in [&["--logfile", "/dev/full"][..], &["--logfile", "/dev/full", "-J"]] {
        expect_lost(&run(server.port(), &[&["-n", "64K"], options].concat()));
    }
    // What a server prints of the one test that it is there for is its result.
    let once = || redirected("exec \"$@\" >/dev/full");
    let server = Server::start_as(Tool::Linerate, once, &["-1", "-J"]);
    assert_eq!(run(server.port(), &["-n", "64K"]).code, Some(0));
    expect_lost(&server.wait().expect("one-off"));
}

fn expect_lost(ended: &Ended) {
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_eq!(ended.stderr.matches("unable to write").count(), 1, "{ended}");
}

#[test]
fn streams_that_nobody_reads_stall_no_test() {
    for (stream, options) in [
        ("1", &["--test-log", "text"][..]),
        ("1", &["-J", "--test-log", "json"]),
        ("2", &["--test-log", "json"]),
        ("2", &["-d", "-V"]),
    ] {
        let scratch = Scratch::new();
        let pipe = scratch.file("pipe");
        let script = format!(
            "pipe=$1; shift; test -p $pipe || mkfifo $pipe; exec 3<>$pipe; \
             dd if=/dev/zero of=$pipe bs=4096 count=9999 oflag=nonblock 2>/dev/null; \
             exec \"$@\" {stream}>$pipe"
        );
        let stuck = || {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).arg(&pipe);
            command.arg(Tool::Linerate.command().get_program());
            command
        };
        let server = Server::start_as(Tool::Linerate, stuck, options);
        for _ in 0..2 {
            let ended = run(server.port(), &["-n", "64K"]);
            assert_eq!(ended.code, Some(0), "{options:?}: {ended}");
        }
        let ended = server.stop("TERM").expect("it does not wait for who does not read");
        assert_eq!(ended.code, Some(0), "{options:?}: {ended}");
        let other = if stream == "1" { &ended.stderr } else { &ended.stdout };
        let words = if stream == "1" { "Terminated(15)" } else { "(test #3)" };
        assert!(other.contains(words), "{options:?}: {ended}");
    }
}

#[test]
fn a_server_without_its_streams_serves() {
    for script in ["exec \"$@\" >&-", "exec \"$@\" 2>&-", "exec \"$@\" >&- 2>&- <&-"] {
        let server =
            Server::start_as(Tool::Linerate, || redirected(script), &["--test-log", "json"]);
        let ended = run(server.port(), &["-n", "64K", "--get-server-output"]);
        assert_eq!(ended.code, Some(0), "{script}: {ended}");
        assert!(ended.stdout.contains("Server output:"), "{script}: {ended}");
        assert_eq!(server.stop("TERM").expect("it ends").code, Some(0), "{script}");
    }
}

/// What `copytruncate` of logrotate does. A file that is moved away is written to on.
#[test]
fn a_log_file_may_be_emptied_and_is_not_reopened() {
    let scratch = Scratch::new();
    let log = scratch.file("log");
    let path = log.to_str().expect("a plain path");
    let server = Server::start(Tool::Linerate, &["--logfile", path, "--test-log", "text"]);
    let ends = |name: &str| scratch.read(name).matches(" end test=").count();
    // A line is there when the client has long ended.
    let await_ends = |name: &str, count| {
        let deadline = std::time::Instant::now() + SOON;
        while ends(name) != count {
            assert!(std::time::Instant::now() < deadline, "{}", scratch.read(name));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    assert_eq!(run(server.port(), &["-n", "64K"]).code, Some(0));
    await_ends("log", 1);
    OpenOptions::new().write(true).truncate(true).open(&log).expect("it is there");
    assert_eq!(run(server.port(), &["-n", "64K"]).code, Some(0));
    await_ends("log", 1);
    assert!(!scratch.read("log").contains('\0'), "it goes on where the file ends");
    std::fs::rename(&log, scratch.file("old")).expect("it is there");
    assert_eq!(run(server.port(), &["-n", "64K"]).code, Some(0));
    await_ends("old", 2);
    assert!(!log.exists());
}

fn redirected(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(Tool::Linerate.command().get_program());
    command
}

fn run(port: u16, options: &[&str]) -> Ended {
    client::run(Tool::Linerate, "127.0.0.1", port, options, SOON).expect("a short test")
}

const SOON: Duration = Duration::from_secs(20);
