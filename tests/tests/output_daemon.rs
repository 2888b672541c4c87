//! A server that leaves its terminal, and the file with the number of a process.

#![cfg(unix)]

use std::process::Command;
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::process::{Ended, Process};
use linerate_tests::scratch::Scratch;
use linerate_tests::server::{Server, free_port, is_listening};
use linerate_tests::tool::Tool;

#[test]
fn daemon_keeps_its_folder_its_number_and_its_log() {
    let scratch = Scratch::new();
    let port = free_port().to_string();
    let options = ["-s", "-D", "-p", &port, "-I", "pid", "--logfile", "log"];
    let started = in_folder(&scratch, &options);
    assert_eq!((started.code, started.stdout.as_str()), (Some(0), ""), "{started}");
    assert_eq!(started.stderr, "");
    let daemon = Daemon::of(&scratch);
    assert!(is_listening(daemon.0, port.parse().expect("a port")), "it says so when it is ready");

    let second = in_folder(&scratch, &options);
    assert_eq!(second.code, Some(1), "{second}");
    let words = "Another instance of iperf3 appears to be running";
    assert!(second.stderr.contains(words), "{second}");
    assert_eq!(scratch.read("pid"), daemon.0.to_string(), "the file of the first is untouched");
    assert!(scratch.read("log").contains(words));

    let ended = run(port.parse().expect("a port"), &["-n", "1M"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    daemon.stop();
    assert!(!scratch.file("pid").exists());
    let log = scratch.read("log");
    assert!(log.contains("Accepted connection from 127.0.0.1"), "{log}");
    // Nobody watches a daemon: it has a line for each thing of note, and says nothing twice.
    assert_eq!(log.matches("Terminated(15)").count(), 1, "{log}");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.ends_with(" stop reason=\"interrupted by signal Terminated(15)\""), "{log}");
}

#[test]
fn a_log_that_a_daemon_cannot_have_is_warned_of() {
    for more in [&[][..], &["-J", "--logfile", "log"]] {
        let scratch = Scratch::new();
        let port = free_port().to_string();
        let options = ["-s", "-D", "-p", &port, "-I", "pid", "--test-log", "json"];
        let started = in_folder(&scratch, &[&options[..], more].concat());
        let daemon = Daemon::of(&scratch);
        assert_eq!(started.code, Some(0), "{started}");
        assert!(started.stderr.starts_with("warning: --test-log: none with -D"), "{started}");
        assert_eq!(started.stderr.lines().count(), 1, "{started}");
        daemon.stop();
    }
}

#[test]
fn what_keeps_a_daemon_from_working_is_said_to_the_terminal() {
    let taken = Server::start(Tool::Linerate, &[]);
    let port = taken.port().to_string();
    let scratch = Scratch::new();
    let listener = "error - unable to start listener for connections";
    for (options, words) in [
        (&["-I", "pid"][..], listener),
        (&["-I", "pid", "--logfile", "log"], listener),
        (&["-I", "no/such/folder"], "error - unable to write PID file: no/such/folder: "),
        (&["-I", "pid", "--logfile", "no/such/folder"], "error - unable to open log file: "),
    ] {
        let options = [&["-s", "-D", "-p", &port], options].concat();
        let ended = in_folder(&scratch, &options);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended}");
        assert!(ended.stderr.starts_with(&format!("linerate: {words}")), "{ended}");
        assert!(!scratch.file("pid").exists(), "{ended}");
    }
    let log = scratch.read("log");
    assert!(log.contains(" error reason=\"unable to start listener for connections"), "{log}");
}

#[test]
fn pid_file_is_gone_however_its_process_ends() {
    let scratch = Scratch::new();
    let path = scratch.file("pid");
    let path = path.to_str().expect("a plain path");

    // One test, and its client's file too.
    let server = Server::start(Tool::Linerate, &["-1", "-I", path]);
    assert_eq!(scratch.read("pid"), server.id().to_string());
    let own = scratch.file("client");
    let own = own.to_str().expect("a plain path");
    let ended = run(server.port(), &["-n", "1M", "-I", own]);
    assert_eq!(ended.code, Some(0), "{ended}");
    server.wait().expect("one-off");
    assert!(!scratch.file("pid").exists() && !scratch.file("client").exists());

    // Signals, while idle and while a test runs.
    for (signal, is_busy) in [("INT", false), ("TERM", true), ("HUP", false)] {
        let server = Server::start(Tool::Linerate, &["-I", path]);
        let client = is_busy.then(|| {
            client::start(Tool::Linerate, "127.0.0.1", server.port(), &["-t", "5", "-b", "5M"])
        });
        if is_busy {
            // The signal shall find a test that runs.
            std::thread::sleep(Duration::from_millis(700));
        }
        assert!(scratch.file("pid").exists());
        server.stop(signal).expect("it ends");
        assert!(!scratch.file("pid").exists(), "{signal}");
        drop(client);
    }

    // Errors.
    let ended = run(free_port(), &["-I", path]);
    assert_eq!(ended.code, Some(2), "{ended}");
    assert!(!scratch.file("pid").exists());
}

#[test]
fn pid_file_that_a_killed_process_left_is_taken_over() {
    let scratch = Scratch::new();
    let path = scratch.file("pid");
    let path = path.to_str().expect("a plain path");
    let server = Server::start(Tool::Linerate, &["-I", path]);
    let left = server.id().to_string();
    server.stop("KILL").expect("it ends");
    assert_eq!(scratch.read("pid"), left);
    let server = Server::start(Tool::Linerate, &["-I", path]);
    assert_eq!(scratch.read("pid"), server.id().to_string());
    server.stop("INT").expect("it ends");
}

/// A daemon, by the number in its file; ended when dropped.
struct Daemon(u32);

impl Daemon {
    fn of(scratch: &Scratch) -> Self {
        Self(scratch.read("pid").parse().expect("a number and nothing else"))
    }

    fn signal(&self, name: &str) -> bool {
        let status = Command::new("kill")
            .args(["-s", name, &self.0.to_string()])
            .stderr(std::process::Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    /// Stops it and waits until it is gone; it is nobody's child here, so it is asked for.
    fn stop(self) {
        assert!(self.signal("TERM"));
        let deadline = Instant::now() + LIMIT;
        while self.signal("0") {
            assert!(Instant::now() < deadline, "the daemon does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        std::mem::forget(self);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.signal("KILL");
    }
}

fn in_folder(scratch: &Scratch, options: &[&str]) -> Ended {
    let mut command = Tool::Linerate.command();
    command.args(options).current_dir(scratch.path());
    Process::start(&mut command).wait(LIMIT).expect("it ends at once")
}

fn run(port: u16, options: &[&str]) -> Ended {
    client::run(Tool::Linerate, "127.0.0.1", port, options, LIMIT).expect("it ends")
}

const LIMIT: Duration = Duration::from_secs(20);
