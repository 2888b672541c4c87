//! Twenty stock clients that start together, each with its own mode, on one linerate server: all of
//! them are served at once, and each gets its own right numbers.

use std::time::Duration;

use linerate_tests::case::Case;
use linerate_tests::check::{Report, check};
use linerate_tests::client;
use linerate_tests::process::Process;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

const LINES: [&str; 20] = [
    "-t 2 -b 4M",
    "-t 2 -b 4M -R",
    "-t 2 -b 4M --bidir",
    "-t 2 -b 2M -P 2",
    "-t 2 -b 2M -P 2 -R",
    "-t 2 -b 2M -P 2 --bidir",
    "-t 2 -b 4M -l 4K",
    "-t 2 -b 4M -l 4K -R",
    "-t 1 -O 1 -b 4M -l 4K",
    "-n 1M -b 4M -l 4K",
    "-u -t 2 -b 2M -l 1400",
    "-u -t 2 -b 2M -l 1400 -R",
    "-u -t 2 -b 2M -l 1400 --bidir",
    "-u -t 2 -b 1M -l 1400 -P 2",
    "-u -t 2 -b 1M -l 1400 -P 2 -R",
    "-u -t 2 -b 1M -l 1400 -P 2 --bidir",
    "-u -t 2 -b 1M -l 500",
    "-u -t 2 -b 1M -l 500 -R",
    "-u -t 2 -b 1M -l 500 --bidir",
    "-u -n 256K -b 1M -l 1000",
];

#[test]
fn twenty_clients_at_once_are_all_served_right() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["-J"]);
    let cases = LINES.map(Case::new);
    let clients: Vec<Process> = cases
        .iter()
        .map(|case| client::start(Tool::Iperf3, case.host(), server.port(), &case.options()))
        .collect();
    let clients: Vec<_> = clients.into_iter().map(|client| client.wait(TIME_LIMIT)).collect();
    let server = server.stop("INT").expect("the server ends when it is told to");
    let documents = server.documents().expect("the server prints one document for each test");

    let mut faults = Vec::new();
    for (case, client) in cases.iter().zip(clients) {
        let found = client.and_then(|client| {
            let own = client.document()?;
            let cookie = &own["start"]["cookie"];
            let servers = documents.iter().find(|document| &document["start"]["cookie"] == cookie);
            let servers = servers.ok_or_else(|| format!("no document of the server; {client}"))?;
            let report = Report::new(Tool::Iperf3, &client, &own);
            Ok(check(case, &report, &Report::new(Tool::Linerate, &server, servers)))
        });
        match found {
            Ok(broken) => faults.extend(broken.iter().map(|law| format!("`{}`: {law}", case.line))),
            Err(message) => faults.push(format!("`{}`: {message}", case.line)),
        }
    }
    assert!(faults.is_empty(), "{}\nserver: {server}", faults.join("\n"));
    // What a server says about its own end is no test.
    let tests = documents.iter().filter(|document| document["start"]["cookie"].is_string());
    assert_eq!(tests.count(), LINES.len(), "one document for each test, and no other");
}

/// UDP tests of one address are set up one after the other, which takes its time with many.
const TIME_LIMIT: Duration = Duration::from_secs(60);
