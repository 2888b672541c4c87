//! A hundred stock clients that start together, with own clients among them, on one port of one
//! linerate server: all of them are served at once, and each gets its own right numbers.

use std::time::Duration;

use linerate_tests::case::Case;
use linerate_tests::check::{Report, check_counts};
use linerate_tests::client;
use linerate_tests::process::{Ended, Process};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

/// What clients ask for: each of these is asked by [`STOCK`] stock clients and by [`OWN`] of linerate.
const LINES: [&str; 20] = [
    "-t 2 -b 2M",
    "-t 2 -b 2M -R",
    "-t 2 -b 2M --bidir",
    "-t 2 -b 1M -P 2",
    "-t 2 -b 1M -P 2 -R",
    "-t 2 -b 1M -P 2 --bidir",
    "-t 2 -b 2M -l 4K",
    "-t 2 -b 2M -l 4K -R",
    "-t 1 -O 1 -b 2M -l 4K",
    "-n 512K -b 2M -l 4K",
    "-u -t 2 -b 500K -l 500",
    "-u -t 2 -b 500K -l 500 -R",
    "-u -t 2 -b 500K -l 500 --bidir",
    "-u -t 2 -b 500K -l 1000 -P 2",
    "-u -t 2 -b 500K -l 1000 -P 2 -R",
    "-u -t 2 -b 500K -l 1000 -P 2 --bidir",
    "-u -t 2 -b 1M -l 1400",
    "-u -t 2 -b 1M -l 1400 -R",
    "-u -t 2 -b 1M -l 1400 --bidir",
    "-u -n 128K -b 500K -l 1000",
];

#[test]
fn a_hundred_clients_at_once_are_all_served_right() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["-J"]);
    let clients: Vec<_> = crowd()
        .map(|(tool, case)| {
            let options = [&case.options()[..], &SELDOM_AWAKE].concat();
            let client = client::start(tool, case.host(), server.port(), &options);
            (tool, case, client)
        })
        .collect();
    let count = clients.len();
    let wait = |(tool, case, client): (Tool, Case, Process)| (tool, case, client.wait(TIME_LIMIT));
    let clients: Vec<_> = clients.into_iter().map(wait).collect();
    let server = server.stop("INT").expect("the server ends when it is told to");
    let documents = server.documents().expect("the server prints one document for each test");

    let mut faults = Vec::new();
    for (tool, case, client) in clients {
        match client.and_then(|client| check_one(tool, &case, &client, &server, &documents)) {
            Ok(broken) => faults.extend(broken.iter().map(|law| about(tool, &case, law))),
            Err(message) => faults.push(about(tool, &case, &message)),
        }
    }
    assert!(faults.is_empty(), "{}\nserver: {server}", faults.join("\n"));
    // What a server says about its own end is no test.
    let tests = documents.iter().filter(|document| document["start"]["cookie"].is_string());
    assert_eq!(tests.count(), count, "one document for each test, and no other");
}

/// Clients with the same line stand far from each other, so that all kinds begin at once.
fn crowd() -> impl Iterator<Item = (Tool, Case)> {
    let rounds = [(Tool::Iperf3, STOCK), (Tool::Linerate, OWN)];
    let rounds = rounds.into_iter().flat_map(|(tool, count)| (0..count).map(move |_| tool));
    rounds.flat_map(|tool| LINES.map(|line| (tool, Case::new(line))))
}

/// The laws that a client's document and the server's one of the same test break.
fn check_one(
    tool: Tool,
    case: &Case,
    client: &Ended,
    server: &Ended,
    documents: &[Value],
) -> Result<Vec<String>, String> {
    let own = client.document()?;
    let cookie = &own["start"]["cookie"];
    let servers = documents.iter().find(|document| &document["start"]["cookie"] == cookie);
    let servers = servers.ok_or_else(|| format!("no document of the server; {client}"))?;
    let report = Report::new(tool, client, &own);
    Ok(check_counts(case, &report, &Report::new(Tool::Linerate, server, servers)))
}

fn about(tool: Tool, case: &Case, message: &str) -> String {
    format!("{tool} `{}`: {message}", case.line)
}

/// A hundred stock clients that look at their rate a thousand times a second keep a machine from
/// anything else.
const SELDOM_AWAKE: [&str; 2] = ["--pacing-timer", "20000"];
const STOCK: usize = 5;
const OWN: usize = 1;

/// UDP tests of one address are set up one after the other, which takes its time with many.
const TIME_LIMIT: Duration = Duration::from_secs(90);
