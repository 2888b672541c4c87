//! One real case of each class of exit codes, as `docs/exit-codes.md` lists them.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::process::{Ended, Process};
use linerate_tests::script::{Peer, honest_server, server_error};
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;

#[test]
fn success_is_zero() {
    let server = Server::start(Tool::Linerate, &["-1"]);
    expect(0, &run(server.port(), "-n 1M"));
    expect(0, &server.wait().expect("it has served its test"));

    let server = Server::start(Tool::Linerate, &[]);
    expect(0, &server.stop("INT").expect("it is told to end"));

    expect(0, &alone(&["--version"]));
    expect(0, &alone(&["--help"]));
}

#[test]
fn usage_and_this_machine_are_one() {
    expect(1, &alone(&["-c", "127.0.0.1", "-t", "never"]));
    expect(1, &alone(&["-s", "-c", "127.0.0.1"]));
    let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("there are ports");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    expect(1, &alone(&["-s", "-4", "-p", &port]));
    expect(1, &alone(&["-s", "-B", "192.0.2.1"]));
}

#[test]
fn server_that_cannot_be_reached_is_two() {
    expect(2, &run(free_port(), "-t 1"));
    expect(2, &alone(&["-c", "no-such-host.invalid", "-t", "1"]));
    let unreachable = ["-c", "192.0.2.1", "--connect-timeout", "200", "-t", "1"];
    expect(2, &alone(&unreachable));
}

#[test]
fn refusal_is_three() {
    let options = ["--server-max-duration", "30", "--server-bitrate-limit", "100M/0.5"];
    let server = Server::start(Tool::Linerate, &options);
    expect(3, &run(server.port(), "-t 31"));
    expect(3, &run(server.port(), "-b 1G"));
    expect(3, &run(server.port(), "-b 0 -t 9"));

    let server = Server::start(Tool::Linerate, &["-1"]);
    let first = client::start(Tool::Linerate, "127.0.0.1", server.port(), &["-t", "2"]);
    // Until the first test holds the place; there is no sign of that outside.
    std::thread::sleep(Duration::from_millis(700));
    expect(3, &run(server.port(), "-t 1"));
    expect(0, &first.wait(TIME_LIMIT).expect("it is not disturbed"));
}

#[test]
fn failed_login_is_four() {
    let parameters_read = 3;
    expect(4, &meets(&[&honest_server()[..parameters_read], &[server_error(142)]].concat()));
}

#[test]
fn abortion_at_either_end_is_five() {
    let server = Server::start(Tool::Linerate, &[]);
    let mut own = client::start(Tool::Linerate, "127.0.0.1", server.port(), &["-t", "20"]);
    let other = client::start(Tool::Linerate, "127.0.0.1", server.port(), &["-t", "20"]);
    // Both are to be in the middle of their tests.
    std::thread::sleep(Duration::from_millis(1500));
    own.signal("INT");
    expect(5, &own.wait(TIME_LIMIT).expect("a signal ends it"));
    expect(0, &server.stop("INT").expect("a signal ends it"));
    expect(5, &other.wait(TIME_LIMIT).expect("its server has ended"));
}

#[test]
fn test_that_breaks_off_is_six() {
    let before_results = 8;
    let ended = meets(&honest_server()[..before_results]);
    expect(6, &ended);
    assert!(ended.stdout.contains("sender"), "what was measured is there: {ended}");

    let server = Server::start(Tool::Linerate, &["--rcv-timeout", "500"]);
    expect(6, &run(server.port(), "-u -b 1K -l 1000 -t 9"));
    expect(6, &run(server.port(), "-u -b 1K -l 1000 -t 9 -R --rcv-timeout 500"));
}

fn run(port: u16, line: &str) -> Ended {
    let options: Vec<_> = line.split(' ').collect();
    client::run(Tool::Linerate, "127.0.0.1", port, &options, TIME_LIMIT).expect("it ends in time")
}

fn alone(options: &[&str]) -> Ended {
    let process = Process::start(Tool::Linerate.command().args(options));
    process.wait(TIME_LIMIT).expect("it ends in time")
}

/// A client against a server that follows the steps and then closes.
fn meets(steps: &[linerate_tests::script::Step]) -> Ended {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are ports");
    let port = listener.local_addr().expect("it is bound").port();
    let steps = steps.to_vec();
    let server =
        std::thread::spawn(move || Peer::accept(listener).and_then(|mut p| p.follow(&steps)));
    let ended = run(port, "-n 64K");
    server.join().expect("it does not panic").expect("the client is honest");
    ended
}

fn expect(code: i32, ended: &Ended) {
    assert_eq!(ended.code, Some(code), "{ended}");
}

const TIME_LIMIT: Duration = Duration::from_secs(20);
