//! Tests that end before their time, with the Windows build at one end: Ctrl-C at that end, and the death
//! of either. Wine makes Ctrl-C of the signal INT.

use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

use Tool::{Iperf3, Linerate, LinerateWindows};

const LINES: [&str; 4] = ["-b 10M", "-b 10M -R -P 2", "-u -b 5M -l 1400", "-u -b 5M -l 1400 -R"];

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn interrupted_client_reports_what_it_measured() {
    run_all(&rows(), |&(peer, line)| {
        let server = Server::start(peer, &["-1"]);
        let mut client = start(LinerateWindows, &server, line);
        wait_for_the_middle();
        client.signal("INT");
        let client = at_once(|| client.wait(TIME_LIMIT))?;
        let _ = server.wait()?;
        let error = "interrupt - the client has terminated by signal Interrupt(2)";
        ends_with(&client, 5, error)?;
        has_measured(&client)
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn interrupted_server_reports_what_it_measured() {
    run_all(&rows(), |&(peer, line)| {
        let server = Server::start(LinerateWindows, &["-J"]);
        let client = start(peer, &server, line);
        wait_for_the_middle();
        let server = at_once(|| server.stop("INT"))?;
        let client = at_once(|| client.wait(TIME_LIMIT))?;
        let error = "interrupt - the server has terminated by signal Interrupt(2)";
        ends_with(&server, 0, error)?;
        has_measured(&server)?;
        let told = client.document()?["error"] == "the server has terminated";
        // iperf3 calls it a success.
        if told && (peer == Iperf3 || client.code == Some(5)) {
            return Ok(());
        }
        Err(format!("the server was stopped: {client}"))
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn client_of_a_killed_server_reports_what_it_measured() {
    run_all(&rows(), |&(peer, line)| {
        let server = Server::start(peer, &[]);
        let client = start(LinerateWindows, &server, line);
        wait_for_the_middle();
        let _ = server.stop("KILL")?;
        let client = at_once(|| client.wait(TIME_LIMIT))?;
        ends_with(&client, 6, "")?;
        has_measured(&client)
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn server_of_a_killed_client_reports_what_it_measured() {
    run_all(&rows(), |&(peer, line)| {
        let server = Server::start(LinerateWindows, &["-1", "-J"]);
        let mut client = start(peer, &server, line);
        wait_for_the_middle();
        client.signal("KILL");
        let _ = client.wait(TIME_LIMIT)?;
        let server = at_once(|| server.wait())?;
        ends_with(&server, 0, "")?;
        has_measured(&server)
    });
}

/// Whatever ends the Windows build, its system closes its connections.
#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn death_of_the_windows_build_is_seen_by_the_other_end() {
    run_all(&LINES, |line| {
        let server = Server::start(LinerateWindows, &[]);
        let client = start(Linerate, &server, line);
        wait_for_the_middle();
        let _ = server.stop("KILL")?;
        let client = at_once(|| client.wait(TIME_LIMIT))?;
        ends_with(&client, 6, "")?;

        let server = Server::start(Linerate, &["-1", "-J"]);
        let mut client = start(LinerateWindows, &server, line);
        wait_for_the_middle();
        client.signal("KILL");
        let server = at_once(|| server.wait())?;
        ends_with(&server, 0, "")?;
        has_measured(&server)
    });
}

fn rows() -> Vec<(Tool, &'static str)> {
    [Iperf3, Linerate].into_iter().flat_map(|peer| LINES.map(|line| (peer, line))).collect()
}

fn start(tool: Tool, server: &Server, line: &str) -> linerate_tests::process::Process {
    let options: Vec<_> = line.split_whitespace().chain(["-t", "20", "-J"]).collect();
    client::start(tool, "127.0.0.1", server.port(), &options)
}

/// A time, since no program tells of it in a document.
fn wait_for_the_middle() {
    std::thread::sleep(Duration::from_millis(1500));
}

/// What ends soon after the one that made it end.
fn at_once(wait: impl FnOnce() -> Result<Ended, String>) -> Result<Ended, String> {
    let began = Instant::now();
    let ended = wait()?;
    let took = began.elapsed();
    if took < AT_ONCE { Ok(ended) } else { Err(format!("after {took:?}: {ended}")) }
}

/// One document, with an error that is this or, where the text is left open, any.
fn ends_with(ended: &Ended, code: i32, error: &str) -> Result<(), String> {
    let document = ended.document()?;
    let said = document["error"].as_str().unwrap_or_default();
    let is_right = if error.is_empty() { !said.is_empty() } else { said == error };
    if is_right && ended.code == Some(code) && ended.stderr.is_empty() {
        return Ok(());
    }
    Err(format!("not {code} with {error:?} but {said:?}: {ended}"))
}

/// Bytes of the end's own, by the sum of the direction that it had.
fn has_measured(ended: &Ended) -> Result<(), String> {
    let document = ended.document()?;
    let sums = ["sum_sent", "sum_received"];
    let bytes = sums.map(|sum| document["end"][sum]["bytes"].as_u64().unwrap_or(0));
    let intervals = document["intervals"].as_array().map_or(0, Vec::len);
    if bytes.iter().any(|bytes| *bytes > 0) && intervals > 0 {
        return Ok(());
    }
    Err(format!("it measured {bytes:?} bytes in {intervals} intervals: {ended}"))
}

/// A farewell to a peer takes a second at most, and the peer another.
const AT_ONCE: Duration = Duration::from_secs(5);
const TIME_LIMIT: Duration = Duration::from_secs(25);
