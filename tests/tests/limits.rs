//! What an operator limits, between real programs: places, queues, rates, networks. Stock clients hear
//! iperf3's nearest number, linerate clients the reason too, and the server's log has both with who
//! it was.

#[path = "limits/bytes.rs"]
mod bytes;
#[path = "limits/queue.rs"]
mod queue;
#[path = "limits/refusals.rs"]
mod refusals;
#[path = "limits/sessions.rs"]
mod sessions;

use std::thread::sleep;
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::process::{Ended, Process};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

const TOOLS: [Tool; 2] = [Tool::Linerate, Tool::Iperf3];

/// iperf3's words for a busy server.
const BUSY: &str = "the server is busy running a test. try again later";

fn start(tool: Tool, server: &Server, line: &str) -> Process {
    let options: Vec<_> = line.split(' ').collect();
    client::start(tool, "127.0.0.1", server.port(), &options)
}

fn run(tool: Tool, server: &Server, line: &str) -> Ended {
    start(tool, server, line).wait(TIME_LIMIT).expect("it ends in time")
}

/// Starts a client and waits until its test can be taken to run.
fn start_running(tool: Tool, server: &Server, line: &str) -> Process {
    let client = start(tool, server, line);
    sleep(A_MOMENT);
    client
}

fn ends_well(client: Process) -> Ended {
    let ended = client.wait(TIME_LIMIT).expect("it ends in time");
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

/// A stock client ends with iperf3's words, a linerate client with the reason after them and the code
/// of a refusal.
fn assert_refused(ended: &Ended, tool: Tool, iperf3: &str, reason: &str) {
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains(iperf3), "{iperf3:?} is missing: {ended}");
    if tool == Tool::Linerate {
        assert_eq!(ended.code, Some(3), "{ended}");
        assert!(said.contains(reason), "{reason:?} is missing: {ended}");
    } else {
        // With a document, iperf3 3.12 takes a refusal for a success.
        let is_success = ended.code == Some(0) && ended.line.contains(" -J");
        assert!(ended.code == Some(1) || is_success, "{ended}");
    }
}

/// From the start of a client to its running test.
const A_MOMENT: Duration = Duration::from_millis(500);
const TIME_LIMIT: Duration = Duration::from_secs(20);
